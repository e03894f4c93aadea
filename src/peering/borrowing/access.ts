import { isIP } from 'node:net';

import { Backoff, type Random } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { hostAndPort } from '../../lib/endpoint.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { ApiReach } from '../ports.ts';
import type { ApiAccess } from '../protocol/documents.ts';
import { checkedAccess, pinned } from './probe.ts';
import type { Access } from './secret.ts';

export interface AccessOptions extends Basics {
  /**
   * The same server by the address that has answered. Throws where the address may not be used or nobody answers there; see
   * probe.ts.
   */
  probe: (api: ApiAccess, signal: AbortSignal) => Promise<ApiAccess>;
  /** Whether an address that was probed is one of ours by now; default: none is. */
  isOurs?: (at: { address: string; port: number }) => boolean;
  /** PEM of the authorities of our own API server. */
  ourCa?: () => string | undefined;
  reach: ApiReach;
  random: Random;
  /** Called when something about the way to that provider has changed. */
  wake: (clusterID: string) => void;
}

export interface AccessState {
  access?: Access;
  /** Why there is no access, or no better one. */
  problem?: string;
}

interface ProviderAccess {
  api: ApiAccess | undefined;
  state: AccessState;
  readonly backoff: Backoff;
  /** Monotonic time before which no way is looked for. */
  notBefore: number;
  abort?: AbortController;
}

const RETRY = { baseMs: 1000, capMs: 60_000 };
/** If the agent says that a way does not work, another one is looked for, but not more often than this. */
const FAILING_INTERVAL_MS = 10_000;

interface WantedAccess {
  /** What the provider has said on this link; undefined where it has said nothing yet. */
  api: ApiAccess | undefined;
  /** What the Secret holds. */
  stored: Access | undefined;
  /** The agent cannot reach it. */
  failing: boolean;
}

/**
 * Finds the way to each provider's API server: its own address where somebody answers there, otherwise streams beside
 * the link. A way that works stays until it fails.
 */
export class AccessFinder {
  readonly #options: AccessOptions;
  readonly #entries = new Map<string, ProviderAccess>();

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Looks for a way where one is needed; answers at once with the way that there is. */
  want(clusterID: string, { api, stored, failing }: WantedAccess): AccessState {
    const entry = this.#entries.get(clusterID) ?? this.#begin(clusterID, stored);
    const isNew = api !== undefined && !deepEqual(api, entry.api);
    if (isNew) this.#retarget(entry, api, stored);
    this.#forgetOurs(entry);
    // If nobody has said yet where the API server is, a stream can still be opened if there was one before a restart.
    if (entry.api === undefined && stored?.how !== 'Link') return entry.state;
    const { clock } = this.#options;
    const isWanted = entry.state.access === undefined || failing;
    if (isWanted && entry.abort === undefined && clock.monotonic() >= entry.notBefore) {
      entry.notBefore = clock.monotonic() + FAILING_INTERVAL_MS;
      entry.abort = new AbortController();
      void this.#look(clusterID, entry, stored, entry.abort);
    }
    return entry.state;
  }

  /** The link is back, so waiting longer is of no use. */
  retry(clusterID: string): void {
    const entry = this.#entries.get(clusterID);
    if (entry !== undefined && entry.state.access === undefined) entry.notBefore = -Infinity;
  }

  async drop(clusterID: string): Promise<void> {
    this.#entries.get(clusterID)?.abort?.abort(new Error('not wanted any more'));
    this.#entries.delete(clusterID);
    await this.#options.reach.close(clusterID);
  }

