import canonicalize from 'canonicalize';
import { TributaryError, errorMessage } from './errors.ts';

/**
 * The one text of a JSON value (RFC 8785, JCS): what is signed, compared and kept. As in JSON, a property that is
 * undefined counts as absent. Throws Invalid for what JSON cannot hold: undefined at the top, NaN, infinities,
 * cycles, lone surrogates.
 */
export function canonicalText(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (error) {
    throw new TributaryError('Invalid', `no canonical JSON: ${errorMessage(error)}`, { cause: error });
  }
  if (text === undefined) throw new TributaryError('Invalid', 'no canonical JSON of an undefined value');
  return text;
}
