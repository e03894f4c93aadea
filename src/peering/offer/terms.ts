import { isOfferable, mostOf } from '../../api/amounts.ts';
import { timestamp } from '../../api/conditions.ts';
import { DEFAULTED_RESOURCES } from '../../api/default-requests.ts';
import {
  CURRENCY_PATTERN,
  LABEL_VALUE_PATTERN,
  MAX_LABELS,
  MAX_NAMESPACES,
  MAX_RESOURCES,
  OFFER_LIMITS,
  PRICE_AMOUNT_PATTERN,
} from '../../api/limits.ts';
import {
  type NamespaceOffer,
  type NodeShape,
  POD_SECURITY_LEVELS,
  type PodSecurityLevel,
  type Price,
  type ServiceClasses,
  type StorageClassOffer,
} from '../../api/offer.ts';
import type { ResourceList } from '../../api/wire.ts';
import { hasCode } from '../../lib/errors.ts';
import { parseMilli } from '../../lib/quantity.ts';
import {
  boolean,
  type Check,
  integer,
  list,
  map,
  matching,
  oneOf,
  opaque,
  quoted,
  record,
  refuse,
  set,
} from '../../lib/untrusted.ts';

/**
 * The parts of an offer and of the contract that is made of it, each with its check. The maker of an offer asks the same
 * checks what the offer may hold.
 */

/** Whole numbers with a suffix, as we write them ourselves: no sign, no fraction, no exponent. */
const quantityText = matching(/^(0|[1-9][0-9]{0,18})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/u, 24);
const timeText = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/u, 20);
const namespaceName = matching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/u, 63);

export const clusterID: Check<string> = opaque(26);

/** Zero, too: the first offer for a PeeringRequest may count from there. */
export const generation: Check<number> = integer(0, Number.MAX_SAFE_INTEGER);

/** Whole seconds and UTC (`Z`) only: the text that was signed is compared as it stands. */
export const time: Check<string> = (value, path) => {
  const text = timeText(value, path);
  const parsed = Date.parse(text);
  // Date.parse takes 30 February for a day of March.
  const isReal = !Number.isNaN(parsed) && timestamp(parsed) === text;
  return isReal ? text : refuse(path, `is no time: ${text}`);
};

const DEFAULTED: ReadonlySet<string> = new Set(DEFAULTED_RESOURCES);

function checkResource(resource: string, path: string): void {
  if (!isOfferable(resource)) refuse(path, 'is no resource that can be lent');
}

export const resources: Check<ResourceList> = map((value, path, resource) => {
  checkResource(resource, path);
  const text = quantityText(value, path);
  if (text.endsWith('m') && resource !== 'cpu') refuse(path, `is not whole: ${text}`);
  if (parseMilli(text) > mostOf(resource)) refuse(path, `is beyond belief: ${text}`);
  return text;
}, MAX_RESOURCES);

/** What a LimitRange gives; it has no default for other resources. */
export const defaultRequests: Check<ResourceList> = (value, path) => {
  const given = resources(value, path);
  const odd = Object.keys(given).find((name) => !DEFAULTED.has(name));
  return odd === undefined ? given : refuse(`${path}[${quoted(odd)}]`, 'has no default request');
};

const price: Check<Price> = record({
  amount: matching(new RegExp(PRICE_AMOUNT_PATTERN, 'u'), 22),
  currency: matching(new RegExp(CURRENCY_PATTERN, 'u'), 8),
});

export const prices: Check<Record<string, Price>> = map((value, path, resource) => {
  checkResource(resource, path);
  return price(value, path);
}, MAX_RESOURCES);

const namespacePairs = list(
  record({ homeNamespace: namespaceName, tenantNamespace: namespaceName }),
  MAX_NAMESPACES,
);

/** Each name may come once on either side: two home namespaces in one tenant would see each other's Secrets. */
export const namespaces: Check<NamespaceOffer[]> = (value, path) => {
  const pairs = namespacePairs(value, path);
  for (const side of ['homeNamespace', 'tenantNamespace'] as const) {
    if (new Set(pairs.map((pair) => pair[side])).size !== pairs.length) refuse(path, `names a ${side} twice`);
  }
  return pairs;
};

