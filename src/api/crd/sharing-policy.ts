import { MAX_POLICY_ENTRIES, OFFER_LIMITS } from '../limits.ts';
import type { ReflectableKind } from '../reflection.ts';
import {
  sharingPolicies,
  type ContainerLimits,
  type OfferedServices,
  type SharingPolicySpec,
  type SharingPolicyStatus,
} from '../sharing-policy.ts';
import {
  AGE,
  clusterIDs,
  column,
  defaultRequests,
  labels,
  names,
  observedGeneration,
  precedence,
  prices,
  quantity,
  resourceList,
  taintKey,
  toleration,
} from './common.ts';
import type { Definition } from './definition.ts';
import { keepForSeconds, podSecurity } from './offer.ts';
import { labelSelector } from './label-selector.ts';
import { peerSelector } from './peer-selector.ts';
import { apiGroup, apiResource } from './reflection.ts';
import { NEVER_TOLERATED } from '../taints.ts';
import { DEFAULT_WRITES, WRITE_BOUNDS, type WriteTerms } from '../write-terms.ts';
import {
  choice,
  conditions,
  dnsLabel,
  dnsName,
  int32,
  listOf,
  objectOf,
  setOf,
  wholeOf,
  type Schema,
  type SchemaOf,
} from './schema.ts';

const CLASS = 'Name of a class.';

const TOLERATIONS_OF_GUESTS =
  'Keys of taints that pods of peers may tolerate of their own accord; "*" for any, but those of control planes and ' +
  'cordoned nodes. Other tolerations are taken off their pods. Those of not-ready and unreachable nodes stay.';

const percent = (description: string, fallback: number): Schema =>
  int32(description, { default: fallback, minimum: 0, maximum: 100 });

/** How much, of which nodes. */
const amounts = {
  sharePercent: percent('Percent of what is free on the nodes that lend, from 0 to 100.', 50),
  limits: resourceList(
    'Highest amounts, by resource. Of resources that no node counts, such as storage, these amounts are ' +
      'offered.',
  ),
  defaultRequests: defaultRequests(
    'Requests of a container of a peer that names none; 0 where nothing is said here. Limits are not set. An amount ' +
      "above 0 is set aside for each pod that the peer's virtual node may hold, which then shows less room.",
  ),
  withhold: names('Resources that are never offered.', 'Name of a resource.', 64),
  nodeSelector: labels(
    'Only nodes with all these labels lend, and pods of peers run only on them; without it, all real, ' +
      'schedulable nodes lend.',
  ),
  thresholdPercent: percent('Percent by which a free amount must change before a new offer is sent.', 10),
} satisfies Partial<SchemaOf<SharingPolicySpec>>;

const writeBound = (word: keyof WriteTerms, description: string): Schema =>
  int32(description, { default: DEFAULT_WRITES[word], ...WRITE_BOUNDS[word] });

/** What peers may store here. */
const writes = objectOf<WriteTerms>(
  'How much peers may write into this cluster: etcd keeps each version of an object until it is compacted.',
  [],
  {
    objectKiB: writeBound('objectKiB', 'The largest object of a peer, in KiB. A pod may have half of it.'),
    objects: writeBound(
      'objects',
      'How many objects a peer may have in all its namespaces, finished pods included. Pods that run come on top.',
    ),
    kibPerMinute: writeBound(
      'kibPerMinute',
      'How much a peer may write in a minute, in KiB, over all its namespaces; four times as much at once after a ' +
        'rest. A pod counts six times, because its status and its events are stored as well. All peers together may write twice ' +
        'the highest of these.',
    ),
  },
);

