import { TETHER_LIMITS } from '../../api/cluster-mode.ts';
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
  boolean,
  type Check,
  integer,
  refuse,
  list,
  map,
  oneOf,
  opaque,
  orNull,
  prose,
  record,
  text,
} from '../../lib/untrusted.ts';

/** The forms of what peers send. Those who use the values check what they mean. */

/** Present or absent: `false` says what an absent field says, and is not sent. */
const yes: Check<true> = (value, path) => (value === true ? true : refuse(path, 'be true where it is there'));
/** Base64 of an Ed25519 signature has 88 characters. */
const signature = text({ most: 128, pattern: BASE64 });
const dnsLabel = text({ most: 63, pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/ });
const dnsName = text({ most: 253, pattern: /^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$/ });
const clusterName = text({ most: 128 });
/** `host:port` or `[IPv6]:port`; whether it can be dialled is found out by dialling. */
const endpoint = text({ most: 300, least: 3, pattern: /^[^\s/@\p{Cc}]+:\d{1,5}$/u });
/** A CIDR, by its characters only. */
const prefix = text({ most: 49, least: 3, pattern: /^[0-9A-Fa-f.:]+\/\d{1,3}$/ });
/** Base64 of 32 bytes. */
const key32 = text({ most: 44, least: 44, pattern: /^[A-Za-z0-9+/]{43}=$/ });
/** RFC 1035. Some API servers also allow a digit in front (KEP-5311); such Services are not offered. */
const serviceName = text({ most: 63, pattern: /^[a-z]([-a-z0-9]*[a-z0-9])?$/ });
const address = text({ most: 45, least: 2, pattern: /^[0-9A-Fa-f.:]+$/ });
const portNumber = integer(1, 65_535);
const servicePort = record(
  { protocol: oneOf('TCP', 'UDP', 'SCTP'), port: portNumber, targetPort: portNumber },
  {
    name: orNull(dnsLabel),
    appProtocol: orNull(text({ most: 317, pattern: /^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$/ })),
  },
);
/** RFC 3339, UTC. */
const time = text({ most: 30, pattern: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/ });
/** Of one request or grant. */
const MOST_NAMESPACES = 1_024;
const contractText = opaque(262_144);
const fenceTerms = {
  afterSeconds: integer(TETHER_LIMITS.lostAfterSeconds.least, TETHER_LIMITS.lostAfterSeconds.most),
  stopSeconds: integer(TETHER_LIMITS.stopSeconds.least, TETHER_LIMITS.stopSeconds.most),
};
/** Random, and known to the one who made it. */
const nonce = text({ most: 64, least: 8, pattern: /^[A-Za-z0-9_-]+$/ });

export const checkHello: Check<Hello> = record({
  clusterName,
  protocols: list(integer(1, 65_535), 16),
  software: text({ most: 64 }),
  endpoints: list(endpoint, 8),
  networkProofs: list(text({ most: 64, pattern: BASE64 }), 8),
});

/** A reason that only later versions know still means that the namespace is withheld. */
const withholding: Check<WithheldNamespace['reason']> = (value, path) =>
  text({ most: 64, pattern: /^[A-Za-z]+$/ })(value, path) === 'NameTaken' ? 'NameTaken' : 'NamingNotAllowed';

const tenantName = (value: unknown, path: string, homeNamespace: string): string => {
  dnsLabel(homeNamespace, path);
  return dnsLabel(value, path);
};

const withheldNamespace = record(
  { homeNamespace: dnsLabel, reason: withholding },
  { message: orNull(prose(512)), ending: orNull(boolean) },
);

const apiAccess = record(
  { server: text({ most: 2_048, pattern: /^https:\/\/[^\s@\p{Cc}]+$/u }) },
  { ca: orNull(opaque(131_072)), serverName: orNull(dnsName) },
);

/** Refuses a name for a namespace that is not asked for. */
function withListedNames(check: Check<RequestDocument>): Check<RequestDocument> {
  return (value, path) => {
    const request = check(value, path);
    const listed = new Set(request.namespaces);
    if (Object.keys(request.names ?? {}).every((name) => listed.has(name))) return request;
    return refuse(`${path}.names`, 'name a namespace that is not among the namespaces');
  };
}

const DOCUMENTS: { [Kind in DocumentKind]: Check<NonNullable<Documents[Kind]>> } = {
  request: withListedNames(
    record(
      { clusterName, namespaces: list(dnsLabel, MOST_NAMESPACES) },
      {
        names: orNull(map(tenantName, MOST_NAMESPACES)),
        tether: orNull(yes),
        fence: orNull(record(fenceTerms)),
        joinToken: orNull(text({ most: 256, pattern: /^[\x21-\x7e]*$/ })),
      },
    ),
  ),
  // Borrowing checks its fields one by one (offer/check.ts) before it makes an Advertisement of it.
  offer: record({ offer: anyObject as unknown as Check<Offer>, signature }),
  acceptance: record({ text: contractText, signature }),
  grant: record(
    { state: oneOf('Pending', 'Denied', 'Active', 'Ended') },
    {
      reason: orNull(text({ most: 64, pattern: /^[A-Za-z]*$/ })),
      message: orNull(prose(1_024)),
      policy: orNull(dnsName),
      ends: orNull(time),
      withheld: orNull(list(withheldNamespace, MOST_NAMESPACES)),
      contract: orNull(record({ text: contractText, signature })),
      api: orNull(apiAccess),
    },
  ),
  network: record(
    {
      publicKey: key32,
      endpoints: list(endpoint, 8),
      pods: list(prefix, 256),
      external: list(prefix, 8),
      transit: list(prefix, 1_024),
      views: list(record({ prefix, as: prefix }), 2_048),
    },
    {
      presharedHalf: orNull(key32),
      apiServer: orNull(record({ address, port: portNumber })),
      forbidsHomeApiServer: orNull(boolean),
    },
  ),
  services: record({
    services: list(
      record({
        namespace: dnsLabel,
        name: serviceName,
        ports: list(servicePort, SERVICES_LIMITS.ports),
        endpoints: list(record({ address, ready: boolean }), SERVICES_LIMITS.endpoints),
      }),
      SERVICES_LIMITS.services,
    ),
  }),
};

/** The documents that are well-formed, and what is wrong with the others. Kinds that we do not know are passed over. */
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
  dial: record({ stream: nonce }),
  renew: record({}, { ticket: orNull(nonce), resume: orNull(yes) }),
};

export const RESULTS: { [Method in CallMethod]: Check<Calls[Method]['result']> } = {
  credential: record({
    token: text({ most: 16_384, least: 1, pattern: /^[\x21-\x7e]+$/ }),
    expires: text({ most: 40, pattern: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/ }),
  }),
  dial: nothing,
  renew: record({ ...fenceTerms, ticket: nonce, state: oneOf('Waiting', 'Held', 'Closed') }),
};

export const isCallMethod = (name: string): name is CallMethod => Object.hasOwn(PARAMS, name);
