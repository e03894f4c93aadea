import {
  SEARCH_DOMAIN_CONDITIONS,
  searchDomains,
  type SearchDomainSpec,
  type SearchDomainStatus,
} from '../search-domain.ts';
import { AGE, clusterIDs, column, observedGeneration, time } from './common.ts';
import type { Definition } from './definition.ts';
import { peeringWish } from './foreign-cluster.ts';
import { conditions, int32, objectOf, wholeOf, type Schema } from './schema.ts';

const spec: Schema = objectOf<SearchDomainSpec>(
  'Where to look, how often, and what to do with what is found.',
  ['domain'],
  {
    domain: {
      type: 'string',
      description: 'Browsed for _tributary._tcp.<domain> (RFC 6763), for example clusters.example.org.',
      minLength: 1,
      maxLength: 235,
      pattern:
        '^[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?)*\\.?$',
    },
    servers: {
      type: 'array',
      description: 'DNS servers to ask, in this order; by default those of the host.',
      minItems: 1,
      maxItems: 8,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'string',
        description: 'An address, or address:port with an IPv6 address in brackets; port 53 by default.',
        minLength: 2,
        maxLength: 64,
        pattern: '^([0-9.]+(:[0-9]{1,5})?|[0-9a-fA-F:.]+|\\[[0-9a-fA-F:.]+\\](:[0-9]{1,5})?)$',
      },
    },
    intervalSeconds: int32(
      'Longest time between two look-ups, in seconds; a TTL in the answers can make it shorter.',
      { default: 300, minimum: 1, maximum: 86_400 },
    ),
    outgoing: peeringWish('Written into spec.outgoing of the ForeignClusters that are found.'),
  },
);

const status: Schema = objectOf<SearchDomainStatus>('The result of the last look-up.', [], {
  observedGeneration,
  clusters: clusterIDs('ClusterIDs that the last look-up found.'),
  lastLook: time('Time of the last look-up.'),
  conditions: conditions(Object.values(SEARCH_DOMAIN_CONDITIONS).join(', ')),
});

export const searchDomainDefinition: Definition = {
  type: searchDomains,
  shortNames: ['sd'],
  columns: [
    column('Domain', '.spec.domain', 'The domain that is browsed.'),
    column(
      'Browsed',
      '.status.conditions[?(@.type=="Browsed")].status',
      'Whether the last look-up succeeded.',
    ),
    column('Reason', '.status.conditions[?(@.type=="Browsed")].reason', 'Why it did, or did not.'),
    column('Last-Look', '.status.lastLook', 'Time of the last look-up.', { type: 'date' }),
    AGE,
  ],
  schema: wholeOf('A DNS domain to browse for clusters.', { spec, status }),
};
