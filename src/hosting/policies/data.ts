/** What peers store here: ConfigMaps, Secrets, and volumes with the claims to them. */
import { type PolicyPair, writes } from '../../api/fence.ts';
import { LABEL_MANAGED_BY } from '../../api/names.ts';
import { DEFAULT_WRITES } from '../../api/write-terms.ts';
import {
  ANNOTATION_OBJECT_KIB,
  ANNOTATION_POD_SECURITY,
  ANNOTATION_STORAGE_CLASSES,
} from '../annotations.ts';
import { BY_PEER, celList, forgeTenantAdmission, listedOn, saidOn, type Validations } from './admission.ts';
import type { PodBounds } from './pod-bounds.ts';

/** Of one ConfigMap or Secret. Each key becomes a file on a node, however small: a megabyte would hold a hundred thousand. */
const MAX_KEYS = 4096;

/** CEL: of one ConfigMap or Secret. The API server takes a mebibyte; so many as a peer may have would fill an etcd. */
const MOST_KIB = `(${saidOn(ANNOTATION_OBJECT_KIB)} == '' ? ${DEFAULT_WRITES.objectKiB} : int(${saidOn(ANNOTATION_OBJECT_KIB)}))`;

/** CEL: how long all keys and values are together. */
const lengthOf = (field: 'data' | 'binaryData'): string =>
  `object.?${field}.orValue({}).map(k, k.size() + object.${field}[k].size()).sum()`;

/** For the first, the API server makes a token of an account; whoever shows the second is let in. */
const TIED_TYPES = ['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token'];

/** CEL: whether all keys are of tributary.dev. Others that are there already may stay. */
const onlyOurs = (field: 'labels' | 'annotations'): string =>
  `object.metadata.?${field}.orValue({}).all(k, k.startsWith('tributary.dev/') || ` +
  `(oldObject != null && oldObject.metadata.?${field}[?k] == optional.of(object.metadata.${field}[k])))`;

/**
 * ConfigMaps and Secrets of peers are copies. They mean something to pods of peers and to nothing else in this cluster.
 */
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
    expression: `${lengthOf('data')} + ${lengthOf('binaryData')} <= 1024 * ${MOST_KIB}`,
    messageExpression: `'ConfigMaps and Secrets of peers hold ' + string(${MOST_KIB}) + ' KiB at most (SharingPolicy writes.objectKiB)'`,
    message: 'ConfigMaps and Secrets of peers are bounded in size (SharingPolicy writes.objectKiB)',
  },
  {
    // Programs find ConfigMaps and Secrets by labels and annotations in all namespaces: dashboards, certificates, copies.
    expression: `${onlyOurs('labels')} && ${onlyOurs('annotations')}`,
    message:
      'ConfigMaps and Secrets of peers bear labels and annotations of tributary.dev only: by others, programs of this ' +
      'cluster would gather them',
  },
];

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

/** CEL: whether the spec of a claim asks for a new, empty volume, and for nothing else but its class. */
const plainClaim = (spec: string): string =>
  [
    ...FOREIGN_FIELDS.map((field) => `!has(${spec}.${field})`),
    ...['volumeName', 'volumeAttributesClassName'].map((field) => `${spec}.?${field}.orValue('') == ''`),
  ].join(' && ');

const claimsValidations: Validations = [
  {
    // For all who ask: a controller of this cluster makes the claims for ephemeral volumes of pods.
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

export const forgeTenantClaimsPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-claims', {
    // Controllers of this cluster write later what a claim is bound to; peers may not update claims.
    resourceRules: [writes('', ['persistentvolumeclaims'], 'CREATE')],
    variables: [{ name: 'classes', expression: listedOn(ANNOTATION_STORAGE_CLASSES) }],
    validations: claimsValidations,
  });

/**
 * Volumes of pods of peers. Pod Security `baseline` refuses only paths of nodes. Nodes and drivers of this cluster mount all
 * other kinds, and can reach more than the peer can. The API server makes sure that each volume, and each source of a
 * projected volume, is of exactly one kind.
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
/** The other sources are tokens, certificates and trust bundles of this cluster. */
const SOURCES = ['configMap', 'secret', 'downwardAPI'];

const isOneOf = (what: string, kinds: readonly string[]): string =>
  kinds.map((kind) => `has(${what}.${kind})`).join(' || ');

const template = 'v.ephemeral.volumeClaimTemplate';
const ofEphemeral = (condition: string): string =>
  `variables.volumes.all(v, !has(v.ephemeral) || !has(${template}) || ${condition})`;

const volumesValidations: Validations = [
  {
    expression:
      `variables.volumes.all(v, ${isOneOf('v', KINDS)} || ` +
      `(has(v.hostPath) && ${saidOn(ANNOTATION_POD_SECURITY)} == 'privileged'))`,
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

export const volumeBounds: PodBounds = {
  variables: {
    volumes: 'object.spec.?volumes.orValue([])',
    classes: listedOn(ANNOTATION_STORAGE_CLASSES),
  },
  validations: volumesValidations,
};