  stop(): void {
    for (const entry of this.#entries.values()) entry.abort?.abort(new Error('stopped'));
    this.#entries.clear();
  }

  #begin(clusterID: string, stored: Access | undefined): ProviderAccess {
    const { random } = this.#options;
    const isDirect = stored?.how === 'Direct';
    const isPinned = isDirect && isIP(hostOf(stored.server)) !== 0;
    const entry: ProviderAccess = {
      // An older version kept the name, which can lead anywhere by now.
      api: isDirect && !isPinned ? apiOf(stored) : undefined,
      // A direct way from before a restart stays until somebody says otherwise; a stream has to be opened again.
      state: isPinned ? { access: stored } : {},
      backoff: new Backoff({ ...RETRY, random }),
      notBefore: -Infinity,
    };
    this.#entries.set(clusterID, entry);
    return entry;
  }

  /** The provider names another address: what was found for the old one is void, unless the address is the same. */
  #retarget(entry: ProviderAccess, api: ApiAccess, stored: Access | undefined): void {
    entry.abort?.abort(new Error('another address'));
    delete entry.abort;
    entry.notBefore = -Infinity;
    const isSame = entry.api === undefined && stored?.how === 'Direct' && isPinOf(apiOf(stored), api);
    entry.api = api;
    if (!isSame) entry.state = {};
  }

  /** Nodes come and go: what was an address of another cluster may be ours today. */
  #forgetOurs(entry: ProviderAccess): void {
    const { access } = entry.state;
    if (access?.how !== 'Direct' || this.#options.isOurs === undefined) return;
    const { host: address, port } = hostAndPort(new URL(access.server));
    if (this.#options.isOurs({ address, port })) entry.state = {};
  }

  async #look(
    clusterID: string,
    entry: ProviderAccess,
    stored: Access | undefined,
    abort: AbortController,
  ): Promise<void> {
    const { clock, log, wake } = this.#options;
    try {
      const { api } = entry;
      const access =
        api === undefined
          ? await this.#reopen(clusterID, stored)
          : await this.#find(clusterID, api, abort.signal);
      if (abort.signal.aborted) return;
      entry.state = access === undefined ? {} : { access };
      entry.backoff.reset();
    } catch (error) {
      if (abort.signal.aborted) return;
      const problem = errorMessage(error);
      if (entry.state.problem !== problem)
        log.warn('no way to the API server', { peer: clusterID, error: problem });
      entry.state = { ...entry.state, problem };
      const delayMs = entry.backoff.next();
      entry.notBefore = clock.monotonic() + delayMs;
      clock.after(delayMs, () => wake(clusterID));
    } finally {
      if (entry.abort === abort) delete entry.abort;
    }
    wake(clusterID);
  }

  async #find(clusterID: string, api: ApiAccess, signal: AbortSignal): Promise<Access> {
    const { probe, reach, log, ourCa } = this.#options;
    const checked = checkedAccess(api, ourCa?.());
    try {
      return { how: 'Direct', ...(await probe(checked, signal)) };
    } catch (error) {
      signal.throwIfAborted();
      log.debug('not dialled directly', { peer: clusterID, why: errorMessage(error) });
    }
    const { server } = await reach.open(clusterID);
    return { how: 'Link', serverName: hostOf(checked.server), ...checked, server };
  }

  async #reopen(clusterID: string, stored: Access | undefined): Promise<Access | undefined> {
    if (stored === undefined) return undefined;
    const { server } = await this.#options.reach.open(clusterID);
    return { ...stored, server };
  }
}

const hostOf = (server: string): string => hostAndPort(new URL(server)).host;

/** Whether that is the server of which the provider speaks now, by an address that it had. */
function isPinOf(stored: ApiAccess, api: ApiAccess): boolean {
  try {
    const checked = checkedAccess(api);
    const address = hostOf(stored.server);
    const host = hostOf(checked.server);
    // Under a name of its own nobody knows which host it was.
    const isHost = isIP(host) === 0 ? checked.serverName === undefined : host === address;
    return isHost && isIP(address) !== 0 && deepEqual(stored, pinned(checked, address));
  } catch {
    return false;
  }
}

/** What the provider has said, but for the address. */
const apiOf = ({ how: _how, ...api }: Access): ApiAccess => api;
