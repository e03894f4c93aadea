import {
  acceptancePolicies,
  type AcceptancePolicySpec,
  type AcceptancePolicyStatus,
} from '../acceptance-policy.ts';
import {
  AGE,
  clusterIDs,
  column,
  homeNamespaces,
  labels,
  observedGeneration,
  precedence,
  prices,
  resourceList,
} from './common.ts';
import type { Definition } from './definition.ts';
import { peerSelector } from './peer-selector.ts';
import { conditions, type Schema, type SchemaOf } from './schema.ts';

const spec: Schema = {
  type: 'object',
  description: 'Whose offers are taken, how much of them, and what becomes of it here.',
  required: ['peers'],
  properties: {
    peers: peerSelector('Whose offers it speaks of.'),
    approval: {
      type: 'string',
      description:
        'Automatic: these clusters are asked for offers, and offers that pass are taken. Manual: an offer is taken ' +
        'once a person has set spec.approval of its Advertisement.',
      default: 'Manual',
      enum: ['Automatic', 'Manual'],
    },
    precedence,
    ceilings: resourceList('No more than this is taken of an offer, by resource.'),
    minimum: resourceList('An offer with less than this is refused, by resource.'),
    maxPrices: prices(
      'An offer that asks for more is refused, by resource; one that asks for nothing never is.',
    ),
    requiredLabels: labels('Labels that the offer must bear.'),
    namespaces: homeNamespaces('Namespaces of this cluster whose pods may run over there.'),
    shape: {
      type: 'string',
      description:
        'Aggregate: one Node stands for the whole foreign cluster. PerNode: one for each node over there, so that a ' +
        'pod that is too large for any of them is not attracted.',
      default: 'Aggregate',
      enum: ['Aggregate', 'PerNode'],
    },
    maxNodes: {
      type: 'integer',
      format: 'int32',
      description: 'Most Nodes that PerNode makes for one foreign cluster.',
      default: 16,
      minimum: 1,
      maximum: 256,
    },
    nodeLabels: labels('Labels for the Nodes.'),
  } satisfies SchemaOf<AcceptancePolicySpec>,
};

const status: Schema = {
  type: 'object',
  description: 'Where the policy is at work.',
  properties: {
    observedGeneration,
    peers: clusterIDs('Clusters whose offers it has decided about.'),
    conditions: conditions('Valid'),
  } satisfies SchemaOf<AcceptancePolicyStatus>,
};

export const acceptancePolicyDefinition: Definition = {
  type: acceptancePolicies,
  singular: 'acceptancepolicy',
  shortNames: ['ap'],
  columns: [
    column('Approval', '.spec.approval', 'Who takes an offer.'),
    column('Shape', '.spec.shape', 'How Nodes are made of it.'),
    column('Precedence', '.spec.precedence', 'The higher number decides.', { type: 'integer', priority: 1 }),
    AGE,
  ],
  schema: {
    type: 'object',
    description: 'Which offers of other clusters are taken.',
    required: ['spec'],
    properties: { spec, status },
  },
};
