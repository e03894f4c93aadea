import { isIP, SocketAddress } from 'node:net';

import { hostAndPort } from '../../lib/endpoint.ts';
import { TributaryError } from '../../lib/errors.ts';
import { isDialable, isLoopback } from '../../lib/never-dialled.ts';

/** All addresses of a host name. */
export type Resolve = (host: string) => Promise<string[]>;

/** What of this cluster no provider may lead us to. */
export interface OurPlaces {
  /** Addresses of our nodes and API servers. */
  readonly hosts: readonly string[];
  /** Where we reach our own API server ourselves, as `host:port`, or `host` where the port is 443. */
  readonly apiServers: readonly string[];
  /** PEM of the authorities of our API server. */
  readonly ca?: string;
}

export const NO_PLACES: OurPlaces = { hosts: [], apiServers: [] };

/** The same, by addresses alone. */
export interface OurAddresses {
  readonly hosts: ReadonlySet<string>;
  /** `address port` on loopback, where several API servers of a laboratory are. */
  readonly onLoopback: ReadonlySet<string>;
  /** Whether a provider may be on loopback at all: for development. */
  readonly allowLoopback: boolean;
}

/** In its one spelling; an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5) as the IPv4 address. */
export function plain(address: string): string {
  if (isIP(address) !== 6) return address;
  return new SocketAddress({ address, family: 'ipv6' }).address.replace(/^::ffff:(?=[0-9.]+$)/iu, '');
}

interface End {
  address: string;
  port: number;
}

/**
 * An address counts as a whole: what is behind its other ports belongs to us as well, or is reached through the peering. On
 * loopback ports tell clusters apart.
 */
function addressesOf(hosts: readonly string[], ends: readonly End[], allowLoopback: boolean): OurAddresses {
  const all = [...hosts.filter((host) => isIP(host) !== 0).map(plain), ...ends.map(({ address }) => address)];
  return {
    hosts: new Set(all.filter((address) => !isLoopback(address))),
    onLoopback: new Set(ends.map(({ address, port }) => `${address} ${port}`)),
    allowLoopback,
  };
}

const endsOf = (apiServers: readonly string[]): { host: string; port: number }[] =>
  apiServers.map((apiServer) => hostAndPort(new URL(`https://${apiServer}`)));

/** Without those behind names. */
export function literalAddresses({ hosts, apiServers }: OurPlaces, allowLoopback: boolean): OurAddresses {
  const ends = endsOf(apiServers).filter(({ host }) => isIP(host) !== 0);
  const plainly = ends.map(({ host, port }) => ({ address: plain(host), port }));
  return addressesOf(hosts, plainly, allowLoopback);
}

/** Names are looked up by `resolve`; one that has no address now leads nobody anywhere. */
export async function ourAddresses(
  { hosts, apiServers }: OurPlaces,
  { allowLoopback, resolve }: { allowLoopback: boolean; resolve: Resolve },
): Promise<OurAddresses> {
  const found = await Promise.all(
    endsOf(apiServers).map(async ({ host, port }) => {
      const addresses = isIP(host) === 0 ? await resolve(host).catch(() => []) : [host];
      return addresses.map((address) => ({ address: plain(address), port }));
    }),
  );
  return addressesOf(hosts, found.flat(), allowLoopback);
}

/** Whether the address means something else here than at the provider. */
export function isOurPlace(
  { address, port }: { address: string; port: number },
  { hosts, onLoopback, allowLoopback }: OurAddresses,
): boolean {
  const here = plain(address);
  return !isDialable(here, { allowLoopback }) || hosts.has(here) || onLoopback.has(`${here} ${port}`);
}

/** Throws Forbidden for such an address. */
export function refuseOurs(at: { address: string; port: number }, ours: OurAddresses): void {
  if (!isOurPlace(at, ours)) return;
  throw new TributaryError(
    'Forbidden',
    `the provider's API server would be ${at.address}:${at.port}, which is not an address of another cluster`,
  );
}
