/**
 * How kwok plays what a kubelet would do, as Stages of its API (`kwok.x-k8s.io/v1alpha1`). There are four, and none
 * waits: a node becomes Ready, and again after it was lost; a bound pod runs; a pod whose image has the tag `cannot-be-pulled`
 * does not; a pod that is deleted is gone at once. The lab applies the Node itself, and kwok renews its Lease without a Stage. Jobs, init containers and readiness gates are
 * not played, because no test uses them on a pretended node.
 */

/** One step from a state of an object to the next, for every object that `when` selects. */
export interface Stage {
  readonly apiVersion: 'kwok.x-k8s.io/v1alpha1';
  readonly kind: 'Stage';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly resourceRef: { readonly apiGroup: 'v1'; readonly kind: 'Node' | 'Pod' };
    readonly selector: { readonly matchExpressions: readonly { readonly jq: Requirement }[] };
    readonly steps: readonly [Step];
  };
}

/** What jq finds at `key`, compared with `values`. */
type Requirement =
  | { readonly key: string; readonly operator: 'In' | 'NotIn'; readonly values: readonly string[] }
  | { readonly key: string; readonly operator: 'Exists' | 'DoesNotExist' };

type Step =
  | { readonly delete: true }
  | {
      readonly patch: { readonly subresource: 'status'; readonly root: 'status'; readonly template: string };
    };

const unpullable = '.spec.containers[]?.image | select(test(":cannot-be-pulled$"))';
const isReady = '.status.conditions[]? | select(.type == "Ready") | .status';
const deletion = '.metadata.deletionTimestamp';
/**
 * Without a grace period the API server removes the pod by itself, right after an update that says so. kwok deletes by
 * name alone: what it does upon that update comes late, and would hit a new pod of that name.
 */
const grace = '.metadata.deletionGracePeriodSeconds | select(. != null and . > 0)';

/** Templates are Go's; what they give is YAML, merged into the status. */
const readyNode = `
{{ $now := Quote Now }}
conditions:
- { type: Ready, status: "True", reason: Pretended, lastHeartbeatTime: {{ $now }}, lastTransitionTime: {{ $now }} }
`;

/** Addresses would be merged into the lists, too: a pod that is played twice would have two, which the API server refuses. */
const runningPod = `
{{ $now := Quote Now }}
{{ $node := .spec.nodeName }}
{{ $hostIP := NodeIPWith $node | Quote }}
{{ $podIP := PodIPWith $node (default false .spec.hostNetwork) .metadata.uid .metadata.name .metadata.namespace | Quote }}
phase: Running
startTime: {{ $now }}
hostIP: {{ $hostIP }}
hostIPs: [{ ip: {{ $hostIP }} }]
podIP: {{ $podIP }}
podIPs: [{ ip: {{ $podIP }} }]
conditions:
{{ range list "Initialized" "ContainersReady" "Ready" }}
- { type: {{ . }}, status: "True", lastTransitionTime: {{ $now }} }
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ Quote .name }}
  image: {{ Quote .image }}
  restartCount: 0
  ready: true
  state: { running: { startedAt: {{ $now }} } }
{{ end }}
`;

const unpulledPod = `
phase: Pending
containerStatuses:
{{ range .spec.containers }}
- name: {{ Quote .name }}
  image: {{ Quote .image }}
  imageID: ""
  restartCount: 0
  ready: false
  state: { waiting: { reason: ImagePullBackOff, message: {{ printf "Back-off pulling image %q" .image | Quote }} } }
{{ end }}
`;

export const stages: readonly Stage[] = [
  stage('node-ready', 'Node', [{ key: isReady, operator: 'NotIn', values: ['True'] }], status(readyNode)),
  stage(
    'pod-runs',
    'Pod',
    [
      { key: deletion, operator: 'DoesNotExist' },
      { key: '.status.phase', operator: 'In', values: ['Pending'] },
      { key: unpullable, operator: 'DoesNotExist' },
    ],
    status(runningPod),
  ),
  stage(
    'image-is-missing',
    'Pod',
    [
      { key: deletion, operator: 'DoesNotExist' },
      { key: '.status.containerStatuses', operator: 'DoesNotExist' },
      { key: unpullable, operator: 'Exists' },
    ],
    status(unpulledPod),
  ),
  stage('pod-ends', 'Pod', [{ key: grace, operator: 'Exists' }], { delete: true }),
];

function stage(name: string, kind: 'Node' | 'Pod', when: readonly Requirement[], step: Step): Stage {
  return {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: 'v1', kind },
      selector: { matchExpressions: when.map((jq) => ({ jq })) },
      steps: [step],
    },
  };
}

function status(template: string): Step {
  return { patch: { subresource: 'status', root: 'status', template } };
}
