/** What people have found out about specs: why some are not run, and why some differ. Data. */

export interface LeftOut {
  /** Matches the names of the specs. */
  readonly specs: RegExp;
  readonly reason: string;
}

export const LEFT_OUT: readonly LeftOut[] = [
  {
    specs: /^\[sig-apps\] Daemon set /,
    reason: 'DaemonSets stay home: they are about nodes, and a provider runs its own on its nodes',
  },
  {
    specs: /^\[sig-node\] ImageVolume should succeed with pod and pull policy of Always /,
    reason: 'it pulls an image from a registry, and the lab has none',
  },
];

const HOST =
  'refused by `podSecurity` of the SharingPolicy (`baseline`): its pods use the network or ports of their host';
const HOST_PATH =
  'refused by `podSecurity` of the SharingPolicy (`baseline`): its pods are privileged and mount a folder of their host';

const job = (what: string): string => `[sig-apps] Job should allow to use ${what} [Conformance]`;
const nodeToPod = (protocol: string): string =>
  `[sig-network] Networking Granular Checks: Pods should function for node-pod communication: ${protocol} [LinuxOnly] [NodeConformance] [Conformance]`;

/** By name of the spec: why it fails through the virtual node and passes directly. */
export const DIFFERENCES: Readonly<Record<string, string>> = {
  '[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] Should recreate evicted statefulset [Conformance]':
    HOST,
  [job('a pod failure policy to ignore failure matching on DisruptionTarget condition')]: HOST_PATH,
  [job('the pod failure policy on exit code to fail the job early')]: HOST_PATH,
  '[sig-network] HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol [LinuxOnly] [Conformance]':
    HOST,
  [nodeToPod('http')]: HOST,
  [nodeToPod('udp')]: HOST,
  '[sig-node] KubeletManagedEtcHosts should test kubelet managed /etc/hosts file [NodeConformance] [Conformance]':
    HOST,
};

/** By name of the spec: why it fails in this lab on both sides. */
export const LAB_FAILURES: Readonly<Record<string, string>> = {};
