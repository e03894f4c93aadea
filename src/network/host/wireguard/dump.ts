/** What `wg show LINK dump` prints: tab separated, the interface first, then one line per peer (wg(8)). */
import { TributaryError } from '../../../lib/errors.ts';
import { isKey } from './keys.ts';

export interface WireGuardState {
  /** Absent: none is set. */
  privateKey?: string;
  port: number;
  peers: ReadonlyMap<string, PeerState>;
}

export interface PeerState {
  presharedKey?: string;
  endpoint?: string;
  /** Prefixes as wg prints them. */
  allowedIPs: string[];
  /** Seconds since 1970; 0: never. */
  handshake: number;
  receivedBytes: number;
  sentBytes: number;
  /** Seconds; 0 is off. */
  keepalive: number;
}

const NONE = '(none)';
const COUNT = /^\d{1,20}$/;

/** @throws Unavailable where wg prints something else than expected; the message holds no key. */
export function readDump(text: string): WireGuardState {
  const [head = '', ...lines] = text.replace(/\n$/, '').split('\n');
  const [privateKey = '', , port = '', mark] = fieldsOf(head, 4);
  if (mark === undefined) throw unexpected('the interface');
  return {
    ...(privateKey !== NONE && { privateKey: keyOf(privateKey) }),
    port: numberOf(port),
    peers: new Map(lines.map(peerOf)),
  };
}

function peerOf(line: string): [string, PeerState] {
  const [key = '', preshared = '', endpoint = '', allowed = '', ...rest] = fieldsOf(line, 8);
  const [handshake = '', received = '', sent = '', keepalive = ''] = rest;
  const state: PeerState = {
    ...(preshared !== NONE && { presharedKey: keyOf(preshared) }),
    ...(endpoint !== NONE && { endpoint }),
    allowedIPs: allowed === NONE ? [] : allowed.split(','),
    handshake: numberOf(handshake),
    receivedBytes: numberOf(received),
    sentBytes: numberOf(sent),
    keepalive: keepalive === 'off' ? 0 : numberOf(keepalive),
  };
  return [keyOf(key), state];
}

function fieldsOf(line: string, count: number): string[] {
  const fields = line.split('\t');
  if (fields.length !== count) throw unexpected(`a line of ${fields.length} fields`);
  return fields;
}

function keyOf(text: string): string {
  if (!isKey(text)) throw unexpected('a key');
  return text;
}

function numberOf(text: string): number {
  if (!COUNT.test(text)) throw unexpected('a number');
  return Number(text);
}

const unexpected = (what: string): TributaryError =>
  new TributaryError('Unavailable', `wg prints ${what} that cannot be understood; use wireguard-tools 1.0`);
