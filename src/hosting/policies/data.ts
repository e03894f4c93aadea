import { type PolicyPair, writes } from '../../api/fence.ts';
import { LABEL_MANAGED_BY } from '../../api/names.ts';
import { ANNOTATION_STORAGE_CLASSES } from '../annotations.ts';
import { BY_PEER, celList, forgeTenantAdmission, listedOn, ofPods, type Validations } from './admission.ts';

/** ConfigMaps and Secrets of peers: copies, which mean something to pods of peers and to nothing else in this cluster. */

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

const dataValidations: Validations = [
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
    validations: dataValidations,
  });

/**
 * PersistentVolumeClaims in tenants: new volumes, of the classes that the provider lends. A claim that names a volume,
 * selects one or is filled from a source could be bound to data of somebody else.
 */

const FOREIGN_FIELDS = ['selector', 'dataSource', 'dataSourceRef'];

/** CEL: whether the spec of a claim asks for a new, empty volume and nothing beside its class. */
const plainClaim = (spec: string): string =>
  [
    ...FOREIGN_FIELDS.map((field) => `!has(${spec}.${field})`),
    ...['volumeName', 'volumeAttributesClassName'].map((field) => `${spec}.?${field}.orValue('') == ''`),
  ].join(' && ');

const claimsValidations: Validations = [
  {
    // Whoever asks: claims of a pod's ephemeral volumes are made by a controller of this cluster.
    expression: "object.spec.?storageClassName.orValue('') in variables.classes",
    messageExpression:
      "'claims of peers name a StorageClass that this cluster lends (' + variables.classes.join(', ') + '), not \"' + " +
      "object.spec.?storageClassName.orValue('') + '\"'",
    message: `claims of peers name a StorageClass that this cluster lends: those in the annotation ${ANNOTATION_STORAGE_CLASSES} of the namespace (SharingPolicy storageClasses)`,
  },
  {
    expression: `!(${BY_PEER}) || (${plainClaim('object.spec')})`,
    message:
      'claims of peers ask for new, empty volumes: no volumeName, selector, dataSource, dataSourceRef, ' +
      'volumeAttributesClassName',
  },
  {
    expression: `!(${BY_PEER}) || object.metadata.?labels[?'${LABEL_MANAGED_BY}'].orValue('') != ''`,
    message: `claims of peers bear the label ${LABEL_MANAGED_BY}`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantClaimsPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-claims', {
    // What a claim is bound to later is written by controllers of this cluster; peers may not update claims.
    resourceRules: [writes('', ['persistentvolumeclaims'], 'CREATE')],
    variables: [{ name: 'classes', expression: listedOn(ANNOTATION_STORAGE_CLASSES) }],
    validations: claimsValidations,
  });

/**
 * Volumes of pods of peers. Pod Security `baseline` refuses paths of nodes only; all other kinds are mounted by nodes and
 * drivers of the provider, with what those can reach. The API server has made sure that each volume, and each source of
 * a projected one, is of exactly one kind.
 */

const KINDS = [
  'configMap',
  'secret',
  'emptyDir',
  'downwardAPI',
  'projected',
  'persistentVolumeClaim',
  'ephemeral',
  'image',
];
/** Others are tokens, certificates and trust of this cluster, which speak of the provider. */
const SOURCES = ['configMap', 'secret', 'downwardAPI'];

const isOneOf = (what: string, kinds: readonly string[]): string =>
  kinds.map((kind) => `has(${what}.${kind})`).join(' || ');

const template = 'v.ephemeral.volumeClaimTemplate';
const ofEphemeral = (condition: string): string =>
  `variables.volumes.all(v, !has(v.ephemeral) || !has(${template}) || ${condition})`;

const volumesValidations: Validations = [
  {
    expression: `variables.volumes.all(v, ${isOneOf('v', KINDS)})`,
    message: `volumes of peers' pods are of these kinds: ${KINDS.join(', ')}`,
  },
  {
    expression: `variables.volumes.all(v, v.?projected.?sources.orValue([]).all(s, ${isOneOf('s', SOURCES)}))`,
    message:
      `projected volumes of peers' pods have these sources: ${SOURCES.join(', ')}; ` +
      'tokens and certificates of this cluster are not for them',
  },
  {
    expression: ofEphemeral(`${template}.spec.?storageClassName.orValue('') in variables.classes`),
    message:
      "ephemeral volumes of peers' pods name a StorageClass that this cluster lends: those in the annotation " +
      `${ANNOTATION_STORAGE_CLASSES} of the namespace (SharingPolicy storageClasses)`,
  },
  {
    expression: ofEphemeral(
      `(${plainClaim(`${template}.spec`)} && ${template}.?metadata.?annotations.orValue({}).size() == 0 && ` +
        `${template}.?metadata.?labels.orValue({}).size() == 0)`,
    ),
    message:
      "ephemeral volumes of peers' pods are new and empty: no volumeName, selector, dataSource, dataSourceRef, " +
      'volumeAttributesClassName, no annotations, no labels (a controller of this cluster makes the claim, and bears no bound of peers)',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantVolumesPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-volumes', {
    ...ofPods(),
    variables: [
      { name: 'volumes', expression: 'object.spec.?volumes.orValue([])' },
      { name: 'classes', expression: listedOn(ANNOTATION_STORAGE_CLASSES) },
    ],
    validations: volumesValidations,
  });
