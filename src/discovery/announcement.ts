import { BlockList, isIP, SocketAddress } from 'node:net';

import { isClusterID } from '../api/forms.ts';
import { joinEndpoint } from '../lib/endpoint.ts';
import { TributaryError } from '../lib/errors.ts';
import { isDialable } from '../lib/never-dialled.ts';
import type { Announcement, Candidate } from './candidates.ts';

/**
 * What an announcement looks like in DNS-SD (RFC 6763), the same on the LAN and in a zone:
 *
 *     _tributary._tcp.<domain>.                 PTR  milan-abcdefgh._tributary._tcp.<domain>.
 *     milan-abcdefgh._tributary._tcp.<domain>.  SRV  0 0 <port> <host>.
 *     milan-abcdefgh._tributary._tcp.<domain>.  TXT  "id=<ClusterID>" "name=<cluster name>" "v=<versions>"
 *     <host>.                                   A, AAAA
 *
 * Everything that is read here comes from strangers.
 */

/** A DNS label (RFC 1035, 2.3.4). */
const MAX_LABEL_BYTES = 63;
const SHORT_ID_LENGTH = 8;
/** RFC 6763, 6.2: what fits into one Ethernet packet together with the other records. */
const MAX_TXT_BYTES = 1300;
const MAX_TXT_STRINGS = 32;
const MAX_ENDPOINTS = 8;
/** SRV and address records that are looked at; an announcement has a few. */
const MAX_RECORDS = 32;
const MAX_PROTOCOLS = 8;
const MAX_PROTOCOL = 99;
const PROTOCOL = /^[1-9]\d?$/;
/** No control characters, and nothing that reverses or hides text in a terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u;

/** The records of one service instance. */
export interface AnnouncedRecords {
  /** The strings of its TXT record. */
  txt: readonly (Uint8Array | string)[];
  /** One host for each SRV record, the most promising first, with the addresses of its target. */
  hosts: readonly AnnouncedHost[];
}

export interface AnnouncedHost {
  port: number;
  addresses: readonly string[];
}

interface ParseOptions {
  /**
   * Interface by which the records came in. Link-local addresses mean something only there, for a program on that host: IPv6 ones get
   * it as scope, and they are taken only where there are no others. Without an interface they are left out.
   */
  scope?: string;
}

/** Reads the records of strangers. Throws Invalid with one line that says what is wrong. */
export function parseAnnouncement(
  { txt, hosts }: AnnouncedRecords,
  options: ParseOptions = {},
): Omit<Candidate, 'expiresAt' | 'searchDomain'> {
  const pairs = readTxt(txt);
  const clusterID = pairs.get('id') ?? '';
  if (!isClusterID(clusterID)) throw invalid('TXT key "id" is not a ClusterID');
  const clusterName = readName(pairs.get('name'));
  return {
    clusterID,
    ...(clusterName !== undefined && { clusterName }),
    protocols: readProtocols(pairs.get('v')),
    endpoints: readEndpoints(hosts, options.scope),
  };
}

/** The strings of our TXT record. */
export const announcementTxt = ({ clusterID, clusterName, protocols }: Announcement): string[] => [
  `id=${clusterID}`,
  ...(readName(clusterName) === undefined ? [] : [`name=${clusterName}`]),
  `v=${protocols.join(',')}`,
];

/**
 * Our instance and host label: `milan-abcdefgh`. Letters, digits and hyphens only, so that it is a host name too;
 * the name as people write it is in TXT. After a conflict `attempt` is 2, 3, ...: `milan-abcdefgh-2`.
 */
export function instanceLabel(
  { clusterID, clusterName }: Pick<Announcement, 'clusterID' | 'clusterName'>,
  attempt = 1,
): string {
  const tail = `${clusterID.slice(0, SHORT_ID_LENGTH)}${attempt > 1 ? `-${attempt}` : ''}`;
  const plain = clusterName
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_LABEL_BYTES - tail.length - 1)
    .replaceAll(/^-+|-+$/g, '');
  return plain === '' ? `cluster-${tail}` : `${plain}-${tail}`;
}