export const podSecurity: Check<PodSecurityLevel> = oneOf(...POD_SECURITY_LEVELS);
export const keepForSeconds: Check<number> = integer(0, OFFER_LIMITS.keepForSeconds);

export const word: Check<string> = matching(/^[a-z0-9]([-a-z0-9_]{0,61}[a-z0-9])?$/u, 63);
export const className: Check<string> = matching(/^[A-Za-z0-9]([-A-Za-z0-9_./]{0,251}[A-Za-z0-9])?$/u, 253);
/** No blanks and no control characters: terminals show it. */
export const image: Check<string> = matching(/^[!-~]+$/u, OFFER_LIMITS.imageLength);
export const version: Check<string> = matching(/^\d{1,4}\.\d{1,4}\.\d{1,4}$/u, 14);
export const feature: Check<string> = matching(/^[A-Za-z]([-A-Za-z0-9_./]{0,126}[A-Za-z0-9])?$/u, 128);

const labelValue = opaque(63);

const labelsUpTo = (most: number): Check<Record<string, string>> =>
  map((value, path, key) => {
    const label = labelValue(value, path);
    const objection = labelObjection(key, label);
    return objection === undefined ? label : refuse(path, objection);
  }, most);

export const labels: Check<Record<string, string>> = labelsUpTo(MAX_LABELS);

export const shape: Check<NodeShape> = record(
  { count: integer(1, OFFER_LIMITS.count), resources, architecture: word, operatingSystem: word },
  { labels: labelsUpTo(OFFER_LIMITS.shapeLabels) },
);

export const storageClass: Check<StorageClassOffer> = record(
  { name: className, provisioner: className },
  {
    isDefault: boolean,
    volumeBindingMode: oneOf('Immediate', 'WaitForFirstConsumer'),
    allowVolumeExpansion: boolean,
  },
);

export const classes: Check<ServiceClasses> = record(
  {},
  {
    storage: list(storageClass, OFFER_LIMITS.storageClasses),
    ingress: set(className, OFFER_LIMITS.ingressClasses),
    loadBalancer: set(className, OFFER_LIMITS.loadBalancerClasses),
    priority: set(className, OFFER_LIMITS.priorityClasses),
  },
);

/** The items that pass the check. Throws any error that is no refusal. */
export const onlyValid = <T>(items: Iterable<T>, check: Check<unknown>): T[] =>
  [...items].filter((item) => {
    try {
      check(item, 'item');
      return true;
    } catch (error) {
      if (hasCode(error, 'Invalid')) return false;
      throw error;
    }
  });

/** What every offer may show of a node, whatever the policy says. */
export const PLACE_LABELS: readonly string[] = [
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'node.kubernetes.io/instance-type',
];

const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;
const PREFIX = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/u;
const VALUE = new RegExp(LABEL_VALUE_PATTERN, 'u');
/** Domains whose labels mean something to Kubernetes or to us, with everything below them. */
const RESERVED = /(^|\.)(kubernetes\.io|k8s\.io|tributary\.dev)$/u;

/**
 * Why a peer must not set this label on our virtual nodes; undefined where it may. Labels of Kubernetes' own domains
 * give a node roles, keep DaemonSets and balancers off or draw them, so only those of PLACE_LABELS pass.
 */
export function labelObjection(key: string, value: string): string | undefined {
  const slash = key.indexOf('/');
  const [prefix, name] = slash === -1 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)];
  if (!NAME.test(name) || (prefix !== undefined && !PREFIX.test(prefix))) return 'is no label key';
  if (prefix !== undefined && RESERVED.test(prefix) && !PLACE_LABELS.includes(key)) {
    return 'belongs to a reserved domain';
  }
  return VALUE.test(value) ? undefined : 'has a value that no label can have';
}

/** Those labels that an offer can bear, in the order of their keys. */
export function offerableLabels(
  labels: Readonly<Record<string, string>>,
  most: number,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels)
      .filter(([key, value]) => labelObjection(key, value) === undefined)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, most),
  );
}
