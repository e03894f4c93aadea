import { isIPv4, isIPv6 } from 'node:net';
import { TributaryError } from '../../lib/errors.ts';

/** Addresses as the kernel has them, and as text: the one canonical text of each, so that texts can be compared. */
export type Family = 4 | 6;

/** AF_INET and AF_INET6 of linux/socket.h. */
export const KERNEL_FAMILY: Readonly<Record<Family, number>> = { 4: 2, 6: 10 };
export const familyOf = (kernelFamily: number): Family | undefined =>
  kernelFamily === KERNEL_FAMILY[4] ? 4 : kernelFamily === KERNEL_FAMILY[6] ? 6 : undefined;

export interface Prefix {
  family: Family;
  bytes: Buffer;
  length: number;
}

/** Throws Invalid. */
export function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  if (!isIPv6(address) || address.includes('%')) {
    throw new TributaryError('Invalid', `${JSON.stringify(address)} is no IP address`);
  }
  // URL knows every spelling of an IPv6 address, also `::ffff:1.2.3.4`, and leaves one of them.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const groups = (part: string | undefined): string[] => (part ? part.split(':') : []);
  const missing = 8 - groups(head).length - groups(tail).length;
  const all = tail === undefined ? groups(head) : [...groups(head), ...zeros(missing), ...groups(tail)];
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

const zeros = (count: number): string[] => Array.from({ length: count }, () => '0');

/** Of 4 or 16 bytes. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  const hex = Buffer.from(bytes).toString('hex').match(/.{4}/g) ?? [];
  return new URL(`http://[${hex.join(':')}]`).hostname.slice(1, -1);
}

/** Of `address/length`; throws Invalid. Host bits are kept. */
export function parsePrefix(prefix: string): Prefix {
  const [address = '', length, more] = prefix.split('/');
  const bytes = addressBytes(address);
  const bits = Number(length);
  if (more !== undefined || !/^\d{1,3}$/.test(length ?? '') || bits > bytes.length * 8) {
    throw new TributaryError('Invalid', `${JSON.stringify(prefix)} is no prefix: address/length`);
  }
  return { family: bytes.length === 4 ? 4 : 6, bytes, length: bits };
}

export const prefixText = (bytes: Uint8Array, length: number): string => `${addressText(bytes)}/${length}`;

/** The one spelling of it; throws Invalid. */
export function canonicalPrefix(prefix: string): string {
  const { bytes, length } = parsePrefix(prefix);
  return prefixText(bytes, length);
}

/** The one spelling of it; throws Invalid. */
export const canonicalAddress = (address: string): string => addressText(addressBytes(address));

/** Of `0.0.0.0` or `::`, which the kernel leaves out. */
export const unspecified = (family: Family): Buffer => Buffer.alloc(family === 4 ? 4 : 16);

export const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(':', ''), 'hex');
export const macText = (bytes: Buffer): string => (bytes.toString('hex').match(/../g) ?? []).join(':');
