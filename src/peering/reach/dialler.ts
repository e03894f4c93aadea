import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { abortError, startDeadline } from '../../lib/deadline.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import { PendingStreams } from './pending.ts';
import type { ReachLimits, ReachPeers } from './ports.ts';
import { hold, refuse } from './sockets.ts';
import { CLOSE } from './streams.ts';

/** How a stream to a peer's API server was made. */
export type Way = 'Direct' | 'DialBack';

interface DiallerOptions {
  peers: Pick<ReachPeers, 'isLinked' | 'askDial'>;
  endpoints: PeerEndpoints;
  limits: ReachLimits;
  clock: Clock;
}

/** Gets a WebSocket to a peer, whichever side can dial. Dialling ourselves is tried first, since nobody has to answer. */
export class PeerDialler {
  readonly pending: PendingStreams;
  readonly #options: DiallerOptions;
  /** By ClusterID: until when dialling that peer is not tried first (monotonic). */
  readonly #avoidDirect = new Map<string, number>();
  readonly #last = new Map<string, Way>();
  /** By ClusterID, while streams are being made. */
  readonly #gates = new Map<string, Gate>();

  constructor(options: DiallerOptions) {
    this.#options = options;
    this.pending = new PendingStreams(options.clock);
  }

  /** How the last stream to that peer was made. */
  last(clusterID: string): Way | undefined {
    return this.#last.get(clusterID);
  }

  forget(clusterID: string): void {
    this.#avoidDirect.delete(clusterID);
    this.#last.delete(clusterID);
  }

  /** A WebSocket that is not read yet. Throws Unreachable with what was tried. */
  async connect(clusterID: string, parent: AbortSignal): Promise<WebSocket> {
    const { clock, limits } = this.#options;
    using deadline = startDeadline(clock, limits.connectMs, `stream to cluster ${clusterID}`, parent);
    const { signal } = deadline;
    return await this.#inTurn(clusterID, signal, async () => this.#anyWay(clusterID, signal));
  }

  /** A peer takes only so many handshakes from one address, but an agent that starts may open many connections. */
  async #inTurn<T>(clusterID: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const { peers, limits } = this.#options;
    // Without a link it may be away: one finds that out for all that wait.
    const isLinked = peers.isLinked(clusterID);
    const key = isLinked ? clusterID : `${clusterID} unlinked`;
    const gate = this.#gates.get(key) ?? new Gate(isLinked ? limits.dialsPerPeer : 1);
    this.#gates.set(key, gate);
    const leave = await gate.enter(signal);
    try {
      return await work();
    } finally {
      leave();
      if (gate.empty) this.#gates.delete(key);
    }
  }

  async #anyWay(clusterID: string, signal: AbortSignal): Promise<WebSocket> {
    const problems: string[] = [];
    for (const way of this.#order(clusterID)) {
      const ws = await this.#attempt(way, clusterID, signal).catch((error: unknown) => {
        if (signal.aborted) throw abortError(signal);
        problems.push(errorMessage(error));
      });
      if (ws !== undefined) {
        this.#last.set(clusterID, way);
        return ws;
      }
    }
    const tried = problems.length > 0 ? problems.join('; ') : this.#whyNone(clusterID);
    throw new TributaryError(
      'Unreachable',
      `the API server of cluster ${clusterID} cannot be reached: ${tried}`,
    );
  }

  #order(clusterID: string): Way[] {
    const { peers, endpoints, clock } = this.#options;
    const linked = peers.isLinked(clusterID);
    const direct = endpoints.has(clusterID);
    const avoid = (this.#avoidDirect.get(clusterID) ?? -Infinity) > clock.monotonic();
    // Many ask, again and again; the link alone is dialled with patience, and its return is told.
    if (!linked) return direct && !avoid ? ['Direct'] : [];
    if (!direct) return ['DialBack'];
    return avoid ? ['DialBack', 'Direct'] : ['Direct', 'DialBack'];
  }

  #whyNone(clusterID: string): string {
    const isKnown = this.#options.endpoints.has(clusterID);
    return `there is no link, and ${isKnown ? 'dialling has failed a moment ago' : 'no endpoint is known'}`;
  }

  async #attempt(way: Way, clusterID: string, signal: AbortSignal): Promise<WebSocket> {
    return way === 'Direct' ? this.#direct(clusterID, signal) : this.#dialBack(clusterID, signal);
  }

  async #direct(clusterID: string, signal: AbortSignal): Promise<WebSocket> {
    const { peers, endpoints, limits, clock } = this.#options;
    // Otherwise no time would be left for dialling back.
    const ms = peers.isLinked(clusterID) ? limits.directMs : limits.connectMs;
    try {
      const ws = await endpoints.dial({ clusterID, path: '/v1/api', ms }, signal);
      this.#avoidDirect.delete(clusterID);
      return ws;
    } catch (error) {
      this.#avoidDirect.set(clusterID, clock.monotonic() + limits.avoidDirectMs);
      throw error;
    }
  }

  async #dialBack(clusterID: string, parent: AbortSignal): Promise<WebSocket> {
    const { peers, limits } = this.#options;
    const given = new AbortController();
    const giveUp = (): void => given.abort(parent.reason);
    parent.addEventListener('abort', giveUp, { once: true });
    const { id, socket } = this.pending.expect(clusterID, limits.connectMs, given.signal);
    try {
      const asked = peers.askDial(clusterID, id, given.signal).then(async () => socket);
      // The stream may be here before the answer to the call is.
      return hold(await Promise.race([socket, asked]));
    } catch (error) {
      given.abort();
      // It may still have come in the meantime.
      socket.then(
        (late) => refuse(late, CLOSE.refused, 'too late'),
        () => undefined,
      );
      throw error;
    } finally {
      parent.removeEventListener('abort', giveUp);
    }
  }
}