/** RFC 6763, 6.4 and 6.5: keys are compared regardless of case, the first of each counts, and a string without `=` has no value. */
function readTxt(strings: readonly (Uint8Array | string)[]): Map<string, string> {
  const pairs = new Map<string, string>();
  let bytes = 0;
  if (strings.length > MAX_TXT_STRINGS) throw invalid(`TXT has more than ${MAX_TXT_STRINGS} strings`);
  for (const string of strings) {
    const text = decode(string);
    bytes += Buffer.byteLength(text) + 1;
    if (bytes > MAX_TXT_BYTES) throw invalid(`TXT is longer than ${MAX_TXT_BYTES} bytes`);
    const equals = text.indexOf('=');
    if (equals <= 0) continue;
    const key = text.slice(0, equals).toLowerCase();
    if (!pairs.has(key)) pairs.set(key, text.slice(equals + 1));
  }
  return pairs;
}

function decode(string: Uint8Array | string): string {
  if (typeof string === 'string') return string;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(string);
  } catch (cause) {
    throw new TributaryError('Invalid', 'announcement refused: TXT is not UTF-8', { cause });
  }
}

/** A name is for people and may be missing. One that cannot be shown is taken for missing. */
function readName(name: string | undefined): string | undefined {
  if (name === undefined || name.trim() === '' || UNPRINTABLE.test(name)) return undefined;
  return Buffer.byteLength(name) > MAX_LABEL_BYTES ? undefined : name;
}

function readProtocols(text: string | undefined): number[] {
  const parts = (text ?? '').split(',', MAX_PROTOCOLS + 1);
  if (parts.length > MAX_PROTOCOLS) throw invalid(`TXT key "v" names more than ${MAX_PROTOCOLS} versions`);
  if (!parts.every((part) => PROTOCOL.test(part))) {
    throw invalid(`TXT key "v" is not a list of versions from 1 to ${MAX_PROTOCOL}`);
  }
  return [...new Set(parts.map(Number))].toSorted((a, b) => a - b);
}

function readEndpoints(hosts: readonly AnnouncedHost[], scope: string | undefined): string[] {
  const near = new Set<string>();
  const far = new Set<string>();
  for (const { port, addresses } of hosts.slice(0, MAX_RECORDS)) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw invalid('the SRV record has no port');
    for (const text of addresses.slice(0, MAX_RECORDS)) {
      const address = dialableAddress(text);
      if (address === undefined) continue;
      if (!isLinkLocal(address)) far.add(joinEndpoint(address, port));
      else if (scope !== undefined) near.add(joinEndpoint(scoped(address, scope), port));
    }
  }
  const endpoints = [...(far.size > 0 ? far : near)].slice(0, MAX_ENDPOINTS);
  if (endpoints.length === 0) throw invalid('no address in it can be dialled');
  return endpoints;
}

/** RFC 4007, section 11. */
const scoped = (address: string, scope: string): string =>
  address.includes(':') ? `${address}%${scope}` : address;

const invalid = (why: string): TributaryError =>
  new TributaryError('Invalid', `announcement refused: ${why}`);

const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet('169.254.0.0', 16, 'ipv4');
LINK_LOCAL.addSubnet('fe80::', 10, 'ipv6');

/** Of AWS and most other clouds. */
const METADATA_SERVICE = '169.254.169.254';

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 4 ? 'ipv4' : 'ipv6');

export const isLinkLocal = (address: string): boolean => LINK_LOCAL.check(address, familyOf(address));

/**
 * The address in its one spelling, without a scope. Undefined where a cluster cannot be dialled at it: loopback, unspecified,
 * multicast, broadcast, reserved, IPv4 inside IPv6, or not an address.
 */
export function dialableAddress(text: string): string | undefined {
  if (text.length > 45 || text.includes('%') || isIP(text) === 0) return undefined;
  const family = familyOf(text);
  const { address } = new SocketAddress({ address: text, family });
  // An IPv4-mapped address (RFC 4291, 2.5.5). As a rule of the list it would match all of IPv4.
  if (address.startsWith('::ffff:')) return undefined;
  // On the LAN another cluster may have such an address, and the metadata service has one of them.
  const isSound = isLinkLocal(address) ? address !== METADATA_SERVICE : isDialable(address);
  return isSound ? address : undefined;
}
