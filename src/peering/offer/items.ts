import { OFFER_LIMITS } from '../../api/limits.ts';
import type { NodeShape, ServiceClasses, StorageClassOffer } from '../../api/offer.ts';
import { hasCode } from '../../lib/errors.ts';
import * as read from '../../lib/untrusted.ts';
import { labelObjection } from './labels.ts';
import * as terms from './terms.ts';

/** Parts of an offer alone. Who makes an offer asks the same functions what it may hold. */

const WORD = /^[a-z0-9]([-a-z0-9_]{0,61}[a-z0-9])?$/u;
const CLASS = /^[A-Za-z0-9]([-A-Za-z0-9_./]{0,251}[A-Za-z0-9])?$/u;
/** No blanks and no control characters: terminals show it. */
const IMAGE = /^[!-~]+$/u;
const VERSION = /^\d{1,4}\.\d{1,4}\.\d{1,4}$/u;
const FEATURE = /^[A-Za-z]([-A-Za-z0-9_./]{0,126}[A-Za-z0-9])?$/u;

export const wordAt = (field: string, value: unknown): string =>
  read.matchedAt(field, value, { pattern: WORD, most: 63 });
export const classAt = (field: string, value: unknown): string =>
  read.matchedAt(field, value, { pattern: CLASS, most: 253 });
export const imageAt = (field: string, value: unknown): string =>
  read.matchedAt(field, value, { pattern: IMAGE, most: OFFER_LIMITS.imageLength });
export const versionAt = (field: string, value: unknown): string =>
  read.matchedAt(field, value, { pattern: VERSION, most: 14 });
export const featureAt = (field: string, value: unknown): string =>
  read.matchedAt(field, value, { pattern: FEATURE, most: 128 });

export function labelsAt(field: string, value: unknown, most: number): Record<string, string> {
  return read.mapAt(field, value, {
    most,
    entry(at, key, text) {
      const label = read.textAt(at, text, 63);
      const objection = labelObjection(key, label);
      return objection === undefined ? label : read.refuse(at, objection);
    },
  });
}

export function shapeAt(field: string, value: unknown): NodeShape {
  const json = read.objectAt(field, value);
  const labels = read.own(json, 'labels');
  return {
    count: read.integerAt(`${field}.count`, read.own(json, 'count'), { least: 1, most: OFFER_LIMITS.count }),
    resources: terms.resourcesAt(`${field}.resources`, read.own(json, 'resources')),
    architecture: wordAt(`${field}.architecture`, read.own(json, 'architecture')),
    operatingSystem: wordAt(`${field}.operatingSystem`, read.own(json, 'operatingSystem')),
    ...(labels !== undefined && { labels: labelsAt(`${field}.labels`, labels, OFFER_LIMITS.shapeLabels) }),
  };
}

export function classesAt(field: string, value: unknown): ServiceClasses {
  const json = read.objectAt(field, value);
  const [storage, ingress, balancer] = ['storage', 'ingress', 'loadBalancer'].map((key) =>
    read.own(json, key),
  );
  const { storageClasses, ingressClasses, loadBalancerClasses } = OFFER_LIMITS;
  return {
    ...(storage !== undefined && {
      storage: read.listAt(`${field}.storage`, storage, { most: storageClasses, item: storageClassAt }),
    }),
    ...(ingress !== undefined && {
      ingress: read.setAt(`${field}.ingress`, ingress, { most: ingressClasses, item: classAt }),
    }),
    ...(balancer !== undefined && {
      loadBalancer: read.setAt(`${field}.loadBalancer`, balancer, {
        most: loadBalancerClasses,
        item: classAt,
      }),
    }),
  };
}

export function storageClassAt(field: string, value: unknown): StorageClassOffer {
  const json = read.objectAt(field, value);
  const [isDefault, mode, grows] = ['isDefault', 'volumeBindingMode', 'allowVolumeExpansion'].map((key) =>
    read.own(json, key),
  );
  if (mode !== undefined && mode !== 'Immediate' && mode !== 'WaitForFirstConsumer') {
    read.refuse(`${field}.volumeBindingMode`, 'is not Immediate or WaitForFirstConsumer');
  }
  return {
    name: classAt(`${field}.name`, read.own(json, 'name')),
    provisioner: classAt(`${field}.provisioner`, read.own(json, 'provisioner')),
    ...(isDefault !== undefined && { isDefault: read.booleanAt(`${field}.isDefault`, isDefault) }),
    ...(mode !== undefined && { volumeBindingMode: mode }),
    ...(grows !== undefined && {
      allowVolumeExpansion: read.booleanAt(`${field}.allowVolumeExpansion`, grows),
    }),
  };
}

/** Those that a reader takes. Throws whatever is not a refusal. */
export function onlyValid<T>(items: Iterable<T>, readItem: (field: string, value: unknown) => unknown): T[] {
  return [...items].filter((item) => isValid(() => readItem('item', item)));
}

function isValid(readIt: () => unknown): boolean {
  try {
    readIt();
    return true;
  } catch (error) {
    if (hasCode(error, 'Invalid')) return false;
    throw error;
  }
}
