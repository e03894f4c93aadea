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
  description: 'Whose offers are taken, how much of them, and what is made of them here.',
  required: ['peers'],
  properties: {
    peers: peerSelector('The clusters to whose offers the policy applies.'),
    approval: {
      type: 'string',
      description:
        'Automatic: these clusters are asked for offers, and offers that pass are taken. Manual: an offer is taken ' +
        'once a person has set spec.approval of its Advertisement.',
      default: 'Manual',
      enum: ['Automatic', 'Manual'],
    },
    precedence,
    ceilings: resourceList('At most this much of an offer is taken, by resource.'),
    minimum: resourceList('An offer with less than this is refused, by resource.'),
    maxPrices: prices(
      'Highest price by resource. An offer with a higher price is refused; an offer without prices is never ' +
        'refused for its price.',
    ),
    requiredLabels: labels('Labels that the offer must have.'),
    namespaces: homeNamespaces('Namespaces of this cluster whose pods may run in the foreign cluster.'),
    ingressClasses: {
      type: 'object',
      description:
        'Ingress classes of this cluster, and the classes that replace them in the foreign cluster. A class ' +
        'that is not named stays the same if the provider offers one of that name; otherwise the Ingress ' +
        'stays home, and an event says so.',
      maxProperties: MAX_POLICY_ENTRIES,
      additionalProperties: dnsName('Class in the foreign cluster.'),
    },
    storageClasses: {
      type: 'object',
      description:
        'StorageClasses of this cluster with the provisioner tributary.dev/storage, and the classes that ' +
        'replace them in the foreign cluster. This overrides the parameter foreignClass of the class. If ' +
        'neither names a class, the claim stays Pending, and an event says so.',
      maxProperties: MAX_POLICY_ENTRIES,
      additionalProperties: dnsName('Class in the foreign cluster.'),
    },
    services: {
      type: 'array',
      description:
        'Services of the provider (the status of its Advertisement lists them) to be used here like our own: ' +
        'each becomes a Service here, with the endpoints in the foreign cluster.',
      maxItems: MAX_POLICY_ENTRIES,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        description: 'One Service.',
        required: ['namespace', 'name', 'homeNamespace'],
        properties: {
          namespace: dnsLabel('Its namespace in the foreign cluster.'),
          name: dnsLabel('Its name in the foreign cluster.'),
          homeNamespace: dnsLabel('Namespace of the Service here. It must exist.'),
          homeName: dnsLabel('Name of the Service here; default: its name in the foreign cluster.'),
        } satisfies SchemaOf<AcceptedService>,
      },
    },
    shape: {
      type: 'string',
      description:
        'Aggregate: one Node stands for the whole foreign cluster. PerNode: one Node for each foreign node, ' +
        'so that no pod is scheduled there that is too large for all of them.',
      default: 'Aggregate',
      enum: ['Aggregate', 'PerNode'],
    },
    maxNodes: {
      type: 'integer',
      format: 'int32',
      description: 'Largest number of Nodes that PerNode makes for one foreign cluster.',
      default: 16,
      minimum: 1,
      maximum: 256,
    },
    nodeLabels: labels('Labels for the Nodes.'),
  } satisfies SchemaOf<AcceptancePolicySpec>,
};

const status: Schema = {
  type: 'object',
  description: 'Where the policy applies.',
  properties: {
    observedGeneration,
    peers: clusterIDs('Clusters to whose offers the policy was applied.'),
    conditions: conditions('Valid'),
  } satisfies SchemaOf<AcceptancePolicyStatus>,
};

export const acceptancePolicyDefinition: Definition = {
  type: acceptancePolicies,
  singular: 'acceptancepolicy',
  shortNames: ['ap'],
  columns: [
    column('Approval', '.spec.approval', 'Who takes an offer.'),
    column('Shape', '.spec.shape', 'How Nodes are made from an offer.'),
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
