/** Admission of objects of peers of any kind: which are theirs, and what metadata they have; and of the Lease of a home. */
import { type PolicyPair, writes } from '../../api/fence.ts';
import {
  ANNOTATION_APPLIED,
  ANNOTATION_CARRIED_NAMESPACE,
  ANNOTATION_CARRIED_UID,
  ANNOTATION_HOME_GENERATION,
  ANNOTATION_HOME_NAMESPACE,
  ANNOTATION_NATIVE_ENDPOINTS,
  ANNOTATION_NO_POD_AT,
  ANNOTATION_RECREATED,
  ANNOTATION_REFRESH_AT,
  ANNOTATION_RESULT,
  ANNOTATION_RESULT_LOGS,
  ANNOTATION_SOURCE,
  ANNOTATION_WHEN_LOST,
  ANNOTATION_WITHHELD,
  HOME_LEASE,
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
} from '../../api/names.ts';
import { LABEL_GUEST_POLICY } from '../../api/network-policy.ts';
import { STEERING_PATTERN, STEERING_PREFIXES } from '../../api/steering.ts';
import {
  BY_PEER,
  celList,
  forgeTenantAdmission,
  ofPeers,
  unless,
  type Validations,
  WRITES,
} from './admission.ts';
import type { PodBounds } from './pod-bounds.ts';

/**
 * What no peer has a right to write, and this cluster writes for each pod many times. Where a policy matches, an API server turns the
 * object into maps before it knows who asks.
 */
const NOT_OF_PEERS = [
  writes('*', ['*/status'], ...WRITES),
  writes('', ['events', 'pods/binding', 'pods/eviction'], ...WRITES),
  writes('events.k8s.io', ['events'], ...WRITES),
];

/**
 * Which objects in a tenant are the peer's. Controllers of this cluster (`kube-root-ca.crt`, ConfigMaps of a service mesh) and
 * people write there, too. What a peer writes bears a label; what does not bear it, the peer may not touch.
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

export const forgeTenantOwnershipPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-ownership', {
    ...ofPeers('*', '*', WRITES),
    // Pods bear the UID of the pod at home, whoever makes them; this cluster makes the Lease of a home.
    excludeResourceRules: [
      writes('', ['pods'], ...WRITES),
      writes('coordination.k8s.io', ['leases'], ...WRITES),
      ...NOT_OF_PEERS,
    ],
    validations: ownershipValidations,
  });

/**
 * What metadata a peer may give to an object in its tenants. Holds for all kinds, and so for those that a SharingPolicy adds.
 */

/** Of labels, and as many of annotations. */
const MAX_ENTRIES = 128;

/** The labels of tributary.dev that a home writes here. By all others, parts of this cluster find their own objects. */
const OUR_LABELS = [LABEL_HOME_UID, LABEL_MANAGED_BY, ...Object.values(LABEL_GUEST_POLICY)];
const OUR_ANNOTATIONS = [
  ANNOTATION_APPLIED,
  ANNOTATION_CARRIED_NAMESPACE,
  ANNOTATION_CARRIED_UID,
  ANNOTATION_HOME_GENERATION,
  ANNOTATION_HOME_NAMESPACE,
  ANNOTATION_NATIVE_ENDPOINTS,
  ANNOTATION_SOURCE,
  ANNOTATION_WHEN_LOST,
  ANNOTATION_REFRESH_AT,
];
/** What parts of this cluster say on objects of peers. */
const THEIRS_NOT = [
  ANNOTATION_NO_POD_AT,
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  ANNOTATION_RESULT_LOGS,
  ANNOTATION_WITHHELD,
];

type Field = 'labels' | 'annotations';
const of = (object: string, field: Field): string => `${object}.?metadata.?${field}`;
const entries = (field: Field): string => `${of('object', field)}.orValue({}).size() <= ${MAX_ENTRIES}`;
const wasThere = (field: Field): string =>
  `(oldObject != null && ${of('oldObject', field)}[?k] == ${of('object', field)}[?k])`;
/** Beyond MAX_ENTRIES no key is looked at: the object is refused already, and each look costs. */
const eachKey = (field: Field, condition: string): string =>
  `(!(${entries(field)}) || ${of('object', field)}.orValue({}).all(k, ${condition} || ${wasThere(field)}))`;

const isOurDomain = "k.matches('^([^/]*[.])?tributary[.]dev/')";
const isClosed = (field: Field, allowed: readonly string[]): string =>
  eachKey(field, `!${isOurDomain} || k in ${celList(allowed)}`);
const isHarmless = (field: Field): string => eachKey(field, `!k.matches('${STEERING_PATTERN}')`);

const metadataValidations: Validations = [
  {
    // Nobody here would remove it, and the namespace could never end. The API server itself puts one on claims.
    expression:
      'object.?metadata.?finalizers.orValue([]).all(f, ' +
      "(f == 'kubernetes.io/pvc-protection' && request.resource.resource == 'persistentvolumeclaims') || " +
      '(oldObject != null && f in oldObject.?metadata.?finalizers.orValue([])))',
    message: 'objects of peers bear no finalizers: they would keep the namespace from ending',
  },
  {
    // Owners have other UIDs at home: the garbage collector would delete the object, or a controller would adopt it.
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
  // One for each: an API server bounds what a single expression may cost.
  ...(['labels', 'annotations'] as const).map((field) => ({
    expression: isHarmless(field),
    message: `${field} of peers may not steer this cluster: none that begins with ${STEERING_PREFIXES.join(', ')}`,
  })),
];

/** The bounds of pods hold the same; one policy costs less than two. */
export const metadataBounds: PodBounds = {
  at: ['Create', 'Update', 'Debug'],
  variables: { isPeer: BY_PEER },
  validations: unless('!variables.isPeer', metadataValidations),
};

export const forgeTenantMetadataPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-metadata', {
    // Subresources carry metadata, too.
    ...ofPeers('*', '*/*'),
    excludeResourceRules: [
      writes('', ['pods', 'pods/ephemeralcontainers'], 'CREATE', 'UPDATE'),
      ...NOT_OF_PEERS,
    ],
    validations: metadataValidations,
  });

const MAX_HOLDER = 253;
/** Seconds. With less, a short outage would count as an absence; with more, an absence would be noticed too late. */
const DURATION = { least: 10, most: 300 };

/** The one Lease by which a home shows that it is there (HOME_LEASE). It is a heartbeat, and holds nothing else. */
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

export const forgeTenantLeasePolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-leases', {
    ...ofPeers('coordination.k8s.io', 'leases'),
    validations: leaseValidations,
  });
