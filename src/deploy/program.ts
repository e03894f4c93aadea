/** The pods that people apply or the `cluster` role starts: what those of all roles have in common. */
import type * as models from '@kubernetes/client-node';

import {
  APP_NAME,
  LABEL_APP_INSTANCE,
  LABEL_APP_NAME,
  type Manifest,
  type ManifestOf,
} from '../api/manifest.ts';
import { LABEL_NODE_TYPE, NODE_TYPE_VIRTUAL } from '../api/names.ts';
import type { AccountRef } from '../api/rbac.ts';
import type { Container, PodSpec, Stored } from '../api/wire.ts';
import { TributaryError } from '../lib/errors.ts';

export type Deployment = Stored<models.V1Deployment>;

type Probe = NonNullable<Container['livenessProbe']>;
type EnvVar = NonNullable<Container['env']>[number];

/** One process of ours in the cluster: the same image for every role, another list of arguments. */
export interface Program {
  account: AccountRef;
  labels: Record<string, string>;
  image: string;
  args: readonly string[];
  ports: Readonly<Record<string, number>>;
  /** Above this much memory (a quantity) the process counts as broken. */
  memoryLimit: string;
  priorityClassName?: string;
  /** Further variables, beside those that say which pod it is. */
  env?: readonly EnvVar[];
  /** Needs a namespace with Pod Security `privileged`; also runs where the pod network is not ready (yet). */
  hostNetwork?: boolean;
}

/** Where health and metrics are served, by every role. */
export const OPS_PORT = 8080;
export const KUBELET_PORT = 10_250;

/** Longer than the program's own deadline for stopping, so that the kubelet never has to kill it. Seconds. */
const GRACE_SECONDS = 45;

/** One replica, and never two at a time: two agents of one node would answer each other's writes. */
export function forgeDeployment(program: Program): ManifestOf<Deployment> {
  const { account, labels } = program;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...account, labels },
    spec: {
      replicas: 1,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        // Otherwise the kernel ignores a SIGTERM until the program has a handler for it, since it is process 1; one that is
        // stopped as it starts would then be there for the whole grace period, and nobody may take its place so long.
        spec: { ...forgePodSpec(program), shareProcessNamespace: true },
      },
    },
  };
}

const ON_THE_HOST: Partial<PodSpec> = {
  hostNetwork: true,
  dnsPolicy: 'ClusterFirstWithHostNet',
  tolerations: [
    { key: 'node.kubernetes.io/network-unavailable', operator: 'Exists', effect: 'NoSchedule' },
    { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
  ],
};

/** Of one container. */
function forgePodSpec(program: Program): PodSpec {
  return {
    serviceAccountName: program.account.name,
    ...(program.hostNetwork === true && ON_THE_HOST),
    ...(program.priorityClassName !== undefined && { priorityClassName: program.priorityClassName }),
    terminationGracePeriodSeconds: GRACE_SECONDS,
    enableServiceLinks: false,
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    // An agent on a virtual node would run abroad, or on the very node that it is to keep alive.
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: LABEL_NODE_TYPE, operator: 'NotIn', values: [NODE_TYPE_VIRTUAL] }] },
          ],
        },
      },
    },
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [forgeContainer(program)],
  };
}

function forgeContainer({ image, args, ports, memoryLimit, env = [] }: Program): Container {
  const probe = (path: string, periodSeconds: number, failureThreshold: number): Probe => ({
    httpGet: { path, port: 'ops' },
    periodSeconds,
    failureThreshold,
    timeoutSeconds: 5,
  });
  return {
    name: 'tributary',
    image,
    args: [...args],
    env: [
      ...(
        [
          ['POD_NAME', 'metadata.name'],
          ['POD_NAMESPACE', 'metadata.namespace'],
          ['POD_IP', 'status.podIP'],
        ] as const
      ).map(([name, fieldPath]) => ({ name, valueFrom: { fieldRef: { fieldPath } } })),
      ...env,
    ],
    ports: Object.entries(ports).map(([name, containerPort]) => ({ name, containerPort })),
    // No CPU limit: throttled, an agent would renew its node's Lease too late, and pods would be evicted for it.
    resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: memoryLimit } },
    // On a busy node the process gets no more CPU than it requests: a start of seconds then takes minutes. If the kubelet killed
    // it for that, it would start again and again for ever.
    startupProbe: probe('/livez?start', 1, 300),
    // Each probe wakes a process at rest. Who has just started is Ready at once: `?start` waits for that, for a minute at most.
    livenessProbe: probe('/livez', 20, 3),
    readinessProbe: probe('/readyz', 10, 2),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  };
}

export function checkedImage(image: string): string {
  if (!/^[a-zA-Z0-9][-a-zA-Z0-9._/:@]{0,511}$/.test(image)) {
    throw new TributaryError('Invalid', `image "${image}" is not the name of a container image`);
  }
  return image;
}

/**
 * Of the roles `gateway` and `node`. Apart from tributary-system, since whoever may create pods here may create them on the
 * host network.
 */
export const NETWORK_NAMESPACE = 'tributary-network';

export const GATEWAY_ACCOUNT: AccountRef = { namespace: NETWORK_NAMESPACE, name: 'tributary-gateway' };

export const labelsOf = (name: string): Record<string, string> => ({
  [LABEL_APP_NAME]: APP_NAME,
  [LABEL_APP_INSTANCE]: name,
});

/** One of our own namespaces; `level` is the Pod Security level that its pods must keep to. */
export const forgeNamespace = (name: string, level: 'privileged' | 'restricted'): Manifest => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name,
    labels: { [LABEL_APP_NAME]: APP_NAME, 'pod-security.kubernetes.io/enforce': level },
  },
});

/** Its pods need the host network, NET_ADMIN and /dev/net/tun, which `baseline` does not allow. */
export const forgeNetworkNamespace = (): Manifest => forgeNamespace(NETWORK_NAMESPACE, 'privileged');

/** Of a pod that does one thing and ends: nobody asks whether it is ready. What it said last is told with its failure. */
export function forgeTaskPod(program: Omit<Program, 'ports'>): PodSpec {
  const spec = forgePodSpec({ ...program, ports: {} });
  return {
    ...spec,
    restartPolicy: 'Never',
    containers: spec.containers.map(
      ({
        startupProbe: _start,
        livenessProbe: _live,
        readinessProbe: _ready,
        ports: _ports,
        ...container
      }) => ({
        ...container,
        terminationMessagePolicy: 'FallbackToLogsOnError',
      }),
    ),
  };
}

/** Root, with NET_ADMIN as the only capability: netlink requires the capability, the socket of WireGuard requires root. */
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
