/**
 * A probe as it is sent, big-endian. A request is padded to any size. An answer is a header only, so that nobody can make us send
 * more than has come:
 *
 *     0 magic "TBP1"   4 type   5 zero   6 size of the request   8 token (8)   16 sequence   20 one if the last one was answered   21 padding
 *
 * Earlier versions pad from byte 20 on with zeros, and do not look at what others have there.
 */
export interface ProbeMessage {
  type: 'request' | 'answer';
  /** Bytes of UDP payload of the request, padding included. */
  size: number;
  /** Chosen by the sender of the request: 16 hexadecimal digits. */
  token: string;
  sequence: number;
  /** In a request: whether an answer came to the one before, so that whoever gets it knows that both directions work. */
  isHeard?: boolean;
}

export const PROBE_HEADER = 20;
/** The smallest request that says whether the one before was answered. */
export const SMALLEST_REQUEST = 21;
const MAGIC = 0x54425031;
const TYPES = { request: 1, answer: 2 } as const;
const LARGEST = 65_507;

export function encodeProbe({ type, size, token, sequence, isHeard = false }: ProbeMessage): Uint8Array {
  const bytes = Buffer.alloc(type === 'request' ? size : PROBE_HEADER);
  bytes.writeUInt32BE(MAGIC, 0);
  bytes.writeUInt8(TYPES[type], 4);
  bytes.writeUInt16BE(size, 6);
  bytes.write(token, 8, 8, 'hex');
  bytes.writeUInt32BE(sequence, 16);
  if (isHeard && bytes.length > PROBE_HEADER) bytes.writeUInt8(1, PROBE_HEADER);
  return bytes;
}

/** Undefined for anything that is no whole probe. */
export function decodeProbe(datagram: Uint8Array): ProbeMessage | undefined {
  if (datagram.length < PROBE_HEADER || datagram.length > LARGEST) return undefined;
  const bytes = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.length);
  if (bytes.readUInt32BE(0) !== MAGIC || bytes.readUInt8(5) !== 0) return undefined;
  const type = bytes.readUInt8(4);
  const size = bytes.readUInt16BE(6);
  const message = { size, token: bytes.toString('hex', 8, 16), sequence: bytes.readUInt32BE(16) };
  if (type === TYPES.request) {
    const isHeard = bytes[PROBE_HEADER] === 1;
    return size === bytes.length ? { type: 'request', ...message, isHeard } : undefined;
  }
  return type === TYPES.answer && bytes.length === PROBE_HEADER ? { type: 'answer', ...message } : undefined;
}
