/** DNS messages as this folder sees them: few record types, checked, with names that can be compared. */
import type { Answer, DecodedPacket, Packet, Question } from 'dns-packet';

/** RFC 6762, section 10: what is not a host name lives 75 minutes; nothing here needs to live longer. */
const MAX_TTL_SECONDS = 4500;

interface RecordHead {
  name: string;
  /** Seconds; 0 says goodbye. */
  ttl: number;
  /** This replaces all of its name and type. */
  flush: boolean;
}
export type LanRecord =
  | (RecordHead & { type: 'PTR'; data: string })
  | (RecordHead & { type: 'SRV'; data: { target: string; port: number } })
  | (RecordHead & { type: 'TXT'; data: Buffer[] })
  | (RecordHead & { type: 'A' | 'AAAA'; data: string })
  | (RecordHead & { type: 'NSEC'; data: { nextDomain: string; rrtypes: string[] } });
export type RecordType = LanRecord['type'];

export interface LanQuestion {
  name: string;
  type: RecordType | 'ANY';
}

export interface LanQuery {
  kind: 'query';
  id: number;
  questions: LanQuestion[];
  /** More known answers follow (RFC 6762, 7.2). */
  truncated: boolean;
  known: LanRecord[];
  /** Records that the sender is about to claim (RFC 6762, 8.2). */
  proposed: LanRecord[];
}

export interface LanResponse {
  kind: 'response';
  records: LanRecord[];
}

/** Names are compared regardless of ASCII case (RFC 6762, section 16). */
export const nameKey = (name: string): string => name.replace(/\.$/, '').toLowerCase();
export const sameName = (a: string, b: string): boolean => nameKey(a) === nameKey(b);

/** Undefined for what mDNS ignores (RFC 6762, 18.3 and 18.11). */
export function readPacket(packet: DecodedPacket): LanQuery | LanResponse | undefined {
  const { opcode, rcode } = packet as DecodedPacket & { opcode?: string; rcode?: string };
  if (opcode !== 'QUERY' || rcode !== 'NOERROR') return undefined;
  const answers = readRecords(packet.answers);
  if (packet.type === 'response') {
    return { kind: 'response', records: [...answers, ...readRecords(packet.additionals)] };
  }
  return {
    kind: 'query',
    id: packet.id ?? 0,
    questions: (packet.questions ?? []).flatMap(readQuestion),
    truncated: packet.flag_tc,
    known: answers,
    proposed: readRecords(packet.authorities),
  };
}

/** IN and ANY; the library names them by their number, 1 and 255, where the unicast-response bit (0x8000) is set. */
const INTERNET = new Set(['IN', 'ANY', 'UNKNOWN_32769', 'UNKNOWN_33023']);
const QUESTION_TYPES = new Set<string>(['PTR', 'SRV', 'TXT', 'A', 'AAAA', 'NSEC', 'ANY']);

function readQuestion({ name, type, class: klass = 'IN' }: Question): LanQuestion[] {
  if (!INTERNET.has(klass) || !QUESTION_TYPES.has(type)) return [];
  return [{ name, type: type as LanQuestion['type'] }];
}

const readRecords = (answers: readonly Answer[] = []): LanRecord[] => answers.flatMap(readRecord);

function readRecord(answer: Answer): LanRecord[] {
  if (answer.type === 'OPT' || answer.class !== 'IN') return [];
  const { name, ttl = 0, flush = false } = answer;
  const head = { name, ttl: Math.min(ttl, MAX_TTL_SECONDS), flush };
  switch (answer.type) {
    case 'PTR':
    case 'A':
    case 'AAAA':
      return typeof answer.data === 'string' ? [{ ...head, type: answer.type, data: answer.data }] : [];
    case 'SRV':
      return [{ ...head, type: 'SRV', data: { target: answer.data.target, port: answer.data.port } }];
    case 'TXT':
      return [{ ...head, type: 'TXT', data: [answer.data].flat().map((part) => Buffer.from(part)) }];
    default:
      // NSEC says what is not there; we ask for that when we need it.
      return [];
  }
}

/** Same name, type and data: then it is the same record, whatever its TTL. */
export function recordKey(record: LanRecord): string {
  return `${nameKey(record.name)} ${record.type} ${dataKey(record)}`;
}

function dataKey({ type, data }: LanRecord): string {
  switch (type) {
    case 'PTR':
      return nameKey(data);
    case 'A':
    case 'AAAA':
      return data.toLowerCase();
    case 'SRV':
      return `${data.port} ${nameKey(data.target)}`;
    case 'TXT':
      return data.map((part) => part.toString('base64')).join(' ');
    case 'NSEC':
    default:
      return data.rrtypes.join(' ');
  }
}

export const MAX_PAYLOAD_BYTES = 1400;

export const responsePacket = (answers: LanRecord[], additionals: LanRecord[] = []): Packet => ({
  type: 'response',
  flags: AUTHORITATIVE,
  answers,
  additionals,
});

const AUTHORITATIVE = 1 << 10;
const TRUNCATED = 1 << 9;

export interface QueryParts {
  questions: readonly LanQuestion[];
  known?: readonly LanRecord[];
  proposed?: readonly LanRecord[];
}

/** Known answers that do not fit the first packet go into more of them (RFC 6762, 7.2). */
export function queryPackets({ questions, known = [], proposed = [] }: QueryParts): Packet[] {
  const groups: LanRecord[][] = [[]];
  let left = MAX_PAYLOAD_BYTES - questions.length * 80;
  for (const record of known) {
    const size = record.name.length + (record.type === 'PTR' ? record.data.length : 64) + 16;
    if (size > left) {
      groups.push([]);
      left = MAX_PAYLOAD_BYTES;
    }
    left -= size;
    groups.at(-1)?.push(record);
  }
  return groups.map((answers, index) => ({
    type: 'query',
    flags: index < groups.length - 1 ? TRUNCATED : 0,
    questions:
      index === 0 ? questions.map(({ name, type }) => ({ name, type: type as Question['type'] })) : [],
    answers: answers as Answer[],
    authorities: index === 0 ? (proposed as Answer[]) : [],
  }));
}
