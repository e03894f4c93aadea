import type { WriteQuestion } from '../../api/admission.ts';
import {
  guestNetworkPolicies,
  type GuestNetworkPolicySpec,
  type GuestPolicyPeer,
} from '../../api/guest-network-policy.ts';
import { deepEqual } from '../../lib/equality.ts';

const KIB = 1024;

/** Of JSON. What etcd stores is smaller for most kinds, which are stored in a denser form. */
export const bytesOf = (object: object): number => Buffer.byteLength(JSON.stringify(object));

/** Of each version: key, revision, index, and what does not fill a page of etcd's file. */
const VERSION_BYTES = 1024;

/**
 * A pod is stored about six times before it is gone: made, bound by the scheduler, three times with a new status of its kubelet,
 * and once to be deleted. The events about it are as large as the bytes that are added to each version.
 */
const VERSIONS_OF_POD = 6;
/** A pod that changes: itself, and twice with a new status. */
const VERSIONS_OF_CHANGE = 3;
/** For each pod that a Service may select: an endpoint, in its EndpointSlice and in the older Endpoints. */
const ENDPOINT_BYTES = 512;

/** What etcd pays in all for a new pod, or for a change of it; in bytes. */
export const costOfPodWrite = (bytes: number, isNew: boolean): number =>
  (VERSION_BYTES + bytes) * (isNew ? VERSIONS_OF_POD : VERSIONS_OF_CHANGE);

/**
 * A policy is stored, is stored again with its status, and becomes a NetworkPolicy of 256 KiB at most (tenants/guest-policy.ts), in which a
 * few words can become many addresses: a rule without peers, our own nodes, and ranges that are not single pods.
 */
const costOfPolicy = (object: object, bytes: number): number =>
  3 * VERSION_BYTES + 4 * bytes + Math.min(MOST_POLICY_BYTES, wideWords(object) * WIDE_BYTES);
const MOST_POLICY_BYTES = 256 * KIB;
const WIDE_BYTES = 8 * KIB;

/** What is not of that form is refused by the schema. */
function wideWords(object: object): number {
  const { spec } = object as { spec?: Partial<GuestNetworkPolicySpec> };
  const rules = [
    ...(spec?.ingress ?? []).map(({ from }) => from ?? []),
    ...(spec?.egress ?? []).map(({ to }) => to ?? []),
  ];
  const isWide = ({ ipBlock, cluster }: GuestPolicyPeer): boolean =>
    cluster === true || (ipBlock !== undefined && !ipBlock.cidr.endsWith('/32'));
  return rules.reduce((sum, peers) => sum + (peers.length === 0 ? 1 : peers.filter(isWide).length), 0);
}

/** `pods`: how many pods of the peer are in that namespace. */
export function costOfWrite(
  { resource, group, operation, object }: WriteQuestion,
  bytes: number,
  pods: number,
): number {
  if (group === '' && resource === 'pods' && operation === 'UPDATE') return costOfPodWrite(bytes, false);
  if (group === guestNetworkPolicies.group && resource === guestNetworkPolicies.plural)
    return costOfPolicy(object, bytes);
  const followers = group === '' && resource === 'services' ? pods * ENDPOINT_BYTES : 0;
  return VERSION_BYTES + bytes + followers;
}

/** An API server stores no update that changes nothing. */
export const changesNothing = ({ operation, object, oldObject }: WriteQuestion): boolean =>
  operation === 'UPDATE' && oldObject !== undefined && deepEqual(object, oldObject);

/** Bytes are base64 in a Secret, and some characters are two in JSON. */
const DATA_FACTOR = 4 / 3;
const DATA_METADATA = 32 * KIB;

/** Why an object is too large; undefined where it is not. `objectKiB` as in WriteTerms. */
export function tooLarge(
  { group, resource }: Pick<WriteQuestion, 'group' | 'resource'>,
  bytes: number,
  objectKiB: number,
): string | undefined {
  const most = mostBytes(group === '' ? resource : '', objectKiB * KIB);
  if (bytes <= most) return undefined;
  const name = group === '' ? resource : `${resource}.${group}`;
  return (
    `${name} of peers are of ${Math.floor(most)} bytes at most, this one is of ${bytes} ` +
    '(writes.objectKiB of the SharingPolicy of this cluster)'
  );
}

function mostBytes(resource: string, most: number): number {
  if (resource === 'pods') return most / 2;
  // A ValidatingAdmissionPolicy in the API server itself bounds what they hold (policies/data.ts).
  return resource === 'configmaps' || resource === 'secrets' ? most * DATA_FACTOR + DATA_METADATA : most;
}
