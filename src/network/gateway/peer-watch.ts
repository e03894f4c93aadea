import type { Tunnel } from '../../api/tunnel.ts';
import type { Clock } from '../../lib/clock.ts';
import { splitEndpoint } from '../../lib/endpoint.ts';
import { contains, parseAddress, type Prefix, prefixesOf } from '../../lib/prefix.ts';
import type { WireGuardPeerState } from '../host/host-config.ts';
import type { ProbeResult } from '../probe/peer-probe.ts';
import { viewsOf } from './peers.ts';
import type { EndpointResolver } from './resolver.ts';

interface PeerWatchOptions {
  clock: Clock;
  resolver: Pick<EndpointResolver, 'literal'>;
  /** Without a probe that came back for so long, a peer does not answer. */
  silenceMs: number;
}

interface Observed {
  tunnels: readonly Tunnel[];
  states: readonly WireGuardPeerState[];
  probes: ReadonlyMap<string, ProbeResult>;
  /** Prefixes in which no tunnel can end. */
  own: readonly string[];
}

interface Received {
  bytes: number;
  /** When they were last seen to be more, milliseconds since 1970; absent: not yet. */
  atMs?: number;
}

/** What WireGuard says of the peers, and where each is to be dialled. Forgets all with the process; a restart is harmless. */
export class PeerWatch {
  readonly #options: PeerWatchOptions;
  #choices = new Map<string, EndpointChoice>();
  #states = new Map<string, WireGuardPeerState>();
  #astray: ReadonlySet<string> = new Set();
  /** By public key. */
  #received = new Map<string, Received>();

  constructor(options: PeerWatchOptions) {
    this.#options = options;
  }

  endpointOf(clusterID: string): string | undefined {
    return this.#choices.get(clusterID)?.endpoint;
  }

  /**
   * Public keys of peers whose endpoint, as WireGuard has it, lies behind a tunnel: it would put packets into packets without
   * end. WireGuard takes the source of any packet that proves the peer's key for the peer's endpoint. It forgets an endpoint
   * only when the peer is removed.
   */
  get astray(): ReadonlySet<string> {
    return this.#astray;
  }

  stateOf(tunnel: Tunnel): WireGuardPeerState | undefined {
    return this.#states.get(tunnel.spec.peer?.publicKey ?? '');
  }

  /** When bytes were last seen to have come from the peer, milliseconds since 1970; undefined: not since this process began. */
  receivedMs(tunnel: Tunnel): number | undefined {
    return this.#received.get(tunnel.spec.peer?.publicKey ?? '')?.atMs;
  }

