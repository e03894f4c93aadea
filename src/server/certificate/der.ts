/**
 * As much of DER (X.690) as certificates and signing requests need. A library for it costs 25 MB of resident
 * memory in each agent; these are the few lines that are really used. Reading is strict: what is not understood
 * is refused.
 */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** A tag of class context-specific. */
export const context = (number: number, constructed: boolean): number =>
  0x80 | (constructed ? 0x20 : 0) | number;

export function encode(tag: number, ...contents: Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const bytes: number[] = [];
  for (let rest = content.length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length, ...bytes]), content]);
}

export const sequence = (...contents: Uint8Array[]): Buffer => encode(TAG.sequence, ...contents);

/** A non-negative integer, big endian. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1;
  const trimmed = bytes.subarray(start);
  const sign = (trimmed[0] ?? 0) & 0x80 ? Buffer.from([0]) : Buffer.alloc(0);
  return encode(TAG.integer, sign, trimmed);
}

/** Whole bytes only. */
export const bitString = (bytes: Uint8Array): Buffer => encode(TAG.bitString, Buffer.from([0]), bytes);

export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const septets = [arc & 0x7f];
    for (let high = arc >>> 7; high > 0; high >>>= 7) septets.unshift(0x80 | (high & 0x7f));
    bytes.push(...septets);
  }
  return encode(TAG.objectIdentifier, Buffer.from(bytes));
}

/** UTC, to the second; good beyond 2049, unlike UTCTime. */
export function generalizedTime(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replaceAll(/[-T:]|\.\d+/g, '');
  return encode(TAG.generalizedTime, Buffer.from(digits, 'latin1'));
}

/** One element of an encoded message. */
export interface Element {
  tag: number;
  content: Buffer;
  /** With tag and length. */
  whole: Buffer;
}

/** The element at the start of `bytes`; throws RangeError where there is none that is sound. */
function readElement(bytes: Buffer): Element {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) throw new RangeError('DER: bad tag');
  let length = first;
  let start = 2;
  if (first >= 0x80) {
    const count = first & 0x7f;
    // Neither the indefinite form nor anything that could not be held in memory.
    if (count === 0 || count > 3 || bytes.length < 2 + count) throw new RangeError('DER: bad length');
    length = bytes.readUIntBE(2, count);
    start += count;
  }
  if (bytes.length < start + length) throw new RangeError('DER: truncated');
  return { tag, content: bytes.subarray(start, start + length), whole: bytes.subarray(0, start + length) };
}

/** All elements, up to the last byte. */
export function readElements(bytes: Buffer): Element[] {
  const elements: Element[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const element = readElement(rest);
    elements.push(element);
    rest = rest.subarray(element.whole.length);
  }
  return elements;
}

/** The parts of an element that must have this tag. */
export function partsOf(element: Element | undefined, tag: number): Element[] {
  if (element?.tag !== tag) throw new RangeError('DER: another element was expected');
  return readElements(element.content);
}

/** The text of one of the two string types that Kubernetes' own tools write. */
export function readString(element: Element | undefined): string {
  if (element?.tag !== TAG.utf8String && element?.tag !== TAG.printableString) {
    throw new RangeError('DER: a string was expected');
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(element.content);
}

export function readObjectIdentifier(element: Element | undefined): string {
  const bytes = element?.tag === TAG.objectIdentifier ? element.content : Buffer.alloc(0);
  const arcs: number[] = [];
  let value = 0;
  for (const byte of bytes) {
    value = value * 128 + (byte & 0x7f);
    if (byte & 0x80) continue;
    arcs.push(value);
    value = 0;
  }
  const [head, ...rest] = arcs;
  if (head === undefined || value !== 0) throw new RangeError('DER: bad object identifier');
  const first = Math.min(Math.floor(head / 40), 2);
  return [first, head - first * 40, ...rest].join('.');
}