/** The most endpoints of one peer that are tried for one stream. */
const MOST_ENDPOINTS = 4;

/** Dials peers at their endpoints; the endpoint that has answered is tried first the next time. */
export class PeerEndpoints {
  readonly #peers: Pick<ReachPeers, 'endpoints' | 'dial'>;
  readonly #clock: Clock;
  /** By ClusterID. */
  readonly #good = new Map<string, string>();

  constructor(peers: Pick<ReachPeers, 'endpoints' | 'dial'>, clock: Clock) {
    this.#peers = peers;
    this.#clock = clock;
  }

  /** Whether any endpoint is known. */
  has(clusterID: string): boolean {
    return this.#peers.endpoints(clusterID).length > 0;
  }

  forget(clusterID: string): void {
    this.#good.delete(clusterID);
  }

  /** A WebSocket that is not read yet. Each endpoint gets its share of the time. Throws Unreachable with what was tried. */
  async dial(
    { clusterID, path, ms }: { clusterID: string; path: string; ms: number },
    signal: AbortSignal,
  ): Promise<WebSocket> {
    const problems: string[] = [];
    const endpoints = this.#inOrder(clusterID);
    for (const endpoint of endpoints) {
      using limit = startDeadline(this.#clock, ms / endpoints.length, `dialling ${endpoint}`, signal);
      try {
        const ws = hold(await this.#peers.dial({ clusterID, endpoint, path }, limit.signal));
        this.#good.set(clusterID, endpoint);
        return ws;
      } catch (error) {
        if (signal.aborted) throw abortError(signal);
        problems.push(errorMessage(error));
      }
    }
    this.#good.delete(clusterID);
    const tried = problems.length > 0 ? problems.join('; ') : 'no endpoint is known';
    throw new TributaryError('Unreachable', tried);
  }

  #inOrder(clusterID: string): string[] {
    const good = this.#good.get(clusterID);
    const known = this.#peers.endpoints(clusterID);
    const first = good !== undefined && known.includes(good) ? [good] : [];
    return [...new Set([...first, ...known])].slice(0, MOST_ENDPOINTS);
  }
}

/** Lets so many in at once; the others wait for their turn. */
class Gate {
  readonly #places: number;
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(places: number) {
    this.#places = places;
  }

  get empty(): boolean {
    return this.#inside === 0 && this.#waiting.size === 0;
  }

  /** Resolves with the function that leaves; rejects when the signal fires first. */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw abortError(signal);
    if (this.#inside >= this.#places) await this.#turn(signal);
    else this.#inside += 1;
    return () => this.#leave();
  }

  /** The place goes to the next one that waits, so that nobody can take it in between. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#inside -= 1;
    else next();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const next = (): void => {
      this.#waiting.delete(next);
      resolve();
    };
    const onAbort = (): void => {
      this.#waiting.delete(next);
      reject(abortError(signal));
    };
    this.#waiting.add(next);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
