/** From a WireGuard link as it is to the link as wanted, as arguments of `wg set LINK`. */
import { TributaryError } from '../../../lib/errors.ts';
import { formatPrefix, parseAddress, parsePrefix } from '../../../lib/prefix.ts';
import type { WireGuardConfig, WireGuardPeerConfig } from '../host-config.ts';
import type { PeerState, WireGuardState } from './dump.ts';
import { isKey } from './keys.ts';

/** Arguments that belong together: of the interface, or of one peer. */
export interface Change {
  /** A number stands for the secret with that index in `secrets`. */
  args: readonly (string | number)[];
  /** They never stand in argv. */
  secrets: readonly string[];
  /** How many settings it changes. */
  count: number;
}

/** Which endpoint of the config a peer was last given, by public key. */
export type GivenEndpoints = Map<string, string>;

/** WireGuard drops a session after that (REJECT_AFTER_TIME, section 6.1 of its paper), in seconds. */
const SESSION_SECONDS = 180;
const LINK = /^[A-Za-z0-9_.-]{1,15}$/;

export function checkLink(link: string): string {
  if (!LINK.test(link)) throw invalid(`${JSON.stringify(link.slice(0, 40))} is not the name of a link`);
  return link;
}

const invalid = (what: string): TributaryError => new TributaryError('Invalid', `WireGuard: ${what}`);

/** @throws Invalid for what is not a key, a prefix, an endpoint or a number; the message holds no secret. */
export function checkConfig(config: WireGuardConfig): void {
  checkLink(config.link);
  if (!isKey(config.privateKey)) throw invalid('the private key is not 32 bytes in base64');
  if (!isWithin(config.port, 1, 65_535)) throw invalid(`${config.port} is not a port`);
  const keys = new Set<string>();
  const owners = new Map<string, string>();
  for (const peer of config.peers) {
    checkPeer(peer);
    if (keys.has(peer.publicKey)) throw invalid(`two peers have the public key ${peer.publicKey}`);
    keys.add(peer.publicKey);
    for (const prefix of new Set(peer.allowedIPs.map(parsePrefix).map(formatPrefix))) {
      const owner = owners.get(prefix);
      if (owner !== undefined) throw invalid(`${prefix} is allowed for both ${owner} and ${peer.publicKey}`);
      owners.set(prefix, peer.publicKey);
    }
  }
}

function checkPeer({ publicKey, presharedKey, endpoint, keepalive }: WireGuardPeerConfig): void {
  if (!isKey(publicKey)) throw invalid(`${JSON.stringify(publicKey.slice(0, 60))} is not a public key`);
  if (presharedKey !== undefined && !isKey(presharedKey)) {
    throw invalid(`the preshared key of ${publicKey} is not 32 bytes in base64`);
  }
  if (endpoint !== undefined && !isEndpoint(endpoint)) {
    throw invalid(`${JSON.stringify(endpoint.slice(0, 60))} is not a literal address with a port`);
  }
  if (!isWithin(keepalive, 0, 65_535)) throw invalid(`a keepalive of ${keepalive} seconds is not possible`);
}

const isWithin = (value: number, low: number, high: number): boolean =>
  Number.isInteger(value) && value >= low && value <= high;

const ENDPOINT = /^(?:([0-9.]+)|\[([0-9a-fA-F:]+)\]):([1-9]\d{0,4})$/;

function isEndpoint(text: string): boolean {
  const [, v4, v6, port] = ENDPOINT.exec(text) ?? [];
  return parseAddress(v4 ?? v6 ?? '') !== undefined && Number(port) <= 65_535;
}

