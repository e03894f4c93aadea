import { MAX_NAMESPACES } from '../limits.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  namespaceOffloadings,
  OFFLOADING_NAME,
  type HeldOff,
  type NamespaceOffloadingSpec,
  type NamespaceOffloadingStatus,
  type OffloadedCluster,
  type WhenAway,
} from '../namespace-offloading.ts';
import { DEFAULT_STAY_SECONDS } from '../node-life.ts';
import { DEFAULT_PLACEMENT, PLACEMENTS } from '../placement.ts';
import { AGE, clusterName, column, message, observedGeneration, reason, time } from './common.ts';
import type { Definition } from './definition.ts';
import { labelSelector } from './label-selector.ts';
import { reflectionRules } from './reflection.ts';
import {
  choice,
  conditions,
  dnsLabel,
  dnsName,
  int32,
  listOf,
  objectOf,
  setOf,
  type Schema,
  type SchemaOf,
} from './schema.ts';

const seconds = (description: string, fallback: number, maximum: number): Schema =>
  int32(description, { default: fallback, minimum: 0, maximum });

const DAY = 86_400;

const spec = {
  clusterSelector: labelSelector(
    'Selects virtual nodes by the labels of their Node; without it, all. `kubectl get nodes -l ' +
      'tributary.dev/node-type=virtual-node --show-labels` shows them.',
  ),
  podStrategy: choice(
    'Local: pods stay on real nodes; the objects that they need are copied nevertheless. Remote: pods run ' +
      'on virtual nodes only. LocalAndRemote: wherever the scheduler finds a place. A change applies to ' +
      'pods that are made after it.',
    ['Local', 'Remote', 'LocalAndRemote'],
    'LocalAndRemote',
  ),
  naming: choice(
    'Name of the namespace in foreign clusters. Suffixed: its name and part of our ClusterID, or another ' +
      'name that the provider chooses. Same: its own name; if that name is taken, the cluster is not used. ' +
      'Selected: remoteName, with the same rule. Providers whose policy chooses names refuse Same and ' +
      'Selected. Cannot be changed.',
    ['Suffixed', 'Same', 'Selected'],
    'Suffixed',
  ),
  remoteName: dnsLabel('Name in foreign clusters, with naming: Selected. Cannot be changed.'),
  reflection: reflectionRules,
  placement: choice(
    'How rules of pods about hosts, zones and regions (podAffinity, podAntiAffinity, topologySpreadConstraints) ' +
      'travel; they then hold among the nodes of the foreign cluster. Propagate: as they are. Soft: what is ' +
      'required is only preferred, and DoNotSchedule becomes ScheduleAnyway. Hard: what keeps pods apart is ' +
      'required, and a pod with a rule that cannot be said over there does not run there. The annotation ' +
      'tributary.dev/placement of a pod comes before it. A change applies to pods that are made after it.',
    PLACEMENTS,
    DEFAULT_PLACEMENT,
  ),
  existingPods: choice(
    'What happens to pods that were made before their namespace was offloaded, and so are on real nodes; ' +
      'status.podsAtHome counts them. Stay: nothing. Move: they are evicted as PodDisruptionBudgets allow, one of ' +
      'each controller at a time, a Ready one only while all others are Ready, and the next one when the ' +
      'controller has made another pod. Pods without a controller, pods that end by themselves (of Jobs) and pods ' +
      'with claims stay.',
    ['Stay', 'Move'],
    'Stay',
  ),
  onRemoval: choice(
    'What happens to remote pods when this object is deleted, or a peering ends. All of them end there, and owners (a ' +
      'Deployment, a Job) replace theirs. Return: pods without an owner are recreated here. End: they are ' +
      'not.',
    ['Return', 'End'],
    'Return',
  ),
  releaseAfterSeconds: seconds(
    'A pod that the foreign cluster cannot place for this time, in seconds, is released to run elsewhere. ' +
      '0: it waits without limit.',
    60,
    DAY,
  ),
  whenAway: objectOf<WhenAway>(
    'What becomes of pods on a virtual node whose cluster is away (Node not Ready). Without this field, what Kubernetes ' +
      'does: after 300 s they are deleted, and their controllers make others. Whatever is said here, pods stay that must not ' +
      'run twice (of StatefulSets, Jobs and unknown controllers, bare pods, pods with claims; the annotation ' +
      'tributary.dev/when-lost of a pod comes before that), and so do pods with their own tolerations of ' +
      'node.kubernetes.io/not-ready or unreachable. A change applies to pods that are there.',
    ['pods'],
    {
      pods: choice(
        'Stay: they stay until contact is back. Move: after afterSeconds they are deleted, and their controllers make others.',
        ['Stay', 'Move'],
      ),
      afterSeconds: int32(
        `With Move: so long after the Node was not Ready any more, in seconds. Without it, ${DEFAULT_STAY_SECONDS}.`,
        { minimum: 0, maximum: 30 * DAY },
      ),
      to: choice(
        'With Move. Anywhere, which is the default: wherever the scheduler finds a place. Home: new pods of the namespace, but those with claims, ' +
          'are kept on real nodes while the cluster is away, and after that for half of holdOffSeconds at least. They stay there until ' +
          'they are made anew.',
        ['Anywhere', 'Home'],
      ),
    },
  ),
  holdOffSeconds: seconds(
    'After a virtual node could not place a pod, pods of the same owner are kept off that node for this ' +
      'time, in seconds.',
    600,
    DAY,
  ),
} satisfies SchemaOf<NamespaceOffloadingSpec>;

