import { sharingPolicies, type SharingPolicySpec, type SharingPolicyStatus } from '../sharing-policy.ts';
import {
  AGE,
  clusterIDs,
  column,
  labels,
  names,
  observedGeneration,
  precedence,
  prices,
  resourceList,
} from './common.ts';
import type { Definition } from './definition.ts';
import { keepForSeconds, podSecurity } from './offer.ts';
import { peerSelector } from './peer-selector.ts';
import { conditions, dnsName, type Schema, type SchemaOf } from './schema.ts';

const CLASS = 'Name of a class.';

const percent = (description: string, fallback: number): Schema => ({
  type: 'integer',
  format: 'int32',
  description,
  default: fallback,
  minimum: 0,
  maximum: 100,
});

/** How much, of which nodes. */
const amounts = {
  sharePercent: percent('Percent of what is free on the nodes that lend, from 0 to 100.', 50),
  limits: resourceList(
    'Amounts that are never exceeded, by resource; also what is offered of resources that no node counts, such as ' +
      'storage.',
  ),
  withhold: names('Resources that are never offered.', 'Name of a resource.', 64),
  nodeSelector: labels('Only nodes with all these labels lend; without it all real, schedulable nodes do.'),
  thresholdPercent: percent('Percent by which a free amount must move before a new offer goes out.', 10),
} satisfies Partial<SchemaOf<SharingPolicySpec>>;

/** Under which rules. */
const rules = {
  podSecurity: {
    ...podSecurity('Pod Security level that pods of peers have to keep to.'),
    default: 'baseline',
  },
  runtimeClassName: dnsName(
    'RuntimeClass for pods of peers, a hardened one for example. Written on tenant namespaces as tributary.dev/runtime-class; whoever relies on it must have an admission policy of their own enforce it.',
  ),
  maxPriority: {
    type: 'integer',
    format: 'int32',
    description: 'Highest priority that pods of peers may have.',
    default: 0,
    minimum: -2_147_483_648,
    maximum: 1_000_000_000,
  },
  onEnd: {
    type: 'string',
    description:
      "What becomes of a peer's pods when it is revoked or its contract ends: Delete at once, or Keep them for " +
      'keepForSeconds.',
    default: 'Delete',
    enum: ['Delete', 'Keep'],
  },
  keepForSeconds: {
    ...keepForSeconds('How long pods outlive a home that does not come back, in seconds.'),
    default: 3600,
  },
} satisfies Partial<SchemaOf<SharingPolicySpec>>;

const spec: Schema = {
  type: 'object',
  description: 'What is offered, how much, to whom and under which rules.',
  required: ['peers'],
  properties: {
    peers: peerSelector('Who may ask.'),
    approval: {
      type: 'string',
      description:
        'Who lets a peer in. Automatic: this policy, at once. Manual: a person, who sets spec.approval of its ' +
        'PeeringRequest. Token: whoever brings a join token of ours; see `tributary token create`.',
      default: 'Manual',
      enum: ['Automatic', 'Manual', 'Token'],
    },
    precedence,
    ...amounts,
    ...rules,
    prices: prices('What is asked for, by resource; without it nothing is.'),
    labels: labels('Labels that are added to the offer, for affinity over there.'),
    nodeLabels: names(
      'Labels of nodes that offers show, besides zone, region and instance type.',
      'Key of a label.',
      16,
    ),
    shareImages: {
      type: 'boolean',
      description: 'Whether offers tell which images the nodes hold; they tell much about the owner.',
      default: false,
    },
    storageClasses: names('Storage classes that peers may use.', CLASS, 64),
    ingressClasses: names('Ingress classes that peers may use.', CLASS, 64),
    loadBalancerClasses: names('Load-balancer classes that peers may use.', CLASS, 64),
    offerSeconds: {
      type: 'integer',
      format: 'int32',
      description: 'How long an offer holds, in seconds; it is renewed after two thirds of that.',
      default: 3600,
      minimum: 10,
      maximum: 604_800,
    },
  } satisfies SchemaOf<SharingPolicySpec>,
};

const status: Schema = {
  type: 'object',
  description: 'Where the policy is at work.',
  properties: {
    observedGeneration,
    peers: clusterIDs('Clusters about which it decides today.'),
    free: resourceList('What is free and could be lent in all, before the share is taken.'),
    conditions: conditions('Valid'),
  } satisfies SchemaOf<SharingPolicyStatus>,
};

export const sharingPolicyDefinition: Definition = {
  type: sharingPolicies,
  singular: 'sharingpolicy',
  shortNames: ['sp'],
  columns: [
    column('Approval', '.spec.approval', 'Who lets a peer in.'),
    column('Share', '.spec.sharePercent', 'Percent of what is free.', { type: 'integer' }),
    column('Precedence', '.spec.precedence', 'The higher number decides.', { type: 'integer', priority: 1 }),
    column('Free-CPU', '.status.free.cpu', 'What is free, before the share.'),
    column('Free-Memory', '.status.free.memory', 'What is free, before the share.'),
    AGE,
  ],
  schema: {
    type: 'object',
    description: 'What this cluster lends, how much and to whom.',
    required: ['spec'],
    properties: { spec, status },
  },
};
