import type { AddressPort } from '../../api/tunnel.ts';
import { formatAddress, formatPrefix, type IpFamily, parseAddress, prefixesOf } from '../../lib/prefix.ts';
import type { SetConfig } from '../host/host-config.ts';
import { peerName, type PeerPart, type Transport, TRANSPORTS } from './names.ts';
import { FAMILIES, type View, WORDS } from './peer.ts';

/** Drops the packet without an answer, and counts it under this name (see `listCounters`). */
export const refuse = (name: string): string => `counter drop comment "${name}"`;

/**
 * A prefix as a key, with its family as a second part. Of a set of mere intervals `nft` reads all elements before it adds one; of such a
 * set it reads none (docs/decisions/0113-prefixes-with-their-family.md).
 */
const keyType = (family: IpFamily): string => `ipv${family}_addr . nf_proto`;
const keyOf = (family: IpFamily, prefix: string): string => `${prefix} . ipv${family}`;
/** What a rule looks up among such keys. */
export const addressKey = (family: IpFamily, side: 'saddr' | 'daddr'): string =>
  `${WORDS[family]} ${side} . meta nfproto`;

/** In which chain each peer has this part, by its views; one map for each family. */
export function directory(
  part: PeerPart,
  peers: readonly { id: string; views: readonly View[] }[],
): SetConfig[] {
  return FAMILIES.map((family) => ({
    name: `${part}${family}`,
    type: keyType(family),
    value: 'verdict',
    interval: true,
    elements: peers.flatMap(({ id, views }) =>
      views
        .filter((view) => view.family === family)
        .map(({ prefix }) => ({ key: keyOf(family, prefix), value: `jump ${peerName(part, id)}` })),
    ),
  }));
}

/** Rules that go on in the chain of the peer whose view the address is. `before`: what else must match, with a space behind it. */
export const toPeer = (part: PeerPart, side: 'saddr' | 'daddr', before = ''): string[] =>
  FAMILIES.map((family) => `${before}${addressKey(family, side)} vmap @${part}${family}`);

/** The prefixes must not overlap. Adjacent ones are not joined, so that a new prefix changes no other element. */
export function prefixSet(name: string, family: IpFamily, prefixes: readonly string[]): SetConfig {
  const known = prefixesOf(prefixes).filter((prefix) => prefix.family === family);
  const keys = new Set(known.map(formatPrefix));
  return {
    name,
    type: keyType(family),
    interval: true,
    elements: [...keys].map((prefix) => ({ key: keyOf(family, prefix) })),
  };
}

/** One set for each family. Texts that are no addresses are passed over. */
export function addressSets(
  name: (family: IpFamily) => string,
  addresses: readonly string[],
  families: readonly IpFamily[] = FAMILIES,
): SetConfig[] {
  const parsed = addresses.flatMap((text) => parseAddress(text) ?? []);
  return families.map((family) => {
    const texts = parsed.filter((address) => address.family === family).map(formatAddress);
    const elements = [...new Set(texts)].toSorted().map((key) => ({ key }));
    return { name: name(family), type: `ipv${family}_addr`, interval: false, elements };
  });
}

/**
 * Addresses with ports, in one set for each family and transport that occur. The transport is not part of the key, since nft writes
 * and reads its name by a table of the host (/etc/protocols) that need not be there. Texts that are no addresses are passed over.
 */
export function portSets(
  name: (transport: Transport, family: IpFamily) => string,
  places: readonly AddressPort[],
  families: readonly IpFamily[] = FAMILIES,
): PortSet[] {
  const keys = new Map<string, Set<string>>();
  for (const { address, protocol, port } of places) {
    const parsed = parseAddress(address);
    if (parsed === undefined || !Number.isInteger(port)) continue;
    const kind = `${protocol.toLowerCase()}${parsed.family}`;
    const found = keys.get(kind) ?? new Set();
    keys.set(kind, found.add(`${formatAddress(parsed)} . ${port}`));
  }
  return families.flatMap((family) =>
    TRANSPORTS.flatMap((transport) => {
      const found = keys.get(`${transport}${family}`);
      if (found === undefined) return [];
      const elements = [...found].toSorted().map((key) => ({ key }));
      const type = `ipv${family}_addr . inet_service`;
      return [{ family, transport, set: { name: name(transport, family), type, interval: false, elements } }];
    }),
  );
}

export interface PortSet {
  family: IpFamily;
  transport: Transport;
  set: SetConfig;
}

/** Matches packets to one of the places in the set. */
export const toOneOf = ({ family, transport, set: { name } }: PortSet): string =>
  `${WORDS[family]} daddr . ${transport} dport @${name}`;
