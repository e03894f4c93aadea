import { BlockList, isIP, SocketAddress } from 'node:net';

/** Addresses that no announcement may send us to. */
const REFUSED = new BlockList();
REFUSED.addSubnet('0.0.0.0', 8, 'ipv4');
REFUSED.addSubnet('127.0.0.0', 8, 'ipv4');
REFUSED.addSubnet('224.0.0.0', 4, 'ipv4');
REFUSED.addSubnet('240.0.0.0', 4, 'ipv4');
REFUSED.addAddress('::', 'ipv6');
REFUSED.addAddress('::1', 'ipv6');
REFUSED.addSubnet('ff00::', 8, 'ipv6');
REFUSED.addSubnet('::', 96, 'ipv6');

const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet('169.254.0.0', 16, 'ipv4');
LINK_LOCAL.addSubnet('fe80::', 10, 'ipv6');

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 4 ? 'ipv4' : 'ipv6');

export const isLinkLocal = (address: string): boolean => LINK_LOCAL.check(address, familyOf(address));

/**
 * The address in its one spelling, without a scope; undefined where it is none that a cluster can be dialled at:
 * loopback, unspecified, multicast, broadcast, reserved, IPv4 inside IPv6, or not an address.
 */
export function dialableAddress(text: string): string | undefined {
  if (text.length > 45 || text.includes('%') || isIP(text) === 0) return undefined;
  const family = familyOf(text);
  const { address } = new SocketAddress({ address: text, family });
  // An IPv4 address in the clothes of IPv6 (RFC 4291, 2.5.5). Not a rule of the list, where it would mean all of IPv4.
  if (address.startsWith('::ffff:')) return undefined;
  return REFUSED.check(address, family) ? undefined : address;
}

/** `host:port`, with brackets around IPv6. */
export const hostPort = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
