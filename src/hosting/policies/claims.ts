/**
 * PersistentVolumeClaims in tenants: new volumes, of the classes that the provider lends. A claim that names a volume,
 * selects one or is filled from a source could be bound to data of somebody else.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { writes } from '../../api/fence.ts';
import { LABEL_MANAGED_BY } from '../../api/names.ts';
import { ANNOTATION_STORAGE_CLASSES } from '../tenants/annotations.ts';
import { BY_PEER, type Validations, forgeTenantAdmission, listedOn } from './admission.ts';

const FOREIGN_FIELDS = ['selector', 'dataSource', 'dataSourceRef'];

/** CEL: whether the spec of a claim asks for a new, empty volume and nothing beside its class. */
export const plainClaim = (spec: string): string =>
  [
    ...FOREIGN_FIELDS.map((field) => `!has(${spec}.${field})`),
    ...['volumeName', 'volumeAttributesClassName'].map((field) => `${spec}.?${field}.orValue('') == ''`),
  ].join(' && ');

const validations: Validations = [
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
    validations,
  });
