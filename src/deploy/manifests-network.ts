/** What the pods of the roles `gateway` and `node` have in common: the network of their host. */
import { APP_NAME, LABEL_APP_INSTANCE, LABEL_APP_NAME, type Manifest } from '../api/manifest.ts';
import type { Container, PodSpec } from '../api/wire.ts';
import { forgePodSpec, type Program } from './manifests-deployment.ts';

/** Apart from tributary-system: who may make pods here may make them on the host network. */
export const NETWORK_NAMESPACE = 'tributary-network';

export const labelsOf = (name: string): Record<string, string> => ({
  [LABEL_APP_NAME]: APP_NAME,
  [LABEL_APP_INSTANCE]: name,
});

export const forgeNetworkNamespace = (): Manifest => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: NETWORK_NAMESPACE,
    // The host network, NET_ADMIN and /dev/net/tun are beyond `baseline`.
    labels: { [LABEL_APP_NAME]: APP_NAME, 'pod-security.kubernetes.io/enforce': 'privileged' },
  },
});

/** Root without its powers, but that over networks: netlink asks for the capability, the socket of WireGuard for root. */
export const ON_NETWORKS: NonNullable<Container['securityContext']> = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
};

const AS_ROOT: NonNullable<PodSpec['securityContext']> = {
  runAsUser: 0,
  runAsGroup: 0,
  seccompProfile: { type: 'RuntimeDefault' },
};

/** A role that changes the network of its host; `name` is that of its container. */
export function forgeNetworkPod(program: Program, name: string): PodSpec & { containers: [Container] } {
  const spec = forgePodSpec({ ...program, hostNetwork: true });
  const [container] = spec.containers;
  if (container === undefined) throw new Error('a pod without containers');
  return {
    ...spec,
    securityContext: AS_ROOT,
    containers: [
      {
        ...container,
        name,
        env: [
          ...(container.env ?? []),
          { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
        ],
        securityContext: ON_NETWORKS,
      },
    ],
  };
}