/** Under which rules. */
const rules = {
  writes,
  podSecurity: {
    ...podSecurity(
      'Pod Security level that pods of peers must satisfy. privileged: none; their pods can then take over the nodes. Only for ' +
        'clusters of the same owner; everything else that this policy says still holds.',
    ),
    default: 'baseline',
  },
  runtimeClassName: dnsName(
    'RuntimeClass of every pod of a peer, for example a hardened one. It is set whatever the pod asks ' +
      'for; pods with any other are refused.',
  ),
  tolerations: listOf(
    'Added to every pod of a peer; use it together with nodeSelector for nodes that a taint reserves for ' +
      'guests.',
    16,
    toleration,
  ),
  ownTolerations: setOf(TOLERATIONS_OF_GUESTS, 64, {
    ...taintKey('Key of a taint, or "*".'),
    pattern: '^(\\*|[-A-Za-z0-9_./]+)$',
    'x-kubernetes-validations': [
      {
        rule: `!${JSON.stringify(NEVER_TOLERATED)}.exists(never, self.startsWith(never))`,
        message: 'taints of control planes, of cordoned nodes and of virtual nodes are opened to no peer',
      },
    ],
  }),
  imagePullPolicy: choice(
    'Always: nodes pull the images of peers anew for each container, with the credentials of the pod, so that no peer runs ' +
      'an image that others have left on a node. AsAsked: as the pod says; for clusters of the same owner.',
    ['Always', 'AsAsked'],
    'Always',
  ),
  containerLimits: objectOf<ContainerLimits>(
    'What a container of a peer may use at most. One that names no limit gets this one; one that names more is refused. ' +
      'Without it, only requests are bounded.',
    [],
    {
      cpu: quantity('CPU, for example 4.'),
      memory: quantity('Memory, for example 8Gi.'),
      'ephemeral-storage': quantity('Disk of the node, for example 20Gi.'),
    },
  ),
  externalNames: choice(
    'Whether Services of peers may be of type ExternalName. An ingress controller or a gateway would follow the name to ' +
      'wherever it can reach, so Allow excludes ingressClasses and routes of the Gateway API. Those that were made while it ' +
      'said Allow stay.',
    ['Allow', 'Forbid'],
    'Forbid',
  ),
  isolation: choice(
    'Tenant: a NetworkPolicy lets pods of a peer reach each other, their home, DNS and addresses outside ' +
      'this cluster, but no pod of ours or of another peer; and no pod of another peer reaches them. None: ' +
      'no NetworkPolicy is made. Tenant needs a network plug-in that enforces NetworkPolicies.',
    ['Tenant', 'None'],
    'Tenant',
  ),
  homeApiServer: choice(
    'Whether pods of peers reach the API server of their home through the tunnel, if the home lets them. Forbid: the ' +
      'home is told so, closes the way and gives its pods no tokens; the gateway drops what pods send to the address that the ' +
      'home names.',
    ['Allow', 'Forbid'],
    'Allow',
  ),
  tethering: choice(
    'Whether peers may tether themselves to this cluster: it then decides what runs there, and uses them as devices. ' +
      'Forbid: who asks for that is refused.',
    ['Allow', 'Forbid'],
    'Forbid',
  ),
  priorityClasses: setOf(
    'PriorityClasses of this cluster that pods of peers may name besides, whatever maxPriority says. A pod that names a class of ' +
      'the same name at home has it here. Only classes with preemptionPolicy: Never, and with a value that is not below ' +
      'maxPriority, are offered: pods of such a class are placed before others that wait, and are the last to go when a node is ' +
      'short, but push out none.',
    OFFER_LIMITS.priorityClasses,
    {
      ...dnsName('Name of a PriorityClass.'),
      'x-kubernetes-validations': [
        {
          rule: "!self.startsWith('system-')",
          message: 'classes of the cluster itself are lent to no peer',
        },
      ],
    },
  ),
  maxPriority: int32('Highest priority that pods of peers may have, but for those of priorityClasses.', {
    default: 0,
    minimum: -2_147_483_648,
    maximum: 1_000_000_000,
  }),
  namespaceNaming: choice(
    'Names of tenant namespaces. Suffixed: made from the home namespace and the peer, whatever the peer ' +
      'asks for. SameIfFree: the name that the peer asks for, or else the name of the home namespace, if ' +
      'namespaceNames opens that name and it is free, so that names of Services mean the same in both clusters. ' +
      'Existing tenants keep their names.',
    ['Suffixed', 'SameIfFree'],
    'Suffixed',
  ),
  namespaceNames: setOf(
    'Names that peers may take with SameIfFree, besides those that end with their ID; without it, none. "*" stands for any ' +
      'characters; such a pattern opens names with a hyphen only, because any other could be a domain of the internet, for ' +
      'which the peer would answer your pods. Names of domains (com, svc, local, ...), of your cluster and of programs ' +
      'that other policies exempt (openshift-..., istio-..., ...-system) are never given.',
    MAX_POLICY_ENTRIES,
    {
      type: 'string',
      description: 'A name, or a pattern with "*".',
      maxLength: 63,
      pattern: '^[-a-z0-9*]+$',
    },
  ),
  services: listOf(
    'Services of this cluster that peers may use: their pods, at the ports of the Service, can then be reached from ' +
      "the peer's network.",
    MAX_POLICY_ENTRIES,
    objectOf<OfferedServices>('Services of one namespace.', ['namespace', 'selector'], {
      namespace: dnsLabel('Namespace of the Services.'),
      selector: labelSelector('Labels of the Services; an empty selector selects all of the namespace.'),
    }),
  ),
  reflectableKinds: {
    type: 'array',
    description:
      'Kinds that peers may bring into their tenant namespaces, besides pods and what belongs to them. ' +
      'Tributary cannot pass on rights that it does not have: give it a ClusterRole with the label tributary.dev/aggregate-to-lending: "true".',
    maxItems: MAX_POLICY_ENTRIES,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['group', 'resource'],
    items: objectOf<ReflectableKind>('One kind.', ['group', 'resource'], {
      group: apiGroup('API group, for example times.example.com.'),
      resource: apiResource('Plural name, for example timetables.'),
    }),
  },
  onEnd: choice(
    "What becomes of a peer's pods when it is revoked or its contract ends: Delete at once, or Keep them for " +
      'keepForSeconds.',
    ['Delete', 'Keep'],
    'Delete',
  ),
  keepForSeconds: {
    ...keepForSeconds('How long pods are kept if their home is away, in seconds.'),
    default: 86_400,
  },
} satisfies Partial<SchemaOf<SharingPolicySpec>>;

