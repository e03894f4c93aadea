import netlink from 'netlink';

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
      whole.set(netlink.putU16(length), 0);
      whole.set(netlink.putU16(isNested ? type | NESTED : type), 2);
      whole.set(data, HEADER_BYTES);
      return whole;
    }),
  );
}

/** By type; the last of each. What is cut off is left out. */
export function decodeAttributes(data: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  let rest = data;
  while (rest.length >= HEADER_BYTES) {
    const length = netlink.getU16(rest.subarray(0, 2));
    if (length < HEADER_BYTES || length > rest.length) break;
    const type = netlink.getU16(rest.subarray(2, HEADER_BYTES)) & TYPE_MASK;
    found.set(type, rest.subarray(HEADER_BYTES, length));
    rest = rest.subarray(aligned(length));
  }
  return found;
}

export const u8 = (value: number): Buffer => netlink.putU8(value);
export const u16 = (value: number): Buffer => netlink.putU16(value);
export const u32 = (value: number): Buffer => netlink.putU32(value);
export const u16be = (value: number): Buffer => netlink.putU16be(value);
export const text = (value: string): Buffer => Buffer.from(`${value}\0`);

export const readU16 = (data: Buffer, at: number): number => netlink.getU16(data.subarray(at, at + 2));
export const readU32 = (data: Buffer, at: number): number => netlink.getU32(data.subarray(at, at + 4));

/** Up to the first zero byte. */
export function readText(data: Buffer): string {
  const end = data.indexOf(0);
  return data.toString('utf8', 0, end === -1 ? data.length : end);
}

/** Undefined when absent or of another size. */
export const optionalU32 = (data: Buffer | undefined): number | undefined =>
  data?.length === 4 ? netlink.getU32(data) : undefined;
