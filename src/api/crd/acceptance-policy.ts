import {
  acceptancePolicies,
  type AcceptancePolicySpec,
  type AcceptancePolicyStatus,
  type AcceptedService,
} from '../acceptance-policy.ts';
import { MAX_POLICY_ENTRIES } from '../limits.ts';
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
import { conditions, dnsLabel, dnsName, type Schema, type SchemaOf } from './schema.ts';

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
    ingressClasses: {
      type: 'object',
      description:
        'Classes of Ingresses here, and what they become over there. A class that is not named stays what it is where ' +
        'the provider offers one of that name; else the Ingress stays home, and an event says so.',
      maxProperties: MAX_POLICY_ENTRIES,
      additionalProperties: dnsName('Class over there.'),
    },
    storageClasses: {
      type: 'object',
      description:
        'StorageClasses here, of provisioner tributary.dev/storage, and the classes that they become over there; goes before the ' +
        'parameter foreignClass of the class. A claim whose class neither names stays Pending, and an event says so.',
      maxProperties: MAX_POLICY_ENTRIES,
      additionalProperties: dnsName('Class over there.'),
    },
    services: {
      type: 'array',
      description:
        'Services that the provider offers (status of its Advertisement lists them), to be used here as our own: each ' +
        'becomes a Service with the endpoints over there.',
      maxItems: MAX_POLICY_ENTRIES,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        description: 'One Service.',
        required: ['namespace', 'name', 'homeNamespace'],
        properties: {
          namespace: dnsLabel('Its namespace over there.'),
          name: dnsLabel('Its name over there.'),
          homeNamespace: dnsLabel('Namespace of the Service here. It must exist.'),
          homeName: dnsLabel('Name of the Service here; default: as over there.'),
        } satisfies SchemaOf<AcceptedService>,
      },
    },
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
