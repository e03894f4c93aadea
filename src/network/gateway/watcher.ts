import type { Tunnel } from '../../api/tunnel.ts';
import type { Clock } from '../../lib/clock.ts';
import { splitEndpoint } from '../../lib/endpoint.ts';
import { contains, parseAddress, tryPrefix } from '../../lib/prefix.ts';
import type { Prefix } from '../../lib/prefix.ts';
import type { WireGuardPeerState } from '../host/host-config.ts';
import type { ProbeResult } from '../probe/prober.ts';
import { chooseEndpoint } from './endpoints.ts';
import type { EndpointChoice } from './endpoints.ts';
import { viewsOf } from './facts.ts';
import type { EndpointResolver } from './resolver.ts';

export interface PeerWatchOptions {
  clock: Clock;
  resolver: Pick<EndpointResolver, 'literal'>;
  /** Without a probe that came back for so long, a peer does not answer. */
  silenceMs: number;
}

export interface Observed {
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

const prefixesOf = (texts: readonly string[]): Prefix[] => texts.flatMap((text) => tryPrefix(text) ?? []);

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
