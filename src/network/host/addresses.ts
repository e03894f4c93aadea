import { isIPv4, isIPv6 } from 'node:net';

import { TributaryError } from '../../lib/errors.ts';
import {
  ADDRESS_BYTES,
  addressHeader,
  decodeAttributes,
  DELETE_ADDRESS,
  encodeAttributes,
  GET_ADDRESS,
  NEW_ADDRESS,
  readU32,
  u32,
} from './messages.ts';
import { CREATE, EXCLUSIVE, type Rtnetlink } from './rtnetlink.ts';
import { diffSets, type HostContext, type OurLinks } from './work.ts';

/** Gives our links the addresses that are wanted, and takes all others from them. */
export async function setAddresses({ kernel, work }: HostContext, links: OurLinks): Promise<void> {
  const all = await dumpAddresses(kernel);
  for (const [name, { wanted, index }] of links) {
    const addresses = wanted.addresses.map((address): KernelAddress => {
      return { index, prefix: canonicalPrefix(address) };
    });
    const actual = all.filter((address) => address.index === index);
    const diff = diffSets(addresses, actual, ({ prefix }) => prefix);
    // Removals come first, since the kernel removes further addresses of a prefix together with its first one.
    for (const address of diff.remove) {
      const what = `address ${address.prefix} dev ${name}`;
      await work.remove(what, async () => deleteAddress(kernel, address));
    }
    for (const address of diff.add) {
      const what = `address ${address.prefix} dev ${name}`;
      await work.change(what, async () => addAddress(kernel, address));
    }
  }
}

interface KernelAddress {
  /** Index of the link. */
  index: number;
  /** `address/length`, canonical. */
  prefix: string;
}

/** IFA_* of linux/if_addr.h. */
const IFA = { address: 1, local: 2, flags: 8 } as const;
/** An IPv6 address is usable at once, without a search for duplicates: nobody else can have it. */
const IFA_F_NODAD = 2;

/** All addresses but the link-local ones of IPv6, which the kernel makes. */
async function dumpAddresses(kernel: Rtnetlink): Promise<KernelAddress[]> {
  const messages = await kernel.dump(GET_ADDRESS, addressHeader(0, 0, 0));
  return messages.flatMap((message) => {
    const attributes = decodeAttributes(message.subarray(ADDRESS_BYTES));
    const bytes = attributes.get(IFA.local) ?? attributes.get(IFA.address);
    if (familyOf(message[0] ?? 0) === undefined || bytes === undefined || isLinkLocal(bytes)) return [];
    return [{ index: readU32(message, 4), prefix: prefixText(bytes, message[1] ?? 0) }];
  });
}

const isLinkLocal = (bytes: Buffer): boolean =>
  bytes.length === 16 && bytes[0] === 0xfe && ((bytes[1] ?? 0) & 0xc0) === 0x80;

async function addAddress(kernel: Rtnetlink, address: KernelAddress): Promise<void> {
  await kernel.write(NEW_ADDRESS, CREATE | EXCLUSIVE, addressMessage(address));
}

async function deleteAddress(kernel: Rtnetlink, address: KernelAddress): Promise<void> {
  await kernel.write(DELETE_ADDRESS, 0, addressMessage(address));
}

function addressMessage({ index, prefix }: KernelAddress): Buffer {
  const { family, bytes, length } = parsePrefix(prefix);
  return Buffer.concat([
    addressHeader(KERNEL_FAMILY[family], length, index),
    encodeAttributes([
      [IFA.local, bytes],
      [IFA.address, bytes],
      ...(family === 6 ? [[IFA.flags, u32(IFA_F_NODAD)] as const] : []),
    ]),
  ]);
}

export type Family = 4 | 6;

/** AF_INET and AF_INET6 of linux/socket.h. */
export const KERNEL_FAMILY: Readonly<Record<Family, number>> = { 4: 2, 6: 10 };
export const familyOf = (kernelFamily: number): Family | undefined =>
  kernelFamily === KERNEL_FAMILY[4] ? 4 : kernelFamily === KERNEL_FAMILY[6] ? 6 : undefined;

interface Prefix {
  family: Family;
  bytes: Buffer;
  length: number;
}

/** The bytes of an address in any spelling. Throws Invalid. */
export function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  if (!isIPv6(address) || address.includes('%')) {
    throw new TributaryError('Invalid', `${JSON.stringify(address)} is no IP address`);
  }
  // URL reads every spelling of an IPv6 address, also `::ffff:1.2.3.4`, and writes one.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const groups = (part: string | undefined): string[] => (part ? part.split(':') : []);
  const missing = 8 - groups(head).length - groups(tail).length;
  const all = tail === undefined ? groups(head) : [...groups(head), ...zeros(missing), ...groups(tail)];
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

const zeros = (count: number): string[] => Array.from({ length: count }, () => '0');

/** The one spelling of 4 or 16 bytes. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  const hex = Buffer.from(bytes).toString('hex').match(/.{4}/g) ?? [];
  return new URL(`http://[${hex.join(':')}]`).hostname.slice(1, -1);
}

/** Reads `address/length` and keeps the host bits. Throws Invalid. */
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

/** The one spelling of a prefix, with its host bits. Throws Invalid. */
export function canonicalPrefix(prefix: string): string {
  const { bytes, length } = parsePrefix(prefix);
  return prefixText(bytes, length);
}

/** The one spelling of an address. Throws Invalid. */
export const canonicalAddress = (address: string): string => addressText(addressBytes(address));

/** The bytes of `0.0.0.0` or `::`, which the kernel leaves out of its messages. */
export const unspecified = (family: Family): Buffer => Buffer.alloc(family === 4 ? 4 : 16);

export const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(':', ''), 'hex');
export const macText = (bytes: Buffer): string => (bytes.toString('hex').match(/../g) ?? []).join(':');
