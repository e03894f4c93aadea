import {
  AWAY_AFTER_SECONDS,
  VIRTUAL_NODE_CONDITIONS,
  virtualNodes,
  type HomeApiServer,
  type KubeconfigSecretRef,
  type NamespaceMapping,
  type StricterPolicy,
  type VirtualNodeSpec,
  type VirtualNodeStatus,
} from '../virtual-node.ts';
import { MAX_NODE_SIZES, MAX_STRICTER_POLICIES, OFFER_LIMITS, STRICTER_CAUSES } from '../limits.ts';
import { MAX_VIRTUAL_NODE_NAME } from '../manifest.ts';
import type { Taint } from '../wire.ts';
import { AGE, classMap, column, prices, resourceList, taintEffect } from './common.ts';
import type { Definition } from './definition.ts';
import { podAdditions } from './pod-additions.ts';
import { reflectionRules } from './reflection.ts';
import {
  choice,
  conditions,
  dnsLabel,
  dnsName,
  int32,
  int64,
  listOf,
  objectOf,
  setOf,
  wholeOf,
  type Schema,
} from './schema.ts';

const kubeconfigSecretRef: Schema = objectOf<KubeconfigSecretRef>(
  'The Secret with a kubeconfig for the foreign cluster. The agent may read this Secret and no other ' +
    'one.',
  ['namespace', 'name'],
  {
    namespace: dnsLabel('Namespace of the Secret; usually the one that the agent runs in.'),
    name: dnsName('Name of the Secret.'),
    key: {
      type: 'string',
      description: 'Key of the Secret whose value is the kubeconfig.',
      default: 'kubeconfig',
      minLength: 1,
      maxLength: 253,
      pattern: '^[-._a-zA-Z0-9]+$',
    },
  },
);

const resources: Schema = {
  ...resourceList(
    'What the foreign cluster lends, shown as capacity of the Node: cpu, memory and pods, and other ' +
      'resources (ephemeral-storage, nvidia.com/gpu). The scheduler places no more than this; the quota in ' +
      'the foreign cluster limits what is really granted.',
  ),
  'x-kubernetes-validations': [
    { rule: "'cpu' in self", message: 'cpu is required', reason: 'FieldValueRequired' },
    { rule: "'memory' in self", message: 'memory is required', reason: 'FieldValueRequired' },
    { rule: "'pods' in self", message: 'pods is required', reason: 'FieldValueRequired' },
  ],
};

const taints: Schema = listOf(
  'Taints of the Node, besides tributary.dev/virtual-node.',
  32,
  objectOf<Omit<Taint, 'timeAdded'>>('One taint.', ['key', 'effect'], {
    key: { type: 'string', description: 'Key of the taint.', minLength: 1, maxLength: 317 },
    value: { type: 'string', description: 'Value of the taint.', maxLength: 63 },
    effect: choice('What happens to pods that do not tolerate it.', [
      'NoSchedule',
      'PreferNoSchedule',
      'NoExecute',
    ]),
  }),
);

/** NamespaceOffloadings have been checked; once more for each of them would be over the budget of CEL. */
function unvalidated({ items, ...schema }: Schema): Schema {
  if (items === undefined) return schema;
  const { 'x-kubernetes-validations': _validations, ...rest } = items;
  return { ...schema, items: rest };
}

const namespaceMapping: Schema = objectOf<NamespaceMapping>(
  'Pods of the home namespace run in the tenant namespace.',
  ['homeNamespace', 'tenantNamespace'],
  {
    homeNamespace: dnsLabel('A namespace of this cluster; each at most once.'),
    tenantNamespace: dnsLabel(
      'A namespace of the foreign cluster, made for us by its administrator; each at most once, since two home ' +
        'namespaces in one would mix objects of the same name.',
    ),
    reflection: unvalidated(reflectionRules),
    leaving: {
      type: 'boolean',
      description:
        'It is to be taken out: what runs there goes on until somebody ends it, and nothing new is begun there.',
    },
  },
);

