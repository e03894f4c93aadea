import { isOfferable, mostOf } from '../../api/amounts.ts';
import { timestamp } from '../../api/conditions.ts';
import {
  CURRENCY_PATTERN,
  MAX_NAMESPACES,
  MAX_RESOURCES,
  OFFER_LIMITS,
  PRICE_AMOUNT_PATTERN,
} from '../../api/limits.ts';
import type { NamespaceOffer, PodSecurityLevel, Price } from '../../api/offer.ts';
import type { ResourceList } from '../../api/wire.ts';
import { parseMilli } from '../../lib/quantity.ts';
import * as read from '../../lib/untrusted.ts';

/** Parts that an offer and the contract made of it have in common, as a peer sends them. */

/** Whole numbers with a suffix, as we write them ourselves: no sign, no fraction, no exponent. */
const QUANTITY = /^(0|[1-9][0-9]{0,18})(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/u;
const AMOUNT = new RegExp(PRICE_AMOUNT_PATTERN, 'u');
const CURRENCY = new RegExp(CURRENCY_PATTERN, 'u');
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/u;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/u;

/** Whole seconds and Zulu time only: the text that was signed is compared as it stands. */
export function timeAt(field: string, value: unknown): string {
  const text = read.matchedAt(field, value, { pattern: TIME, most: 20 });
  const time = Date.parse(text);
  // Date.parse takes 30 February for a day of March.
  const isReal = !Number.isNaN(time) && timestamp(time) === text;
  return isReal ? text : read.refuse(field, `is no time: ${text}`);
}

export function resourcesAt(field: string, value: unknown): ResourceList {
  return read.mapAt(field, value, { most: MAX_RESOURCES, entry: quantityAt });
}

function quantityAt(field: string, resource: string, value: unknown): string {
  resourceAt(field, resource);
  const text = read.matchedAt(field, value, { pattern: QUANTITY, most: 24 });
  if (text.endsWith('m') && resource !== 'cpu') read.refuse(field, `is not whole: ${text}`);
  if (parseMilli(text) > mostOf(resource)) read.refuse(field, `is beyond belief: ${text}`);
  return text;
}

function resourceAt(field: string, resource: string): void {
  if (!isOfferable(resource)) read.refuse(field, 'is no resource that can be lent');
}

export function pricesAt(field: string, value: unknown): Record<string, Price> {
  return read.mapAt(field, value, {
    most: MAX_RESOURCES,
    entry(at, resource, price) {
      resourceAt(at, resource);
      const { amount, currency } = read.objectAt(at, price);
      return {
        amount: read.matchedAt(`${at}.amount`, amount, { pattern: AMOUNT, most: 22 }),
        currency: read.matchedAt(`${at}.currency`, currency, { pattern: CURRENCY, most: 8 }),
      };
    },
  });
}

/** Each namespace at home and over there once: two of one home in one tenant would see each other's Secrets. */
export function namespacesAt(field: string, value: unknown): NamespaceOffer[] {
  const pairs = read.listAt(field, value, { most: MAX_NAMESPACES, item: namespaceAt });
  for (const side of ['homeNamespace', 'tenantNamespace'] as const) {
    if (new Set(pairs.map((pair) => pair[side])).size !== pairs.length) {
      read.refuse(field, `names a ${side} twice`);
    }
  }
  return pairs;
}

function namespaceAt(field: string, value: unknown): NamespaceOffer {
  const { homeNamespace, tenantNamespace } = read.objectAt(field, value);
  const form = { pattern: DNS_LABEL, most: 63 };
  return {
    homeNamespace: read.matchedAt(`${field}.homeNamespace`, homeNamespace, form),
    tenantNamespace: read.matchedAt(`${field}.tenantNamespace`, tenantNamespace, form),
  };
}

export function podSecurityAt(field: string, value: unknown): PodSecurityLevel {
  return value === 'baseline' || value === 'restricted'
    ? value
    : read.refuse(field, 'is not baseline or restricted');
}

export const keepForSecondsAt = (field: string, value: unknown): number =>
  read.integerAt(field, value, { least: 0, most: OFFER_LIMITS.keepForSeconds });

/** Zero: a PeeringRequest's first offer may count from there. */
export const generationAt = (field: string, value: unknown): number =>
  read.integerAt(field, value, { least: 0, most: Number.MAX_SAFE_INTEGER });
