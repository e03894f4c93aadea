/** The chain as the data of a Secret. */
import { X509Certificate } from 'node:crypto';
import type { Secret } from '../../api/wire.ts';
import type { KeyPair } from '../../lib/source.ts';
import { periodOf } from './authority.ts';
import { type Chain, bundleOf } from './chain.ts';

/** Far more than three certificates. */
const MAX_LENGTH = 16_384;

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