const namespaces: Schema = {
  type: 'array',
  description:
    'Which home namespaces are offloaded, and to which foreign namespace. If pods of other namespaces are ' +
    'bound to the Node, their status says that the namespace is not offloaded.',
  maxItems: 256,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['homeNamespace'],
  items: namespaceMapping,
  'x-kubernetes-validations': [
    {
      rule: 'self.all(a, self.exists_one(b, b.tenantNamespace == a.tenantNamespace))',
      message: 'a tenantNamespace may be given once only',
      reason: 'FieldValueInvalid',
    },
    {
      rule: 'self.all(a, oldSelf.all(b, b.homeNamespace != a.homeNamespace || b.tenantNamespace == a.tenantNamespace))',
      message: 'the tenantNamespace of a home namespace cannot be changed: take the home namespace out first',
      reason: 'FieldValueForbidden',
    },
  ],
};

const homeApiServer: Schema = objectOf<HomeApiServer>(
  'The address at which offloaded pods reach the API server of this cluster. Without it they get no ' +
    'service-account token for it.',
  ['host', 'port'],
  {
    host: {
      type: 'string',
      description:
        'An address or name that pods of the foreign cluster can reach and that the serving certificate names.',
      minLength: 1,
      maxLength: 253,
      pattern: '^[a-zA-Z0-9]([-.:a-zA-Z0-9]*[a-zA-Z0-9])?$|^[0-9a-fA-F:]+$',
    },
    port: int32('TCP port.', { default: 6443, minimum: 1, maximum: 65535 }),
  },
);

const spec: Schema = {
  ...objectOf<VirtualNodeSpec>(
    'What is wanted: which foreign cluster, how the Node looks, what is offloaded.',
    ['kubeconfigSecretRef', 'resources'],
    {
      nodeName: dnsName(
        "Name of the Node in this cluster; default: the VirtualNode's own name. It cannot be changed later: pods are bound to it.",
        63,
      ),
      kubeconfigSecretRef,
      resources,
      nodeSizes: listOf(
        'What a single foreign node has for a pod, of the largest nodes. A new pod that requests more than each of ' +
          'them has is kept off the Node, although the Node as a whole has room for it. Without this field, only ' +
          'resources count. Peering writes it for a virtual node that stands for several foreign nodes.',
        MAX_NODE_SIZES,
        resourceList('What one foreign node has; of a resource that is not named, nothing.'),
      ),
      prices: prices(
        'What the foreign cluster asks for, by resource; a resource without a price costs nothing. Of the virtual ' +
          'nodes that a new pod may use, the cheapest for its requests is preferred. Peering writes what the ' +
          'contract says.',
      ),
      labels: {
        type: 'object',
        description:
          'Labels of the Node, besides those that every virtual node has; for affinity and topology.',
        maxProperties: 128,
        additionalProperties: { type: 'string', description: 'Value of the label.', maxLength: 63 },
      },
      annotations: {
        type: 'object',
        description: 'Annotations of the Node.',
        maxProperties: 128,
        additionalProperties: { type: 'string', description: 'Value of the annotation.', maxLength: 16384 },
      },
      taintEffect,
      taints,
      podAdditions: podAdditions(
        'What every pod gets that is sent to the foreign cluster. The AcceptancePolicy of a peer decides for its VirtualNodes.',
      ),
      awayAfterSeconds: int32(
        'The foreign cluster counts as away when nothing has answered for this time, in seconds: the Node is not Ready, ' +
          'nor are its pods. A shorter gap changes nothing. A credential that is refused is told at once.',
        { default: AWAY_AFTER_SECONDS, minimum: 5, maximum: 3600 },
      ),
      namespaces,
      homeApiServer,
      ingressClasses: classMap(
        'Ingress classes of this cluster, and the classes that replace them in the foreign cluster. An ' +
          'Ingress of another class stays home.',
        64,
      ),
      storageClasses: classMap(
        'StorageClasses of this cluster with the provisioner tributary.dev/storage, and the classes that ' +
          'replace them in the foreign cluster. This overrides the parameter foreignClass of the class. If ' +
          'neither names a class, the claim is not made in the foreign cluster.',
        64,
      ),
      offeredStorageClasses: setOf(
        'Classes that the provider lends, if it has said so; claims that are mapped to other classes are ' +
          'refused here.',
        64,
        dnsName('Class in the foreign cluster.'),
      ),
      priorityClasses: setOf(
        'PriorityClasses of the foreign cluster that pods may name. A pod that names one of these at home has it there; any ' +
          'other has no priority class there. The provider decides for VirtualNodes of a peering.',
        OFFER_LIMITS.priorityClasses,
        dnsName('Name of a PriorityClass.'),
      ),
      declaredFeatures: setOf(
        'Features of the node runtime that all foreign nodes declare (KEP-5328); pods that need another one ' +
          'are not scheduled here.',
        64,
        {
          type: 'string',
          description: 'Name of a feature.',
          maxLength: 128,
          pattern: '^[A-Z][A-Za-z0-9]*(/[A-Z][A-Za-z0-9]*)*$',
        },
      ),
    },
  ),
  'x-kubernetes-validations': [
    {
      rule: 'has(self.nodeName) == has(oldSelf.nodeName) && (!has(self.nodeName) || self.nodeName == oldSelf.nodeName)',
      message: 'nodeName cannot be changed: pods are bound to it; make another VirtualNode',
      reason: 'FieldValueForbidden',
      fieldPath: '.nodeName',
    },
  ],
};

