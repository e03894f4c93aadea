import {
  acceptancePolicies,
  type AcceptancePolicySpec,
  type AcceptancePolicyStatus,
  type AcceptedService,
} from '../acceptance-policy.ts';
import { MAX_POLICY_ENTRIES } from '../limits.ts';
import {
  AGE,
  classMap,
  clusterIDs,
  column,
  homeNamespaces,
  labels,
  observedGeneration,
  precedence,
  prices,
  resourceList,
  taintEffect,
} from './common.ts';
import type { Definition } from './definition.ts';
import { keepForSeconds } from './offer.ts';
import { peerSelector } from './peer-selector.ts';
import { podAdditions } from './pod-additions.ts';
import { choice, conditions, dnsLabel, int32, listOf, objectOf, wholeOf, type Schema } from './schema.ts';

const spec: Schema = objectOf<AcceptancePolicySpec>(
  'Whose offers are taken, how much of them, and what is made of them here.',
  ['peers'],
  {
    peers: peerSelector('The clusters to whose offers the policy applies.'),
    approval: choice(
      'Automatic: these clusters are asked for offers, and offers that pass are taken. Manual: an offer is taken ' +
        'once a person has set spec.approval of its Advertisement.',
      ['Automatic', 'Manual'],
      'Manual',
    ),
    precedence,
    ceilings: resourceList('At most this much of an offer is taken, by resource.'),
    minimum: resourceList('An offer with less than this is refused, by resource.'),
    maxPrices: prices(
      'Highest price by resource. An offer with a higher price is refused; an offer without prices is never ' +
        'refused for its price.',
    ),
    maxKeepForSeconds: keepForSeconds(
      'Longest time, in seconds, for which the provider keeps our pods while this cluster is away, and this cluster ' +
        'keeps the nodes of a provider that is away. The contract names the smaller one of this and the keepForSeconds of ' +
        'the offer. Default: as offered.',
    ),
    requiredLabels: labels('Labels that the offer must have.'),
    namespaces: homeNamespaces('Namespaces of this cluster whose pods may run in the foreign cluster.'),
    ingressClasses: classMap(
      'Ingress classes of this cluster, and the classes that replace them in the foreign cluster. A class ' +
        'that is not named stays the same if the provider offers one of that name; otherwise the Ingress ' +
        'stays home, and an event says so.',
      MAX_POLICY_ENTRIES,
    ),
    storageClasses: classMap(
      'StorageClasses of this cluster with the provisioner tributary.dev/storage, and the classes that ' +
        'replace them in the foreign cluster. This overrides the parameter foreignClass of the class. If ' +
        'neither names a class, the claim stays Pending, and an event says so.',
      MAX_POLICY_ENTRIES,
    ),
    services: listOf(
      'Services of the provider (the status of its Advertisement lists them) to be used here like our own: ' +
        'each becomes a Service here, with the endpoints in the foreign cluster.',
      MAX_POLICY_ENTRIES,
      objectOf<AcceptedService>('One Service.', ['namespace', 'name', 'homeNamespace'], {
        namespace: dnsLabel('Its namespace in the foreign cluster.'),
        name: dnsLabel('Its name in the foreign cluster.'),
        homeNamespace: dnsLabel('Namespace of the Service here. It must exist.'),
        homeName: dnsLabel('Name of the Service here; default: its name in the foreign cluster.'),
      }),
    ),
    shape: choice(
      'Aggregate: one Node stands for the whole foreign cluster. PerNode: one Node for each foreign node, ' +
        'so that no pod is scheduled there that is too large for all of them.',
      ['Aggregate', 'PerNode'],
      'Aggregate',
    ),
    maxNodes: int32('Largest number of Nodes that PerNode makes for one foreign cluster.', {
      default: 16,
      minimum: 1,
      maximum: 256,
    }),
    nodeLabels: labels('Labels for the Nodes.'),
    taintEffect,
    podAdditions: podAdditions('What every pod gets that is sent to these clusters.'),
  },
);

const status: Schema = objectOf<AcceptancePolicyStatus>('Where the policy applies.', [], {
  observedGeneration,
  peers: clusterIDs('Clusters to whose offers the policy was applied.'),
  conditions: conditions('Valid'),
});

export const acceptancePolicyDefinition: Definition = {
  type: acceptancePolicies,
  shortNames: ['ap'],
  columns: [
    column('Approval', '.spec.approval', 'Who takes an offer.'),
    column('Shape', '.spec.shape', 'How Nodes are made from an offer.'),
    column('Precedence', '.spec.precedence', 'The higher number decides.', { type: 'integer', priority: 1 }),
    AGE,
  ],
  schema: wholeOf('Which offers of other clusters are taken.', { spec, status }),
};