const cluster: Schema = objectOf<OffloadedCluster>(
  'The namespace in one foreign cluster.',
  ['cluster', 'virtualNodes', 'phase', 'reason'],
  {
    cluster: {
      type: 'string',
      description: 'ClusterID; of a VirtualNode made by hand, its name.',
      maxLength: 253,
    },
    clusterName: clusterName('The name that the cluster gives itself.'),
    virtualNodes: setOf(
      'Virtual nodes of that cluster that are selected.',
      256,
      dnsName('Name of a VirtualNode, and the label tributary.dev/virtual-node of its Node.'),
    ),
    remoteNamespace: dnsLabel('Name of the namespace in the foreign cluster.'),
    phase: choice(
      'Pending: being set up. Ready: pods can run there. Failed: pods cannot run there, for the given ' +
        'reason. Ending: being taken down.',
      ['Pending', 'Ready', 'Failed', 'Ending'],
    ),
    reason,
    message,
  },
);

const heldOff: Schema = objectOf<HeldOff>(
  'Pods of one owner that one virtual node could not place.',
  ['owner', 'virtualNode', 'until'],
  {
    owner: {
      type: 'string',
      description:
        'Kind/name of the owner. *: all pods of the namespace are kept on real nodes, as whenAway says.',
      maxLength: 317,
    },
    virtualNode: dnsName('Name of the VirtualNode, and the label tributary.dev/virtual-node of its Node.'),
    until: time('After this time the virtual node is tried again.'),
  },
);

const status = {
  observedGeneration,
  clusters: {
    type: 'array',
    description: 'Every foreign cluster that is selected, or still has the namespace.',
    maxItems: MAX_NAMESPACES,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['cluster'],
    items: cluster,
  },
  podsAtHome: int32(
    'Pods on real nodes that were made before the namespace was offloaded. With podStrategy: Remote, Ready is ' +
      'False until there are none.',
    { minimum: 0 },
  ),
  heldOff: listOf(
    'Owners whose pods are kept off a virtual node for some time, because it could not place one of them.',
    64,
    heldOff,
  ),
  conditions: conditions(Object.values(NAMESPACE_OFFLOADING_CONDITIONS).join(', ')),
} satisfies SchemaOf<NamespaceOffloadingStatus>;

export const namespaceOffloadingDefinition: Definition = {
  type: namespaceOffloadings,
  shortNames: ['nso'],
  columns: [
    column('Strategy', '.spec.podStrategy', 'Where pods may run.'),
    column(
      'Ready',
      '.status.conditions[?(@.type=="Ready")].status',
      'Whether all selected clusters have the namespace.',
    ),
    column('Reason', '.status.conditions[?(@.type=="Ready")].reason', 'Why.'),
    // A printer column shows the first of several values only, so no list of clusters.
    column(
      'Message',
      '.status.conditions[?(@.type=="Ready")].message',
      'Where the namespace is, or why it is not there.',
    ),
    column(
      'When away',
      '.spec.whenAway.pods',
      'What becomes of its pods over there while their cluster is away; empty: what Kubernetes does.',
      { priority: 1 },
    ),
    column(
      'At home',
      '.status.podsAtHome',
      'Pods on real nodes that were made before the namespace was offloaded.',
      {
        type: 'integer',
        priority: 1,
      },
    ),
    AGE,
  ],
  schema: {
    type: 'object',
    description:
      'Stretches its namespace over foreign clusters. Its name is "offloading"; there is at most one in ' +
      'each namespace. The label tributary.dev/offload on the namespace makes one with defaults.',
    required: ['spec'],
    properties: {
      spec: {
        type: 'object',
        description: 'What is wanted.',
        properties: spec,
        'x-kubernetes-validations': [
          {
            rule: "(self.naming == 'Selected') == has(self.remoteName)",
            message: 'remoteName goes with naming: Selected, and only with that',
            reason: 'FieldValueInvalid',
          },
          {
            rule: "!has(self.whenAway) || self.whenAway.pods == 'Move' || !(has(self.whenAway.afterSeconds) || has(self.whenAway.to))",
            message: 'whenAway: afterSeconds and to go with pods: Move only; with Stay, leave them out',
            reason: 'FieldValueInvalid',
          },
          {
            rule: 'self.naming == oldSelf.naming && has(self.remoteName) == has(oldSelf.remoteName) && (!has(self.remoteName) || self.remoteName == oldSelf.remoteName)',
            message: 'naming and remoteName cannot be changed: delete the object and make another',
            reason: 'FieldValueForbidden',
          },
        ],
      },
      status: { type: 'object', description: 'What was found.', properties: status },
    },
    'x-kubernetes-validations': [
      {
        rule: `self.metadata.name == '${OFFLOADING_NAME}'`,
        message: `the name must be "${OFFLOADING_NAME}": there is one for each namespace`,
        reason: 'FieldValueInvalid',
      },
    ],
  },
};
