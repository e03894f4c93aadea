/**
 * Volumes of pods of peers. Pod Security `baseline` refuses paths of nodes only; all other kinds are mounted by nodes and
 * drivers of the provider, with what those can reach. The API server has made sure that each volume, and each source of
 * a projected one, is of exactly one kind.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { type Validations, forgeTenantAdmission, listedOn, ofPods } from './admission.ts';
import { ANNOTATION_STORAGE_CLASSES } from '../tenants/annotations.ts';
import { plainClaim } from './claims.ts';

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

const validations: Validations = [
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
    validations,
  });
