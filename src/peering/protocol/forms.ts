import { SERVICES_LIMITS } from '../../api/limits.ts';
import type { Offer } from '../../api/offer.ts';
import {
  type CallMethod,
  type Calls,
  DOCUMENT_KINDS,
  type DocumentChanges,
  type DocumentKind,
  type Documents,
  type Hello,
  type RequestDocument,
  type WithheldNamespace,
} from './documents.ts';
import {
  anyObject,
  BASE64,
  bool,
  type Check,
  integer,
  invalid,
  list,
  map,
  oneOf,
  opaque,
  prose,
  record,
  text,
} from './validate.ts';

/** The forms of what peers send. What the values mean is checked by those who use them. */

/** Base64 of an Ed25519 signature has 88 characters. */
const signature = text({ max: 128, pattern: BASE64 });
const dnsLabel = text({ max: 63, pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/ });
const dnsName = text({ max: 253, pattern: /^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$/ });
const clusterName = text({ max: 128 });
/** `host:port` or `[IPv6]:port`; what cannot be dialled is found out by dialling. */
const endpoint = text({ max: 300, min: 3, pattern: /^[^\s/@\p{Cc}]+:\d{1,5}$/u });
/** A CIDR, by its characters only. */
const prefix = text({ max: 49, min: 3, pattern: /^[0-9A-Fa-f.:]+\/\d{1,3}$/ });
/** Base64 of 32 bytes. */
const key32 = text({ max: 44, min: 44, pattern: /^[A-Za-z0-9+/]{43}=$/ });
/** Of a Service: RFC 1035. API servers that take digits in front (KEP-5311) have them left out of what is offered. */
const serviceName = text({ max: 63, pattern: /^[a-z]([-a-z0-9]*[a-z0-9])?$/ });
const address = text({ max: 45, min: 2, pattern: /^[0-9A-Fa-f.:]+$/ });
const portNumber = integer(1, 65_535);
const servicePort = record(
  { protocol: oneOf('TCP', 'UDP', 'SCTP'), port: portNumber, targetPort: portNumber },
  { name: dnsLabel, appProtocol: text({ max: 317, pattern: /^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$/ }) },
);
/** Of one request or grant. */
const MOST_NAMESPACES = 1_024;
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

/** A reason that only later versions know withholds all the same. */
const withholding: Check<WithheldNamespace['reason']> = (value, path) =>
  text({ max: 64, pattern: /^[A-Za-z]+$/ })(value, path) === 'NameTaken' ? 'NameTaken' : 'NamingNotAllowed';

/** Nobody names what is not asked for. */
function withListedNames(check: Check<RequestDocument>): Check<RequestDocument> {
  return (value, path) => {
    const request = check(value, path);
    const listed = new Set(request.namespaces);
    if (Object.keys(request.names ?? {}).every((name) => listed.has(name))) return request;
    return invalid(`${path}.names`, 'names a namespace that is not among the namespaces');
  };
}

const DOCUMENTS: { [Kind in DocumentKind]: Check<NonNullable<Documents[Kind]>> } = {
  request: withListedNames(
    record(
      { clusterName, namespaces: list(dnsLabel, MOST_NAMESPACES) },
      {
        names: map(dnsLabel, dnsLabel, MOST_NAMESPACES),
        joinToken: text({ max: 256, pattern: /^[\x21-\x7e]*$/ }),
      },
    ),
  ),
  // Its fields are checked one by one, with a reason for each, before an Advertisement is made from it.
  offer: record({ offer: anyObject as unknown as Check<Offer>, signature }, {}),
  acceptance: record({ text: contractText, signature }, {}),
  grant: record(
    { state: oneOf('Pending', 'Denied', 'Active', 'Ended') },
    {
      reason: text({ max: 64, pattern: /^[A-Za-z]*$/ }),
      message: prose(1_024),
      withheld: list(
        record({ homeNamespace: dnsLabel, reason: withholding }, { message: prose(512) }),
        MOST_NAMESPACES,
      ),
      contract: record({ text: contractText, signature }, {}),
      api: record(
        { server: text({ max: 2_048, pattern: /^https:\/\/[^\s@\p{Cc}]+$/u }) },
        { ca: opaque(131_072), serverName: dnsName },
      ),
    },
  ),
  network: record(
    {
      publicKey: key32,
      endpoints: list(endpoint, 8),
      pods: list(prefix, 256),
      external: list(prefix, 8),
      transit: list(prefix, 1_024),
      views: list(record({ prefix, as: prefix }, {}), 2_048),
    },
    { presharedHalf: key32 },
  ),
  services: record(
    {
      services: list(
        record(
          {
            namespace: dnsLabel,
            name: serviceName,
            ports: list(servicePort, SERVICES_LIMITS.ports),
            endpoints: list(record({ address, ready: bool }, {}), SERVICES_LIMITS.endpoints),
          },
          {},
        ),
        SERVICES_LIMITS.services,
      ),
    },
    {},
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
