/**
 * wireguard-go by its socket (the cross-platform interface of WireGuard, "UAPI"): `get=1` and `set=1`, lines `key=value`, an empty
 * line at the end of each; keys in hexadecimal. `wg` speaks it as well; a program that is started for each question costs some
 * milliseconds of CPU, and the gateway asks each second.
 */
import { getSystemErrorName } from 'node:util';

import { errorMessage, TributaryError } from '../../../lib/errors.ts';
import { type Change, checkLink } from './changes.ts';
import { Conversation } from './conversation.ts';
import type { PeerState, WireGuardState } from './dump.ts';

const DIRECTORY = '/var/run/wireguard';
const KEY_BYTES = 32;
const NO_KEY = '0'.repeat(2 * KEY_BYTES);

/** Undefined: no program serves that link, so if there is one it is the kernel's. */
export async function programState(link: string): Promise<WireGuardState | undefined> {
  const answer = await ask(link, 'get=1\n\n');
  return answer === undefined ? undefined : readState(checked(link, 'cannot be read', answer));
}

/** Resolves to false where no program serves that link. */
export async function setProgram(link: string, changes: readonly Change[]): Promise<boolean> {
  const answer = await ask(link, `set=1\n${changes.map(linesOf).join('')}\n`);
  if (answer === undefined) return false;
  checked(link, 'cannot be set', answer);
  return true;
}

/** Kept for as long as this process lives; there are as many as WireGuard links. */
const conversations = new Map<string, Conversation>();

/** Whatever keeps us from it, `wg` finds words for it. */
async function ask(link: string, question: string): Promise<string | undefined> {
  const conversation = conversations.get(link) ?? new Conversation(`${DIRECTORY}/${checkLink(link)}.sock`);
  conversations.set(link, conversation);
  try {
    return await conversation.ask(question);
  } catch (error) {
    throw new TributaryError('Unavailable', `WireGuard: link ${link}: wireguard-go ${errorMessage(error)}`);
  }
}

/** The pairs of an answer that says that all is well. */
function checked(link: string, what: string, answer: string): [string, string][] {
  const pairs = answer
    .split('\n')
    .filter((line) => line !== '')
    .map((line): [string, string] => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    });
  const [name, errno] = pairs.pop() ?? [];
  if (name === 'errno' && errno === '0') return pairs;
  const code = -Math.abs(Number(errno));
  const said = name === 'errno' && code < 0 ? getSystemErrorName(code) : 'something else than an answer';
  throw new TributaryError('Unavailable', `WireGuard: link ${link} ${what}: wireguard-go says ${said}`);
}

/** Each peer begins with its public key. */
export function readState(pairs: readonly (readonly [string, string])[]): WireGuardState {
  const state: { privateKey?: string; port: number; peers: Map<string, PeerState> } = {
    port: 0,
    peers: new Map(),
  };
  let peer: PeerState | undefined;
  for (const [key, value] of pairs) {
    if (key === 'public_key') {
      peer = { allowedIPs: [], handshake: 0, receivedBytes: 0, sentBytes: 0, keepalive: 0 };
      state.peers.set(base64(value), peer);
    } else if (peer !== undefined) readPeer(peer, key, value);
    else if (key === 'private_key') state.privateKey = base64(value);
    else if (key === 'listen_port') state.port = Number(value);
  }
  return state;
}

function readPeer(peer: PeerState, key: string, value: string): void {
  if (key === 'allowed_ip') peer.allowedIPs.push(value);
  else if (key === 'endpoint') peer.endpoint = value;
  else if (key === 'preshared_key' && value !== NO_KEY) peer.presharedKey = base64(value);
  else if (key === 'last_handshake_time_sec') peer.handshake = Number(value);
  else if (key === 'rx_bytes') peer.receivedBytes = Number(value);
  else if (key === 'tx_bytes') peer.sentBytes = Number(value);
  else if (key === 'persistent_keepalive_interval') peer.keepalive = Number(value);
}

/** By the words of `wg set`. */
const NAMES: Readonly<Record<string, string>> = {
  'private-key': 'private_key',
  'listen-port': 'listen_port',
  peer: 'public_key',
  'preshared-key': 'preshared_key',
  endpoint: 'endpoint',
  'persistent-keepalive': 'persistent_keepalive_interval',
};
const KEYS: ReadonlySet<string> = new Set(['private-key', 'peer', 'preshared-key']);

/** A change as `changesTo` makes it, in lines. */
export function linesOf({ args, secrets }: Change): string {
  const words = args.map((arg) => (typeof arg === 'number' ? (secrets[arg] ?? '') : arg));
  let lines = '';
  for (let at = 0; at < words.length; at += 2) {
    const [word = '', value = ''] = words.slice(at, at + 2);
    if (word === 'remove') return `${lines}remove=true\n`;
    if (word === 'allowed-ips') {
      const prefixes = value.split(',').filter((prefix) => prefix !== '');
      lines += ['replace_allowed_ips=true', ...prefixes.map((prefix) => `allowed_ip=${prefix}`), ''].join(
        '\n',
      );
    } else lines += `${NAMES[word]}=${KEYS.has(word) ? hexOf(value) : value}\n`;
  }
  return lines;
}

/** An empty key is none. */
const hexOf = (key: string): string => (key === '' ? NO_KEY : Buffer.from(key, 'base64').toString('hex'));

function base64(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  if (bytes.length === KEY_BYTES) return bytes.toString('base64');
  throw new TributaryError('Unavailable', 'wireguard-go prints a key that cannot be understood');
}
