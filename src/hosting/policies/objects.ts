import type { PolicyPair } from '../../api/fence.ts';
import {
  ANNOTATION_APPLIED,
  ANNOTATION_HOME_NAMESPACE,
  ANNOTATION_RECREATED,
  ANNOTATION_REFRESH_AT,
  ANNOTATION_RESULT,
  ANNOTATION_SOURCE,
  ANNOTATION_WHEN_LOST,
  ANNOTATION_WITHHELD,
  HOME_LEASE,
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
} from '../../api/names.ts';
import { STEERING_PREFIXES } from '../../api/steering.ts';
import { celList, forgeTenantAdmission, ofPeers, type Validations } from './admission.ts';

/**
 * Whose an object in a tenant is. Others write there, too: controllers of this cluster (`kube-root-ca.crt`, ConfigMaps of a
 * service mesh) and people. What a peer writes bears its mark, and what does not bear it is not the peer's to touch.
 */

const isMarked = (what: string): string =>
  `(${what} == null || ${what}.?metadata.?labels[?'${LABEL_MANAGED_BY}'].orValue('') != '')`;

const ownershipValidations: Validations = [
  {
    expression: isMarked('oldObject'),
    message: `objects without the label ${LABEL_MANAGED_BY} are this cluster's own, and not for peers to change or delete`,
  },
  {
    expression: isMarked('object'),
    message: `objects of peers bear the label ${LABEL_MANAGED_BY}`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantOwnershipPolicy = (): PolicyPair => {
  const { resourceRules, matchConditions = [] } = ofPeers('*', '*', ['CREATE', 'UPDATE', 'DELETE']);
  return forgeTenantAdmission('tributary-tenant-ownership', {
    resourceRules,
    matchConditions: [
      ...matchConditions,
      {
        // Pods are marked with the pod at home, whoever makes them; the Lease of a home is made here.
        name: 'marked-otherwise',
        expression:
          "!(request.resource.group == '' && request.resource.resource == 'pods') && " +
          "request.resource.group != 'coordination.k8s.io'",
      },
    ],
    validations: ownershipValidations,
  });
};

/**
 * What metadata a peer may give to an object of any kind in its tenants, as a ValidatingAdmissionPolicy (KEP-3488). It
 * speaks of all kinds, so that it holds for those that a SharingPolicy adds.
 */

/** Of labels, and of annotations. */
const MAX_ENTRIES = 128;

/** All marks of ours that a home writes over here; any other is how parts of this cluster know what is theirs. */
const OUR_LABELS = [LABEL_HOME_UID, LABEL_MANAGED_BY];
const OUR_ANNOTATIONS = [
  ANNOTATION_APPLIED,
  ANNOTATION_HOME_NAMESPACE,
  ANNOTATION_SOURCE,
  ANNOTATION_WHEN_LOST,
  ANNOTATION_REFRESH_AT,
];
/** What this cluster's own parts say on objects of peers. */
const THEIRS_NOT = [ANNOTATION_RECREATED, ANNOTATION_RESULT, ANNOTATION_WITHHELD];

type Field = 'labels' | 'annotations';
const of = (object: string, field: Field): string => `${object}.?metadata.?${field}`;
const entries = (field: Field): string => `${of('object', field)}.orValue({}).size() <= ${MAX_ENTRIES}`;
const wasThere = (field: Field): string =>
  `(oldObject != null && ${of('oldObject', field)}[?k] == ${of('object', field)}[?k])`;
/** Beyond the bound nothing is looked at: that is refused already, and each look costs. */
const eachKey = (field: Field, condition: string): string =>
  `(!(${entries(field)}) || ${of('object', field)}.orValue({}).all(k, ${condition} || ${wasThere(field)}))`;

const isOurDomain = "k.matches('^([^/]*[.])?tributary[.]dev/')";
const isClosed = (field: Field, allowed: readonly string[]): string =>
  eachKey(field, `!${isOurDomain} || k in ${celList(allowed)}`);
const isHarmless = (field: Field): string =>
  eachKey(field, `!${celList(STEERING_PREFIXES)}.exists(p, k.startsWith(p))`);

const metadataValidations: Validations = [
  {
    // Nobody here would take it away: the namespace could never end. One is put on claims by the API server itself.
    expression:
      'object.?metadata.?finalizers.orValue([]).all(f, ' +
      "(f == 'kubernetes.io/pvc-protection' && request.resource.resource == 'persistentvolumeclaims') || " +
      '(oldObject != null && f in oldObject.?metadata.?finalizers.orValue([])))',
    message: 'objects of peers bear no finalizers: they would keep the namespace from ending',
  },
  {
    // Owners of home have other UIDs here: the garbage collector would take the object away, or a controller adopt it.
    expression:
      'object.?metadata.?ownerReferences.orValue([]).all(o, oldObject != null && ' +
      'oldObject.?metadata.?ownerReferences.orValue([]).exists(p, p.uid == o.uid))',
    message: 'objects of peers have no owners here',
  },
  {
    expression: `${entries('labels')} && ${entries('annotations')}`,
    message: `objects of peers bear ${MAX_ENTRIES} labels and ${MAX_ENTRIES} annotations at most`,
  },
  {
    expression: isClosed('labels', OUR_LABELS),
    message: `of the labels of tributary.dev peers write these only: ${OUR_LABELS.join(', ')}`,
  },
  {
    expression: isClosed('annotations', OUR_ANNOTATIONS),
    message: `of the annotations of tributary.dev peers write these only: ${OUR_ANNOTATIONS.join(', ')}`,
  },
  {
    expression:
      `oldObject == null || ${celList(THEIRS_NOT)}.all(k, ` +
      `${of('oldObject', 'annotations')}[?k] == ${of('object', 'annotations')}[?k])`,
    message: `what this cluster says on objects of peers stays as it is: the annotations ${THEIRS_NOT.join(', ')}`,
  },
  {
    expression: `${isHarmless('labels')} && ${isHarmless('annotations')}`,
    message: `labels and annotations of peers may not steer this cluster: none that begins with ${STEERING_PREFIXES.join(', ')}`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantMetadataPolicy = (): PolicyPair => {
  const { matchConditions } = ofPeers('*', '*');
  // Subresources carry metadata, too.
  const { resourceRules } = ofPeers('*', '*/*');
  return forgeTenantAdmission('tributary-tenant-metadata', {
    resourceRules,
    ...(matchConditions && { matchConditions }),
    validations: metadataValidations,
  });
};

/** The one Lease by which a home shows that it is there (HOME_LEASE): a heartbeat, and no place to keep anything. */

const MAX_HOLDER = 253;
/** Seconds. Less would take a short outage for an end; more would keep pods of a home that is gone. */
const DURATION = { least: 10, most: 300 };

const leaseValidations: Validations = [
  {
    expression: `object.metadata.name == '${HOME_LEASE}'`,
    message: `peers renew the Lease ${HOME_LEASE} and no other`,
  },
  {
    expression: `object.spec.?holderIdentity.orValue('').size() <= ${MAX_HOLDER} && !has(object.spec.strategy) && !has(object.spec.preferredHolder)`,
    message: `the Lease of a home names its holder in ${MAX_HOLDER} characters at most, and no election`,
  },
  {
    expression:
      `object.spec.?leaseDurationSeconds.orValue(${DURATION.least}) >= ${DURATION.least} && ` +
      `object.spec.?leaseDurationSeconds.orValue(${DURATION.least}) <= ${DURATION.most}`,
    message: `the Lease of a home lasts from ${DURATION.least} to ${DURATION.most} seconds`,
  },
  {
    expression:
      'oldObject != null && object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({}) && ' +
      'object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})',
    message: 'labels and annotations of the Lease of a home are ours',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantLeasePolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-leases', {
    ...ofPeers('coordination.k8s.io', 'leases'),
    validations: leaseValidations,
  });
