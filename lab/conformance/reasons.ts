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

const CLUSTER_IP =
  "it connects to the Service's home ClusterIP from a pod abroad: in that run these led nowhere from there";
const NODE_PORT =
  'it connects to a node port at the address of the virtual node, which is that of the agent: only real nodes have node ports';
const CLUSTER_IP_NAME =
  "it looks in DNS for the Service's home ClusterIP: in that run pods abroad asked the DNS over there, which knows another one";
const HOST =
  'refused by `podSecurity` of the SharingPolicy (`baseline`): its pods use the network or ports of their host';
const HOST_PATH =
  'refused by `podSecurity` of the SharingPolicy (`baseline`): its pods are privileged and mount a folder of their host';
const HOME_API =
  'a process in the pod asks the API server of its home: in that run it had no way there, and so no token';

const multipleEndpoints = (what: string): string =>
  `[sig-network] EndpointSlice should support a Service with multiple ${what} specified in multiple EndpointSlices [Conformance]`;
const services = (what: string): string => `[sig-network] Services should ${what} [Conformance]`;
const dns = (what: string): string => `[sig-network] DNS should ${what} [Conformance]`;
const job = (what: string): string => `[sig-apps] Job should allow to use ${what} [Conformance]`;
const nodeToPod = (protocol: string): string =>
  `[sig-network] Networking Granular Checks: Pods should function for node-pod communication: ${protocol} [LinuxOnly] [NodeConformance] [Conformance]`;

/** By name of the spec: why it fails through the virtual node and passes directly. */
export const DIFFERENCES: Readonly<Record<string, string>> = {
  '[sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] Should recreate evicted statefulset [Conformance]':
    HOST,
  [job('a pod failure policy to ignore failure matching on DisruptionTarget condition')]: HOST_PATH,
  [job('the pod failure policy on exit code to fail the job early')]: HOST_PATH,
  '[sig-auth] ServiceAccounts ServiceAccountIssuerDiscovery should support OIDC discovery of service account issuer [Conformance]':
    HOME_API,
  '[sig-auth] ServiceAccounts should mount an API token into pods [Conformance]': HOME_API,
  [dns('provide DNS for ExternalName services')]: CLUSTER_IP_NAME,
  [dns('provide DNS for services')]: CLUSTER_IP_NAME,
  [dns('resolve DNS of partial qualified names for services [LinuxOnly]')]: CLUSTER_IP_NAME,
  [multipleEndpoints('endpoint IPs')]: CLUSTER_IP,
  [multipleEndpoints('ports')]: CLUSTER_IP,
  '[sig-network] HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol [LinuxOnly] [Conformance]':
    HOST,
  [nodeToPod('http')]: HOST,
  [nodeToPod('udp')]: HOST,
  [services('be able to change the type from ExternalName to ClusterIP')]: CLUSTER_IP,
  [services('be able to change the type from ExternalName to NodePort')]: NODE_PORT,
  [services('be able to create a functioning NodePort service')]: NODE_PORT,
  [services('be able to switch session affinity for NodePort service [LinuxOnly]')]: NODE_PORT,
  [services('be able to switch session affinity for service with type clusterIP [LinuxOnly]')]: CLUSTER_IP,
  [services('have session affinity work for NodePort service [LinuxOnly]')]: NODE_PORT,
  [services('have session affinity work for service with type clusterIP [LinuxOnly]')]: CLUSTER_IP,
  [services('serve a basic endpoint from pods')]: CLUSTER_IP,
  [services('serve endpoints on same port and different protocols')]: CLUSTER_IP,
  [services('serve multiport endpoints from pods')]: CLUSTER_IP,
  '[sig-node] KubeletManagedEtcHosts should test kubelet managed /etc/hosts file [NodeConformance] [Conformance]':
    HOST,
  '[sig-node] Pods Extended (pod generation) Pod Generation pod generation should start at 1 and increment per update [MinimumKubeletVersion:1.34] [Conformance]':
    'it replaces all tolerations of a pod, and the one of virtual nodes, which the webhook has added, may not be taken away',
  '[sig-node] PreStop should call prestop when killing a pod [Conformance]': HOME_API,
};

/** By name of the spec: why it fails in this lab on both sides. */
export const LAB_FAILURES: Readonly<Record<string, string>> = {
  '[sig-node] Kubelet when scheduling a read only busybox container should not write to root filesystem [LinuxOnly] [NodeConformance] [Conformance]':
    "it reads a message of busybox' shell, and the lab's image has bash, which hands on environment names that are no identifiers",
  '[sig-node] Sysctls [LinuxOnly] [NodeConformance] should support sysctls [Environment:NotInUserNS] [Conformance]':
    "it runs a program of busybox by a path that the lab's image did not have",
};
