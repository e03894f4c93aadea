import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { abortError, startDeadline } from '../../lib/deadline.ts';
import { TributaryError, errorMessage } from '../../lib/errors.ts';
import type { ReachPeers } from './reach.ts';
import { hold } from './sockets.ts';

/** Endpoints of one peer that are tried for one stream. */
const MOST_ENDPOINTS = 4;

/** Dials peers at whichever of their endpoints answers; the one that did is tried first the next time. */
export class PeerEndpoints {
  readonly #peers: Pick<ReachPeers, 'endpoints' | 'dial'>;
  readonly #clock: Clock;
  /** By ClusterID. */
  readonly #good = new Map<string, string>();

  constructor(peers: Pick<ReachPeers, 'endpoints' | 'dial'>, clock: Clock) {
    this.#peers = peers;
    this.#clock = clock;
  }

  /** Whether there is any. */
  has(clusterID: string): boolean {
    return this.#peers.endpoints(clusterID).length > 0;
  }

  forget(clusterID: string): void {
    this.#good.delete(clusterID);
  }

  /** A WebSocket that is not read yet. Each endpoint gets its share of the time; Unreachable with what was tried. */
  async dial(
    { clusterID, path, ms }: { clusterID: string; path: string; ms: number },
    signal: AbortSignal,
  ): Promise<WebSocket> {
    const problems: string[] = [];
    const endpoints = this.#inOrder(clusterID);
    for (const endpoint of endpoints) {
      const limit = startDeadline(this.#clock, ms / endpoints.length, `dialling ${endpoint}`, signal);
      try {
        const ws = hold(await this.#peers.dial({ clusterID, endpoint, path }, limit.signal));
        this.#good.set(clusterID, endpoint);
        return ws;
      } catch (error) {
        if (signal.aborted) throw abortError(signal);
        problems.push(errorMessage(error));
      } finally {
        limit.dispose();
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
