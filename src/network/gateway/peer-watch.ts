import type { Tunnel } from '../../api/tunnel.ts';
import type { Clock } from '../../lib/clock.ts';
import { splitEndpoint } from '../../lib/endpoint.ts';
import { present } from '../../lib/fields.ts';
import { parseAddress, prefixesOf, PrefixSet } from '../../lib/prefix.ts';
import type { WireGuardPeerState } from '../host/host-config.ts';
import type { ProbeResult } from '../probe/peer-probe.ts';
import { viewsOf } from './peers.ts';
import type { EndpointResolver } from './resolver.ts';

interface PeerWatchOptions {
  clock: Clock;
  resolver: Pick<EndpointResolver, 'literal'>;
  /** A peer from which no probe came back for so long does not answer. */
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
  /** When the count was last seen to grow, in milliseconds since 1970. Absent: not yet. */
  atMs?: number;
}

/** What WireGuard says of the peers, and where each is to be dialled. All is lost at a restart, which does no harm. */
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
   * Public keys of peers whose endpoint, as WireGuard has it, lies behind a tunnel: WireGuard would put packets into packets without
   * end. It takes the source of any packet that proves the peer's key for the peer's endpoint, and forgets an endpoint only when the
   * peer is removed.
   */
  get astray(): ReadonlySet<string> {
    return this.#astray;
  }

  stateOf(tunnel: Tunnel): WireGuardPeerState | undefined {
    return this.#states.get(tunnel.spec.peer?.publicKey ?? '');
  }

  /** When bytes from the peer were last seen, in milliseconds since 1970. Undefined: not since this process began. */
  receivedMs(tunnel: Tunnel): number | undefined {
    return this.#received.get(tunnel.spec.peer?.publicKey ?? '')?.atMs;
  }

  /** Returns whether a peer is to be dialled elsewhere than WireGuard dials it now. */
  observe({ tunnels, states, probes, own }: Observed): boolean {
    this.#states = new Map(states.map((state) => [state.publicKey, state]));
    const nowMs = this.#options.clock.now();
    this.#received = new Map(
      states.map((state) => [state.publicKey, received(state, this.#received.get(state.publicKey), nowMs)]),
    );
    const choices = new Map<string, EndpointChoice>();
    const forbidden = new PrefixSet(prefixesOf(own));
    const views = new PrefixSet(prefixesOf(viewsOf(tunnels)));
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
    { forbidden, views }: { forbidden: PrefixSet; views: PrefixSet },
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
        answering:
          probe.alive && (isHeard(probe) || clock.now() - (probe.lastAnswerMs ?? -Infinity) < silenceMs),
      }),
      ...present({ current, before, lastKnown }),
    });
  }
}

/** In a quiet tunnel probes are so rare that the last answer may be old though all is well. */
const isHeard = ({ missed = 0, lastAnswerMs }: ProbeResult): boolean =>
  missed === 0 && lastAnswerMs !== undefined;

function isWithin(prefixes: PrefixSet, endpoint: string | undefined): boolean {
  const address = parseAddress(splitEndpoint(endpoint ?? '')?.host ?? '');
  return address !== undefined && prefixes.contains(address);
}

/** Leaves out where the peer was heard, when that has become a view since. */
function withoutHeard(
  choice: EndpointChoice | undefined,
  outside: (endpoint?: string) => string | undefined,
): EndpointChoice | undefined {
  if (choice === undefined || outside(choice.heard) === choice.heard) return choice;
  const { heard: _heard, ...rest } = choice;
  return rest;
}

/** A count that has become smaller has begun anew, as it does with a new link. */
function received(
  { receivedBytes: bytes }: WireGuardPeerState,
  before: Received | undefined,
  nowMs: number,
): Received {
  if (before === undefined) return { bytes };
  if (bytes === before.bytes) return before;
  return bytes === 0 ? { ...before, bytes } : { bytes, atMs: nowMs };
}

export interface EndpointFacts {
  /** Milliseconds, monotonic. */
  now: number;
  /** What the peer has announced, resolved to literal `host:port`. The first is preferred. */
  announced: readonly string[];
  /** Where WireGuard sends now. It was learnt from the peer's packets unless it is what was chosen. */
  current?: string;
  /** Whether the peer was heard lately through the tunnel. Absent: not measured yet. */
  answering?: boolean;
  /** The choice before. Absent: there was none yet in this process. */
  before?: EndpointChoice;
  /** Where the gateway that was active then, on whichever node, last heard the peer. */
  lastKnown?: string;
}

export interface EndpointChoice {
  endpoint: string;
  /** Since when it is chosen; for a peer that answers, when it last did. Monotonic. */
  since: number;
  /** Which try it is since the peer was last heard, from 1. 0: the peer answers. */
  attempt: number;
  /** Where the peer was heard last. */
  heard?: string;
  /** What the peer had announced then. */
  announced: readonly string[];
}

/** WireGuard repeats a handshake after 5 s (REKEY_TIMEOUT). In a shorter time an endpoint would have no chance. */
const TRY_MS = 5000;
const LONGEST_TRY_MS = 30_000;

/**
 * Chooses where a peer is dialled. Pure. A peer that answers is left where it is: WireGuard follows it when it moves. A peer that does
 * not answer is tried at its endpoints in turn, each time for longer. An endpoint that it announces meanwhile is tried at once.
 */
export function chooseEndpoint(facts: EndpointFacts): EndpointChoice | undefined {
  const { now, announced, current, answering, before } = facts;
  if (answering === true && current !== undefined) {
    return { endpoint: current, since: now, attempt: 0, heard: current, announced };
  }
  if (before === undefined) return firstChoice(facts);
  // A program that has just started must not move a peer to which the tunnel works all the time.
  const isEarly = answering === undefined && before.endpoint === current;
  if (isEarly && now - before.since < TRY_MS) return before;
  return nextChoice(before, facts);
}

/** WireGuard outlives this program, and may know better than what is announced. */
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

/** An endpoint that the peer has announced since it was heard, or since we chose the one that does not answer. */
function newsOf(before: EndpointChoice, announced: readonly string[]): string | undefined {
  const [first] = announced;
  if (before.attempt === 0) return announced.includes(before.endpoint) ? undefined : first;
  return announced.find((endpoint) => !before.announced.includes(endpoint));
}

/** Behind NAT, peers reach us only through the mapping that our own packets keep open. */
export const keepaliveSeconds = (dialable: boolean): number => (dialable ? 25 : 5);