  /** Returns whether somebody is to be dialled elsewhere than WireGuard does now. */
  observe({ tunnels, states, probes, own }: Observed): boolean {
    this.#states = new Map(states.map((state) => [state.publicKey, state]));
    const nowMs = this.#options.clock.now();
    this.#received = new Map(
      states.map((state) => [state.publicKey, received(state, this.#received.get(state.publicKey), nowMs)]),
    );
    const choices = new Map<string, EndpointChoice>();
    const forbidden = prefixesOf(own);
    const views = prefixesOf(viewsOf(tunnels));
    const astray = states.filter(({ endpoint }) => isWithin(views, endpoint));
    let moved = astray.length !== this.#astray.size;
    moved ||= astray.some(({ publicKey }) => !this.#astray.has(publicKey));
    this.#astray = new Set(astray.map(({ publicKey }) => publicKey));
    for (const tunnel of tunnels) {
      const { name } = tunnel.metadata;
      const choice = this.#choose(tunnel, probes.get(name), { forbidden, views });
      if (choice === undefined) continue;
      choices.set(name, choice);
      const state = this.stateOf(tunnel);
      moved ||= choice.endpoint !== this.#choices.get(name)?.endpoint;
      moved ||= state !== undefined && state.endpoint !== choice.endpoint;
    }
    this.#choices = choices;
    return moved;
  }

  #choose(
    tunnel: Tunnel,
    probe: ProbeResult | undefined,
    { forbidden, views }: { forbidden: readonly Prefix[]; views: readonly Prefix[] },
  ): EndpointChoice | undefined {
    const { clock, resolver, silenceMs } = this.#options;
    const { peer } = tunnel.spec;
    if (peer === undefined) return undefined;
    const outside = (endpoint?: string): string | undefined =>
      isWithin(views, endpoint) ? undefined : endpoint;
    const current = outside(this.stateOf(tunnel)?.endpoint);
    const before = withoutHeard(this.#choices.get(tunnel.metadata.name), outside);
    const lastKnown = outside(tunnel.status?.connection?.endpoint);
    return chooseEndpoint({
      now: clock.monotonic(),
      announced: resolver.literal(peer.endpoints, forbidden),
      ...(probe !== undefined && {
        answering: probe.alive && clock.now() - (probe.lastAnswerMs ?? -Infinity) < silenceMs,
      }),
      ...(current !== undefined && { current }),
      ...(before !== undefined && { before }),
      ...(lastKnown !== undefined && { lastKnown }),
    });
  }
}

function isWithin(prefixes: readonly Prefix[], endpoint: string | undefined): boolean {
  const address = parseAddress(splitEndpoint(endpoint ?? '')?.host ?? '');
  return address !== undefined && prefixes.some((prefix) => contains(prefix, address));
}

/** Where it was heard may have become a view since. */
function withoutHeard(
  choice: EndpointChoice | undefined,
  outside: (endpoint?: string) => string | undefined,
): EndpointChoice | undefined {
  if (choice === undefined || outside(choice.heard) === choice.heard) return choice;
  const { heard: _heard, ...rest } = choice;
  return rest;
}

/** A count that has become smaller was begun anew, as with a new link. */
function received(
  { receivedBytes: bytes }: WireGuardPeerState,
  before: Received | undefined,
  nowMs: number,
): Received {
  if (before === undefined) return { bytes };
  if (bytes === before.bytes) return before;
  return bytes === 0 ? { ...before, bytes } : { bytes, atMs: nowMs };
}

/** Where a peer is dialled. Pure: what was observed goes in, the choice comes out. */

export interface EndpointFacts {
  /** Milliseconds, monotonic. */
  now: number;
  /** What the peer has announced, resolved: literal `host:port`, the first is preferred. */
  announced: readonly string[];
  /** Where WireGuard sends to now. Learnt from the peer's packets, unless it is what was chosen. */
  current?: string;
  /** Whether the peer has been heard lately through the tunnel; absent: not measured yet. */
  answering?: boolean;
  /** The choice before; absent: none yet in this process. */
  before?: EndpointChoice;
  /** Where it was heard last by whichever gateway of ours was active. */
  lastKnown?: string;
}

export interface EndpointChoice {
  endpoint: string;
  /** Since when; for one that answers, when it did last. Monotonic. */
  since: number;
  /** Which try it is since the peer was heard last, from 1; 0: it answers. */
  attempt: number;
  /** Where the peer was heard last. */
  heard?: string;
  /** What the peer had announced then. */
  announced: readonly string[];
}

/** WireGuard repeats a handshake after 5 s (REKEY_TIMEOUT): below that, an endpoint is not given its chance. */
const TRY_MS = 5000;
const LONGEST_TRY_MS = 30_000;

/**
 * A peer that answers is left where it is: WireGuard follows it when it moves. One that does not is looked for at its
 * endpoints in turn, longer from try to try; at one that it has announced since, at once.
 */
export function chooseEndpoint(facts: EndpointFacts): EndpointChoice | undefined {
  const { now, announced, current, answering, before } = facts;
  if (answering === true && current !== undefined) {
    return { endpoint: current, since: now, attempt: 0, heard: current, announced };
  }
  if (before === undefined) return firstChoice(facts);
  // A program that has just started must not move a peer that goes on all the while.
  const isEarly = answering === undefined && before.endpoint === current;
  if (isEarly && now - before.since < TRY_MS) return before;
  return nextChoice(before, facts);
}

/** WireGuard may know better than what is announced: it outlives this program. */
function firstChoice({ now, announced, current, lastKnown }: EndpointFacts): EndpointChoice | undefined {
  const heard = current ?? lastKnown;
  const endpoint = current ?? announced[0] ?? lastKnown;
  if (endpoint === undefined) return undefined;
  return { endpoint, since: now, attempt: 1, announced, ...(heard !== undefined && { heard }) };
}

function nextChoice(before: EndpointChoice, { now, announced }: EndpointFacts): EndpointChoice | undefined {
  const { heard } = before;
  const rest = { since: now, announced, ...(heard !== undefined && { heard }) };
  const news = newsOf(before, announced);
  if (news !== undefined) return { endpoint: news, attempt: 1, ...rest };
  const candidates = [...new Set([...announced, ...(heard === undefined ? [] : [heard])])];
  const at = candidates.indexOf(before.endpoint);
  const tryMs = Math.min(TRY_MS * Math.max(before.attempt, 1), LONGEST_TRY_MS);
  if (at !== -1 && now - before.since < tryMs) return { ...before, announced };
  const endpoint = candidates[(at + 1) % Math.max(candidates.length, 1)];
  return endpoint === undefined ? undefined : { endpoint, attempt: before.attempt + 1, ...rest };
}

/** What the peer has announced since it was heard, or since we began with the endpoint that does not answer. */
function newsOf(before: EndpointChoice, announced: readonly string[]): string | undefined {
  const [first] = announced;
  if (before.attempt === 0) return announced.includes(before.endpoint) ? undefined : first;
  return announced.find((endpoint) => !before.announced.includes(endpoint));
}

/** Behind NAT nobody reaches us but through the mapping that our own packets keep open. */
export const keepaliveSeconds = (dialable: boolean): number => (dialable ? 25 : 5);