const status: Schema = objectOf<VirtualNodeStatus>('What the agent found; only the agent writes it.', [], {
  observedGeneration: int64('The metadata.generation that the conditions describe.', { minimum: 0 }),
  nodeName: {
    type: 'string',
    description: 'The Node that stands for the foreign cluster.',
    maxLength: 253,
  },
  // Not a map: a home namespace that was given another tenant namespace is here with both.
  namespaces: listOf(
    'Namespaces that the agent looks after: those in the spec, and removed ones in which there are still ' +
      'pods.',
    1024,
    namespaceMapping,
  ),
  stricterPolicies: listOf(
    'NetworkPolicies that close more for pods over there than at home, or are not in force there.',
    MAX_STRICTER_POLICIES,
    objectOf<StricterPolicy>('One policy.', ['homeNamespace', 'policy', 'causes'], {
      homeNamespace: dnsLabel('Namespace of the policy.'),
      policy: dnsName('Name of the NetworkPolicy.'),
      causes: listOf(
        'What is closed and why, rule by rule. Where there are too many, the last one says how many more there are.',
        STRICTER_CAUSES.most,
        { type: 'string', description: 'Rule and cause; for people.', maxLength: STRICTER_CAUSES.length },
      ),
    }),
  ),
  foreignVersion: {
    type: 'string',
    description: 'Version of the foreign API server, as major.minor.patch.',
    maxLength: 64,
  },
  conditions: conditions(Object.values(VIRTUAL_NODE_CONDITIONS).join(', ')),
});

export const virtualNodeDefinition: Definition = {
  type: virtualNodes,
  shortNames: ['vn'],
  columns: [
    column('Node', '.status.nodeName', 'Name of the Node.'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', 'Whether the Node is Ready.'),
    column('Reason', '.status.conditions[?(@.type=="Ready")].reason', 'Why the Node is Ready, or not.'),
    column('Foreign-Version', '.status.foreignVersion', 'Version of the foreign API server.'),
    AGE,
  ],
  schema: {
    ...wholeOf(
      'A foreign cluster as a node of this one. For each there is one Node, and one agent that runs its ' +
        'pods.',
      { spec, status },
    ),
    'x-kubernetes-validations': [
      {
        rule: `self.metadata.name.size() <= ${MAX_VIRTUAL_NODE_NAME}`,
        message: `the name may have at most ${MAX_VIRTUAL_NODE_NAME} characters: names of other objects are made from it`,
      },
      {
        rule: "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        message: 'the name must be a DNS label: lower-case letters, digits and dashes, no dot',
      },
    ],
  },
};
