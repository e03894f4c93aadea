/** Writes queries and reads replies of DNS (RFC 1035, RFC 6891). Anybody may have sent what is read here. */
import {
  type Answer,
  decode,
  type DecodedPacket,
  encode,
  RECURSION_DESIRED,
  type SrvData,
  TRUNCATED_RESPONSE,
} from 'dns-packet';

import { TributaryError } from '../../lib/errors.ts';

export type QueryType = 'PTR' | 'SRV' | 'TXT' | 'A' | 'AAAA';

export interface Query {
  /** 16 bits that the answer must repeat. */
  id: number;
  /** Without the dot at its end. */
  name: string;
  type: QueryType;
}

interface RecordOf<Type, Data> {
  type: Type;
  name: string;
  ttlSeconds: number;
  data: Data;
}
export type DnsRecord =
  | RecordOf<'PTR' | 'CNAME' | 'A' | 'AAAA', string>
  | RecordOf<'SRV', Pick<SrvData, 'port' | 'target'> & { priority: number; weight: number }>
  | RecordOf<'TXT', Buffer[]>;

export const RCODE = { noError: 0, formErr: 1, nxDomain: 3, notImp: 4 } as const;

export interface Reply {
  rcode: number;
  /** The answer did not fit; ask again over TCP. */
  isTruncated: boolean;
  /** Neither authoritative nor from a resolver: a referral, which is no answer. */
  isReferral: boolean;
  records: DnsRecord[];
  /** How long "there are no such records" holds (RFC 2308, section 5), where the answer says it. */
  negativeTtlSeconds?: number;
}

/** DNS flag day 2020: what passes everywhere without fragments. */
const UDP_PAYLOAD = 1232;
const MAX_NAME_BYTES = 253;
const MAX_LABEL_BYTES = 63;
/** Records of an answer that are looked at; 100 clusters need 100. */
const MAX_RECORDS = 1000;
/** RFC 2181, section 8: a TTL with the top bit set is to be taken for zero. */
const MAX_TTL = 2 ** 31 - 1;
const HEADER_BYTES = 12;
/** Of answers, authorities and additionals. */
const COUNTS_AT = 6;

/** `edns: false` for servers so old that they refuse it. */
export function encodeQuery({ id, name, type }: Query, { edns }: { edns: boolean }): Buffer {
  return encode({
    type: 'query',
    id,
    flags: RECURSION_DESIRED,
    questions: [{ name, type, class: 'IN' }],
    ...(edns && { additionals: [optRecord()] }),
  });
}

const optRecord = (): Answer => ({
  type: 'OPT',
  name: '.',
  udpPayloadSize: UDP_PAYLOAD,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
});

/**
 * The reply in these bytes. Undefined where it answers something else, as a late or a forged one does. Throws Invalid where it answers
 * our question but makes no sense.
 */
export function decodeReply(bytes: Buffer, query: Query): Reply | undefined {
  if (bytes.length < HEADER_BYTES || bytes.readUInt16BE(0) !== query.id) return undefined;
  const packet = parse(isCut(bytes) ? headOf(bytes) : bytes);
  if (!packet.flag_qr) return undefined;
  const rcode = bytes.readUInt16BE(2) & 0xf;
  const [question, ...more] = packet.questions ?? [];
  // A server that cannot read the question may leave it out (RFC 1035, 4.1.1; seen with FORMERR and NOTIMP).
  if (
    question === undefined ? rcode === RCODE.noError : more.length > 0 || !isSameQuestion(question, query)
  ) {
    return undefined;
  }
  const negativeTtlSeconds = negativeTtl(packet.authorities ?? []);
  return {
    rcode,
    isTruncated: packet.flag_tc,
    isReferral: !packet.flag_aa && !packet.flag_ra,
    records: (packet.answers ?? []).slice(0, MAX_RECORDS).flatMap(recordOf),
    ...(negativeTtlSeconds !== undefined && { negativeTtlSeconds }),
  };
}

const isCut = (bytes: Buffer): boolean => (bytes.readUInt16BE(2) & TRUNCATED_RESPONSE) !== 0;

/** The message without its records: where it was cut, only a part of the last record may be there. */
function headOf(bytes: Buffer): Buffer {
  const head = Buffer.from(bytes);
  return head.fill(0, COUNTS_AT, HEADER_BYTES);
}

function parse(bytes: Buffer): DecodedPacket {
  try {
    const packet = decode(bytes);
    // The parser accepts a TXT record that ends beyond the message.
    if (!(decode.bytes <= bytes.length)) throw new Error('a record ends beyond the message');
    return packet;
  } catch (cause) {
    throw new TributaryError('Invalid', 'the answer is not a DNS message', { cause });
  }
}

const isSameQuestion = (
  asked: { name: string; type: string; class?: string | undefined },
  query: Query,
): boolean => asked.type === query.type && asked.class === 'IN' && sameName(asked.name, query.name);

function recordOf(answer: Answer): DnsRecord[] {
  if (answer.type === 'OPT' || !('ttl' in answer) || answer.class !== 'IN') return [];
  const ttl = answer.ttl ?? 0;
  const common = { name: withoutDot(answer.name), ttlSeconds: ttl > MAX_TTL ? 0 : ttl };
  switch (answer.type) {
    case 'PTR':
    case 'CNAME':
      return [{ ...common, type: answer.type, data: withoutDot(answer.data) }];
    case 'A':
    case 'AAAA':
      return [{ ...common, type: answer.type, data: answer.data }];
    case 'SRV': {
      const { priority = 0, weight = 0, port, target } = answer.data;
      return [{ ...common, type: 'SRV', data: { priority, weight, port, target: withoutDot(target) } }];
    }
    case 'TXT':
      return [{ ...common, type: 'TXT', data: answer.data as Buffer[] }];
    default:
      return [];
  }
}

function negativeTtl(authorities: readonly Answer[]): number | undefined {
  const soa = authorities.find((record) => record.type === 'SOA');
  if (soa === undefined) return undefined;
  return Math.min(soa.ttl ?? 0, soa.data.minimum ?? 0, MAX_TTL);
}

/** Empty for the root. */
export const withoutDot = (name: string): string => name.replace(/\.$/, '');

/** DNS compares names regardless of the case of ASCII letters (RFC 4343). */
export const nameKey = (name: string): string =>
  withoutDot(name).replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());

export const sameName = (a: string, b: string): boolean => nameKey(a) === nameKey(b);

/** Whether a query can carry the name. */
export function isDnsName(name: string): boolean {
  const bytes = Buffer.byteLength(name);
  return (
    bytes > 0 &&
    bytes <= MAX_NAME_BYTES &&
    name.split('.').every((label) => label !== '' && Buffer.byteLength(label) <= MAX_LABEL_BYTES)
  );
}
