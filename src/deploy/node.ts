/** What people apply for the `node` role: one pod on each node, and what takes all traces of us off a node. */
import { type Manifest, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import type { PodSpec } from '../api/wire.ts';
import { forgePlaceGrants } from './cluster.ts';
import {
  checkedImage,
  forgeNetworkNamespace,
  forgeNetworkPod,
  labelsOf,
  NETWORK_NAMESPACE,
  type Program,
} from './program.ts';
import { NODE_NAME, NODE_ROLE_RIGHTS } from './rights/cluster.ts';

/** On the host; beside that of the gateway, which may be on the same one. */
const NODE_OPS_PORT = 7482;
export const CLEAN_UP_NAME = 'tributary-clean-up';

interface NodeOptions {
  image: string;
  priorityClassName?: string;
  /** Further arguments of `tributary run node`. */
  args?: readonly string[];
}

/** In the order in which they must be applied; after those of the `cluster` role. */
export function forgeNode({ args = [], image, priorityClassName }: NodeOptions): Manifest[] {
  const labels = labelsOf(NODE_NAME);
  const account = { namespace: NETWORK_NAMESPACE, name: NODE_NAME };
  const program: Program = {
    account,
    labels,
    image: checkedImage(image),
    args: [
      'run',
      'node',
      '--ops-port',
      String(NODE_OPS_PORT),
      '--system-namespace',
      SYSTEM_NAMESPACE,
      ...args,
    ],
    ports: { ops: NODE_OPS_PORT },
    memoryLimit: '256Mi',
    ...(priorityClassName !== undefined && { priorityClassName }),
  };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account, labels } },
    ...forgePlaceGrants({ name: NODE_NAME, labels, account }, NODE_ROLE_RIGHTS),
    forgeDaemonSet(NODE_NAME, forgeNetworkPod(program, 'node')),
  ];
}

/**
 * For `kubectl rollout status`, then `kubectl delete`: its pod becomes ready when the node is clean. It has no account, since
 * it calls no API server.
 */
export function forgeCleanUp({ image }: Pick<NodeOptions, 'image'>): Manifest[] {
  const pod = forgeNetworkPod(
    {
      account: { namespace: NETWORK_NAMESPACE, name: 'default' },
      labels: labelsOf(CLEAN_UP_NAME),
      image: checkedImage(image),
      args: ['clean-up'],
      ports: {},
      memoryLimit: '256Mi',
    },
    'clean-up',
  );
  const {
    startupProbe: _start,
    livenessProbe: _live,
    readinessProbe: _ready,
    env: _env,
    ports: _ports,
    ...cleanUp
  } = pod.containers[0];
  return [
    forgeNetworkNamespace(),
    forgeDaemonSet(CLEAN_UP_NAME, {
      ...pod,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      initContainers: [cleanUp],
      containers: [
        {
          name: 'done',
          image,
          command: ['sleep', 'infinity'],
          resources: { limits: { memory: '16Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    }),
  ];
}

/** On every real node, whatever is wrong with it. */
function forgeDaemonSet(name: string, pod: PodSpec): Manifest & { spec: object } {
  const labels = labelsOf(name);
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { namespace: NETWORK_NAMESPACE, name, labels },
    spec: {
      selector: { matchLabels: labels },
      // What it has set up goes on working while the pod is replaced.
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } },
      template: { metadata: { labels }, spec: { ...pod, tolerations: [{ operator: 'Exists' }] } },
    },
  };
}