/** The differences alone. `given` and `nowSeconds` serve to tell whether an endpoint that differs was learnt. */
export function changesTo(
  config: WireGuardConfig,
  state: WireGuardState,
  given: ReadonlyMap<string, string>,
  nowSeconds: number,
): Change[] {
  const wanted = new Set(config.peers.map(({ publicKey }) => publicKey));
  const removals = [...state.peers.keys()]
    .filter((key) => !wanted.has(key))
    .map((key): Change => ({ args: ['peer', key, 'remove'], secrets: [], count: 1 }));
  const peers = config.peers.map((peer) => {
    const there = state.peers.get(peer.publicKey);
    return peerChange(peer, there, isEndpointDue(peer, there, given.get(peer.publicKey), nowSeconds));
  });
  return [interfaceChange(config, state), ...removals, ...peers].filter(({ count }) => count > 0);
}

function interfaceChange({ privateKey, port }: WireGuardConfig, state: WireGuardState): Change {
  const change = new ChangeBuilder();
  // What is read back has the bits set that every use of a key sets (RFC 7748, section 5).
  if (clamped(state.privateKey ?? '') !== clamped(privateKey)) change.secret('private-key', privateKey);
  if (state.port !== port) change.set('listen-port', `${port}`);
  return change;
}

function clamped(privateKey: string): string {
  const bytes = Buffer.from(privateKey, 'base64');
  const [first, last] = [bytes.at(0), bytes.at(-1)];
  if (first === undefined || last === undefined) return '';
  bytes[0] = first & 0xf8;
  bytes[bytes.length - 1] = (last & 0x7f) | 0x40;
  return bytes.toString('base64');
}

function peerChange(peer: WireGuardPeerConfig, there: PeerState | undefined, endpointIsDue: boolean): Change {
  const change = new ChangeBuilder('peer', peer.publicKey);
  if (there === undefined) change.count += 1;
  if (there?.presharedKey !== peer.presharedKey) change.secret('preshared-key', peer.presharedKey ?? '');
  if (endpointIsDue && peer.endpoint !== undefined) change.set('endpoint', peer.endpoint);
  if ((there?.keepalive ?? 0) !== peer.keepalive) change.set('persistent-keepalive', `${peer.keepalive}`);
  const allowed = peer.allowedIPs.map(parsePrefix).map(formatPrefix).toSorted();
  // This replaces the prefixes of this peer and takes them from another: a prefix that moves always belongs to one of both.
  if (allowed.join(',') !== (there?.allowedIPs ?? []).toSorted().join(','))
    change.set('allowed-ips', allowed.join(','));
  return change;
}

/**
 * An endpoint that is not the configured one was most likely learnt from the peer's own packets. The configured one takes its
 * place when it has changed, or when the session is dead. An old handshake shows a dead session where keepalives would have renewed
 * it, and after a restart, when it is not known what was given.
 */
function isEndpointDue(
  { endpoint, keepalive }: WireGuardPeerConfig,
  there: PeerState | undefined,
  given: string | undefined,
  nowSeconds: number,
): boolean {
  if (endpoint === undefined) return false;
  if (there?.endpoint === undefined) return true;
  if (sameEndpoint(there.endpoint, endpoint)) return false;
  if (given !== undefined && given !== endpoint) return true;
  const isStale = nowSeconds - there.handshake > SESSION_SECONDS;
  return isStale && (given === undefined || keepalive > 0 || there.handshake === 0);
}

function sameEndpoint(one: string, other: string): boolean {
  if (one === other) return true;
  const [, , a, portA] = ENDPOINT.exec(one) ?? [];
  const [, , b, portB] = ENDPOINT.exec(other) ?? [];
  const [first, second] = [parseAddress(a ?? ''), parseAddress(b ?? '')];
  return first !== undefined && first.value === second?.value && portA === portB;
}

class ChangeBuilder implements Change {
  readonly args: (string | number)[];
  readonly secrets: string[] = [];
  count = 0;

  constructor(...args: string[]) {
    this.args = args;
  }

  set(name: string, value: string): void {
    this.args.push(name, value);
    this.count += 1;
  }

  /** An empty secret removes the setting. */
  secret(name: string, value: string): void {
    this.args.push(name, this.secrets.length);
    this.secrets.push(value);
    this.count += 1;
  }
}
