/** ConfigMaps and Secrets of peers: copies, which mean something to pods of peers and to nothing else in this cluster. */
import type { PolicyPair } from '../../api/fence.ts';
import { writes } from '../../api/fence.ts';
import { BY_PEER, type Validations, celList, forgeTenantAdmission } from './admission.ts';

/** Each becomes a file on a node, however small; a megabyte would hold a hundred thousand. */
const MAX_KEYS = 4096;

/** Of one object. The API server takes a mebibyte, and five hundred of each kind would fill a store that holds two gibibytes. */
const MOST_BYTES = 512 * 1024;

/** CEL: how long all keys and values are together. */
const lengthOf = (field: 'data' | 'binaryData'): string =>
  `object.?${field}.orValue({}).map(k, k.size() + object.${field}[k].size()).sum()`;

/** The API server makes a token of an account for the first, and believes who shows the second. */
const TIED_TYPES = ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'];

/** What is there may stay. */
const onlyOurs = (field: 'labels' | 'annotations'): string =>
  `object.metadata.?${field}.orValue({}).all(k, k.startsWith('tributary.dev/') || ` +
  `(oldObject != null && oldObject.metadata.?${field}[?k] == optional.of(object.metadata.${field}[k])))`;

const validations: Validations = [
  {
    expression: `!(object.?type.orValue('') in ${celList(TIED_TYPES)})`,
    message: `Secrets of peers are no credentials of this cluster: not of type ${TIED_TYPES.join(', ')}`,
  },
  {
    expression: `object.?data.orValue({}).size() + object.?binaryData.orValue({}).size() <= ${MAX_KEYS}`,
    message: `ConfigMaps and Secrets of peers have ${MAX_KEYS} keys at most`,
  },
  {
    expression: `${lengthOf('data')} + ${lengthOf('binaryData')} <= ${MOST_BYTES}`,
    message: `ConfigMaps and Secrets of peers hold ${MOST_BYTES} bytes at most`,
  },
  {
    // Programs that gather ConfigMaps and Secrets by a mark do so over all namespaces: dashboards, certificates, copies.
    expression: `${onlyOurs('labels')} && ${onlyOurs('annotations')}`,
    message:
      'ConfigMaps and Secrets of peers bear labels and annotations of tributary.dev only: by others, programs of this ' +
      'cluster would gather them',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantDataPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-data', {
    resourceRules: [writes('', ['configmaps', 'secrets'], 'CREATE', 'UPDATE')],
    matchConditions: [{ name: 'peers', expression: BY_PEER }],
    validations,
  });
