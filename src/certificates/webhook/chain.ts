/**
 * The certificates of the webhook as a whole, and what is due. A new authority is trusted long before it signs, and the
 * old one long after it has stopped, so that no API server ever sees a certificate that it does not know the authority of:
 *
 *     signing ──two thirds of its life──▶ signing + next ──half an hour──▶ signing (was next) + previous ──▶ …
 */
import { X509Certificate } from 'node:crypto';

import type { Secret } from '../../api/wire.ts';
import type { KeyPair } from '../../lib/source.ts';
import {
  BACKDATED_MS,
  isIssuedBy,
  issue,
  makeAuthority,
  periodOf,
  type WebhookSubject,
} from './authority.ts';

export interface Chain {
  signing: KeyPair;
  /** Trusted, does not sign yet. */
  next?: KeyPair;
  /** PEM; trusted, signs no longer. */
  previous?: string;
  leaf: KeyPair;
}

/** From when on a new authority signs: API servers have its certificate within a second of its being made. */
const OVERLAP_MS = 1_800_000;
/** The longest wait until the chain is looked at again: timers stand still while a machine sleeps. */
const LONGEST_WAIT_MS = 3_600_000;

/** The chain as it should be now; the same object where nothing is due. */
export async function renewed(
  chain: Chain | undefined,
  subject: WebhookSubject,
  nowMs: number,
): Promise<Chain> {
  const authorities = await renewedAuthorities(chain, nowMs);
  const { signing } = authorities;
  const isLeafGood =
    chain !== undefined && !isDue(chain.leaf, nowMs) && isIssuedBy(chain.leaf, signing, subject);
  if (isLeafGood && authorities === chain) return chain;
  const leaf = isLeafGood ? chain.leaf : await issue(signing, subject, nowMs);
  const { next, previous } = authorities;
  return { signing, ...(next && { next }), ...(previous !== undefined && { previous }), leaf };
}

/** PEM of all that API servers are to trust. */
export const bundleOf = ({ signing, next, previous }: Chain): string =>
  [signing.certificate, next?.certificate ?? '', previous ?? ''].join('');

/** How long nothing is due, as far as is known. */
export function restMs({ signing, next, leaf }: Chain, nowMs: number): number {
  const dues = [dueMs(leaf), next === undefined ? dueMs(signing) : promotionMs(next)];
  return Math.min(LONGEST_WAIT_MS, Math.max(0, Math.min(...dues) - nowMs));
}

type Authorities = Pick<Chain, 'signing' | 'next' | 'previous'>;

async function renewedAuthorities(chain: Chain | undefined, nowMs: number): Promise<Authorities> {
  if (chain === undefined) return { signing: await makeAuthority(nowMs) };
  const { signing, next } = chain;
  if (!isValid(signing, nowMs)) {
    return { signing: next !== undefined && isValid(next, nowMs) ? next : await makeAuthority(nowMs) };
  }
  if (next !== undefined && isValid(next, nowMs)) {
    return nowMs < promotionMs(next) ? chain : { signing: next, previous: signing.certificate };
  }
  return isDue(signing, nowMs) ? { ...chain, next: await makeAuthority(nowMs) } : chain;
}

function isValid(pair: KeyPair, nowMs: number): boolean {
  const period = periodOf(pair);
  return period !== undefined && nowMs >= period.fromMs && nowMs < period.toMs;
}

const isDue = (pair: KeyPair, nowMs: number): boolean => !isValid(pair, nowMs) || nowMs >= dueMs(pair);

/** Two thirds of its life have passed. */
function dueMs(pair: KeyPair): number {
  const { fromMs, toMs } = periodOf(pair) ?? { fromMs: 0, toMs: 0 };
  return fromMs + ((toMs - fromMs) * 2) / 3;
}

const promotionMs = (next: KeyPair): number => (periodOf(next)?.fromMs ?? 0) + BACKDATED_MS + OVERLAP_MS;

/** Longest text of one key in base64; far more than a certificate needs. */
const MAX_LENGTH = 16_384;

/** The chain as the data of a Secret. */
export function dataOf(chain: Chain): Record<string, string> {
  const { signing, next, previous, leaf } = chain;
  const texts: Record<string, string | undefined> = {
    // For people and their tools; read back by nobody.
    'ca-bundle.crt': bundleOf(chain),
    'ca.crt': signing.certificate,
    'ca.key': signing.key,
    'next-ca.crt': next?.certificate,
    'next-ca.key': next?.key,
    'previous-ca.crt': previous,
    'tls.crt': leaf.certificate,
    'tls.key': leaf.key,
  };
  return Object.fromEntries(
    Object.entries(texts).flatMap(([key, text]) =>
      text === undefined ? [] : [[key, Buffer.from(text).toString('base64')]],
    ),
  );
}

/** Undefined for what does not fit together: it is made anew. */
export function chainOf({ data = {} }: Pick<Secret, 'data'>): Chain | undefined {
  const pair = (name: string): KeyPair | undefined => {
    const found = { certificate: textOf(data[`${name}.crt`]), key: textOf(data[`${name}.key`]) };
    return periodOf(found) === undefined ? undefined : found;
  };
  const signing = pair('ca');
  const leaf = pair('tls');
  if (signing === undefined || leaf === undefined) return undefined;
  const next = pair('next-ca');
  const previous = certificateOf(textOf(data['previous-ca.crt']));
  return { signing, ...(next && { next }), ...(previous !== undefined && { previous }), leaf };
}

const textOf = (base64: string | undefined): string =>
  base64 === undefined || base64.length > MAX_LENGTH ? '' : Buffer.from(base64, 'base64').toString('utf8');

/** An API server refuses a bundle with anything else in it. */
function certificateOf(text: string): string | undefined {
  try {
    return `${new X509Certificate(text).toString().trim()}\n`;
  } catch {
    return undefined;
  }
}
