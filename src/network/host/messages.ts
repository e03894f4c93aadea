import { getU16, getU32, putU16, putU16be, putU32, putU8 } from './netlink.ts';

/** Message types and fixed headers of rtnetlink(7). */

export const NEW_LINK = 16;
export const DELETE_LINK = 17;
export const GET_LINK = 18;
export const NEW_ADDRESS = 20;
export const DELETE_ADDRESS = 21;
export const GET_ADDRESS = 22;
export const NEW_ROUTE = 24;
export const DELETE_ROUTE = 25;
export const GET_ROUTE = 26;
export const NEW_NEIGHBOUR = 28;
export const DELETE_NEIGHBOUR = 29;
export const GET_NEIGHBOUR = 30;
export const NEW_RULE = 32;
export const DELETE_RULE = 33;
export const GET_RULE = 34;

export const AF_BRIDGE = 7;

/** Sizes in bytes of the headers below. */
export const LINK_BYTES = 16;
export const ADDRESS_BYTES = 8;
export const NEIGHBOUR_BYTES = 12;
export const ROUTE_BYTES = 12;
export const RULE_BYTES = 12;

/** `struct ifinfomsg`. `change` says which of the flags are to be set. */
export function linkHeader(fields: {
  family?: number;
  index?: number;
  flags?: number;
  change?: number;
}): Buffer {
  const { family = 0, index = 0, flags = 0, change = 0 } = fields;
  return Buffer.concat([Buffer.from([family, 0, 0, 0]), u32(index), u32(flags), u32(change)]);
}

/** `struct ifaddrmsg`. */
export function addressHeader(family: number, length: number, index: number): Buffer {
  return Buffer.concat([Buffer.from([family, length, 0, 0]), u32(index)]);
}

/** `struct ndmsg`. */
export function neighbourHeader(fields: {
  family: number;
  index: number;
  state: number;
  flags?: number;
}): Buffer {
  const head = Buffer.from([fields.family, 0, 0, 0]);
  return Buffer.concat([head, u32(fields.index), u16(fields.state), Buffer.from([fields.flags ?? 0, 0])]);
}

/** `struct rtmsg`. */
interface RouteHeader {
  family: number;
  destinationLength: number;
  protocol?: number;
  scope?: number;
  type?: number;
  flags?: number;
}

/** The table goes into an attribute, since it may be over 255. */
export function routeHeader(header: RouteHeader): Buffer {
  const { family, destinationLength, protocol = 0, scope = 0, type = 0, flags = 0 } = header;
  return Buffer.concat([
    Buffer.from([family, destinationLength, 0, 0, 0, protocol, scope, type]),
    u32(flags),
  ]);
}

/** `struct fib_rule_hdr`; the table goes into an attribute. */
export function ruleHeader(fields: {
  family: number;
  toLength: number;
  fromLength: number;
  action: number;
}): Buffer {
  const { family, toLength, fromLength, action } = fields;
  return Buffer.concat([Buffer.from([family, toLength, fromLength, 0, 0, 0, 0, action]), u32(0)]);
}

/**
 * Attributes of netlink messages (type, length, value; `struct nlattr` in linux/netlink.h), in the machine's byte order.
 * The package's own objects for them drop what they do not know, so messages are taken apart here.
 */
export type Attribute = readonly [type: number, value: Uint8Array | readonly Attribute[]];

const NESTED = 0x8000;
const TYPE_MASK = 0x3fff;
const HEADER_BYTES = 4;

const aligned = (length: number): number => (length + 3) & ~3;

export function encodeAttributes(attributes: readonly Attribute[]): Buffer {
  return Buffer.concat(
    attributes.map(([type, value]) => {
      const isNested = !(value instanceof Uint8Array);
      const data = isNested ? encodeAttributes(value) : value;
      const length = HEADER_BYTES + data.length;
      const whole = Buffer.alloc(aligned(length));
      whole.set(putU16(length), 0);
      whole.set(putU16(isNested ? type | NESTED : type), 2);
      whole.set(data, HEADER_BYTES);
      return whole;
    }),
  );
}

/** The last attribute of each type. An attribute that is cut off is left out. */
export function decodeAttributes(data: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  let rest = data;
  while (rest.length >= HEADER_BYTES) {
    const length = getU16(rest.subarray(0, 2));
    if (length < HEADER_BYTES || length > rest.length) break;
    const type = getU16(rest.subarray(2, HEADER_BYTES)) & TYPE_MASK;
    found.set(type, rest.subarray(HEADER_BYTES, length));
    rest = rest.subarray(aligned(length));
  }
  return found;
}

export const u8 = (value: number): Buffer => putU8(value);
const u16 = (value: number): Buffer => putU16(value);
export const u32 = (value: number): Buffer => putU32(value);
export const u16be = (value: number): Buffer => putU16be(value);
export const text = (value: string): Buffer => Buffer.from(`${value}\0`);

export const readU16 = (data: Buffer, at: number): number => getU16(data.subarray(at, at + 2));
export const readU32 = (data: Buffer, at: number): number => getU32(data.subarray(at, at + 4));

/** Up to the first zero byte. */
export function readText(data: Buffer): string {
  const end = data.indexOf(0);
  return data.toString('utf8', 0, end === -1 ? data.length : end);
}

/** Undefined when absent or of another size. */
export const optionalU32 = (data: Buffer | undefined): number | undefined =>
  data?.length === 4 ? getU32(data) : undefined;