const fields: Schema = objectOf<SharingPolicySpec>(
  'What is offered, how much, to whom and under which rules.',
  ['peers'],
  {
    peers: peerSelector('Who may ask.'),
    approval: choice(
      'Who lets a peer in. Automatic: this policy, at once. Manual: a person, who sets spec.approval of its ' +
        'PeeringRequest. Token: a peer that brings a join token of ours is let in; see `tributary token create`.',
      ['Automatic', 'Manual', 'Token'],
      'Manual',
    ),
    precedence,
    ...amounts,
    ...rules,
    prices: prices('Prices by resource; without it, nothing is asked for.'),
    labels: labels('Labels that are added to the offer, for affinity in the consumer cluster.'),
    nodeLabels: names(
      'Labels of nodes that offers show, besides zone, region and instance type.',
      'Key of a label.',
      16,
    ),
    shareImages: {
      type: 'boolean',
      description:
        'Whether offers list the images that the nodes have; such a list tells much about the owner.',
      default: false,
    },
    storageClasses: names('Storage classes that peers may use.', CLASS, 64),
    ingressClasses: names('Ingress classes that peers may use.', CLASS, 64),
    ingressHosts: setOf(
      'Hosts that peers\' Ingresses may name. Each stands for itself and all names below it; "*" for any host. Without ' +
        'it they may name none, because an Ingress that names a host gets its traffic.',
      MAX_POLICY_ENTRIES,
      {
        type: 'string',
        description: 'A host, for example peers.example.com.',
        maxLength: 253,
        pattern: '^(\\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$',
      },
    ),
    loadBalancerClasses: names('Load-balancer classes that peers may use.', CLASS, 64),
    offerSeconds: int32('How long an offer is valid, in seconds; it is renewed after two thirds of that.', {
      default: 3600,
      minimum: 10,
      maximum: 604_800,
    }),
  },
);

const spec: Schema = {
  ...fields,
  'x-kubernetes-validations': [
    {
      rule:
        "self.externalNames != 'Allow' || ((!has(self.ingressClasses) || self.ingressClasses.size() == 0) && " +
        "(!has(self.reflectableKinds) || self.reflectableKinds.all(k, k.group != 'gateway.networking.k8s.io')))",
      message:
        'externalNames: Allow excludes ingressClasses and routes of the Gateway API: their controllers would follow the names of ' +
        'peers to wherever they can reach',
      reason: 'FieldValueForbidden',
      fieldPath: '.externalNames',
    },
  ],
};

const status: Schema = objectOf<SharingPolicyStatus>('Where the policy applies.', [], {
  observedGeneration,
  peers: clusterIDs('Clusters to which the policy applies now.'),
  free: resourceList('Everything that is free and could be lent, before the share is applied.'),
  conditions: conditions('Valid'),
});

export const sharingPolicyDefinition: Definition = {
  type: sharingPolicies,
  shortNames: ['sp'],
  columns: [
    column('Approval', '.spec.approval', 'Who lets a peer in.'),
    column('Share', '.spec.sharePercent', 'Percent of what is free.', { type: 'integer' }),
    column('Precedence', '.spec.precedence', 'The higher number decides.', { type: 'integer', priority: 1 }),
    column('Free-CPU', '.status.free.cpu', 'What is free, before the share is applied.'),
    column('Free-Memory', '.status.free.memory', 'What is free, before the share is applied.'),
    AGE,
  ],
  schema: wholeOf('What this cluster lends, how much and to whom.', { spec, status }),
};
