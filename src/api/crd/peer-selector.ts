import { DISCOVERY_SOURCES, type PeerSelector } from '../peer-selector.ts';
import { clusterIDs, labels, secretKeyRef } from './common.ts';
import { choice, objectOf, type Schema, type Validation } from './schema.ts';

const NAMES_SOMEBODY =
  'has(self.clusterIDs) || has(self.networkKeySecretRef) || has(self.matchLabels) || has(self.anyone)';

const RULES: readonly Validation[] = [
  {
    rule: '!has(self.anyone) || self.anyone',
    message: 'anyone can only be true; leave it out where not everyone is meant',
    reason: 'FieldValueInvalid',
    fieldPath: '.anyone',
  },
  {
    rule: '!has(self.anyone) || !(has(self.clusterIDs) || has(self.networkKeySecretRef) || has(self.matchLabels))',
    message:
      'anyone: true means every cluster, so that clusterIDs, networkKeySecretRef and matchLabels would have no effect: give one or the other',
    reason: 'FieldValueForbidden',
    fieldPath: '.anyone',
  },
  {
    rule: `!has(self.discovery) || ${NAMES_SOMEBODY}`,
    message:
      'discovery only narrows a selection: add clusterIDs, networkKeySecretRef, matchLabels, or anyone: true',
    reason: 'FieldValueInvalid',
    fieldPath: '.discovery',
  },
];

/** Who a policy speaks of. Whatever leaves it open is refused: `anyone` has to be said. */
export const peerSelector = (description: string): Schema => ({
  ...objectOf<PeerSelector>(
    `${description} A peer is meant where any one of clusterIDs, networkKeySecretRef, matchLabels or anyone says so; ` +
      'an empty selector selects nobody.',
    [],
    {
      clusterIDs: {
        ...clusterIDs('Clusters by their ClusterID, which nobody can claim for another.'),
        minItems: 1,
      },
      networkKeySecretRef: secretKeyRef(
        'A Secret with the key of a network of clusters. It selects every peer that proves to hold the same ' +
          'key. The key itself is never sent.',
        'key',
      ),
      matchLabels: {
        ...labels(
          'Clusters whose ForeignCluster object has all these labels; people of this cluster set them.',
        ),
        minProperties: 1,
      },
      anyone: {
        type: 'boolean',
        description:
          'Every cluster that proves any ClusterID, including strangers. Set it to true only if you really want ' +
          'that.',
      },
      discovery: {
        type: 'array',
        description:
          'Narrows all of the above to clusters that were found in one of these ways: LAN, WAN, Manual, Incoming.',
        minItems: 1,
        maxItems: 4,
        'x-kubernetes-list-type': 'set',
        items: choice('A way of finding clusters.', DISCOVERY_SOURCES),
      },
    },
  ),
  'x-kubernetes-validations': RULES,
});
