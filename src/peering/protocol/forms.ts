import type { Offer } from '../../api/offer.ts';
import type { CallMethod, Calls, DocumentChanges, DocumentKind, Documents, Hello } from './documents.ts';
import { DOCUMENT_KINDS } from './documents.ts';
import { BASE64, anyObject, integer, list, oneOf, opaque, prose, record, text } from './validate.ts';
import type { Check } from './validate.ts';

/** The forms of what peers send. What the values mean is checked by those who use them. */

/** Base64 of an Ed25519 signature has 88 characters. */
const signature = text({ max: 128, pattern: BASE64 });
const dnsLabel = text({ max: 63, pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/ });
const dnsName = text({ max: 253, pattern: /^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$/ });
const clusterName = text({ max: 128 });
/** `host:port` or `[IPv6]:port`; what cannot be dialled is found out by dialling. */
const endpoint = text({ max: 300, min: 3, pattern: /^[^\s/@\p{Cc}]+:\d{1,5}$/u });
const contractText = opaque(262_144);

export const checkHello: Check<Hello> = record(
  {
    clusterName,
    protocols: list(integer(1, 65_535), 16),
    software: text({ max: 64 }),
    endpoints: list(endpoint, 8),
    networkProofs: list(text({ max: 64, pattern: BASE64 }), 8),
  },
  {},
);

const DOCUMENTS: { [Kind in DocumentKind]: Check<NonNullable<Documents[Kind]>> } = {
  request: record(
    { clusterName, namespaces: list(dnsLabel, 1_024) },
    { joinToken: text({ max: 256, pattern: /^[\x21-\x7e]*$/ }) },
  ),
  // Its fields are checked one by one, with a reason for each, before an Advertisement is made from it.
  offer: record({ offer: anyObject as unknown as Check<Offer>, signature }, {}),
  acceptance: record({ text: contractText, signature }, {}),
  grant: record(
    { state: oneOf('Pending', 'Denied', 'Active', 'Ended') },
    {
      reason: text({ max: 64, pattern: /^[A-Za-z]*$/ }),
      message: prose(1_024),
      contract: record({ text: contractText, signature }, {}),
      api: record(
        { server: text({ max: 2_048, pattern: /^https:\/\/[^\s@\p{Cc}]+$/u }) },
        { ca: opaque(131_072), serverName: dnsName },
      ),
    },
  ),
};

/** What is well-formed, and for the rest what is wrong. Kinds that nobody here knows are passed over. */
export function checkDocuments(value: unknown): { changes: DocumentChanges; problems: string[] } {
  const given = anyObject(value, 'documents');
  const changes: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const kind of DOCUMENT_KINDS) {
    if (!Object.hasOwn(given, kind)) continue;
    const document = given[kind];
    try {
      changes[kind] = document === null ? null : DOCUMENTS[kind](document, kind);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  return { changes, problems };
}

const nothing: Check<Record<string, never>> = (value, path) => {
  anyObject(value, path);
  return {};
};

export const PARAMS: { [Method in CallMethod]: Check<Calls[Method]['params']> } = {
  credential: nothing,
  dial: record({ stream: text({ max: 64, min: 8, pattern: /^[A-Za-z0-9_-]+$/ }) }, {}),
};

export const RESULTS: { [Method in CallMethod]: Check<Calls[Method]['result']> } = {
  credential: record(
    {
      token: text({ max: 16_384, min: 1, pattern: /^[\x21-\x7e]+$/ }),
      expires: text({ max: 40, pattern: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/ }),
    },
    {},
  ),
  dial: nothing,
};

export const isCallMethod = (name: string): name is CallMethod => Object.hasOwn(PARAMS, name);
