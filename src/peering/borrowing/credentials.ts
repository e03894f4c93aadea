import { CLOCK_SKEW_MS } from '../../api/limits.ts';
import { Backoff, type Random } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import type { PeerLinks } from '../ports.ts';
import type { Credential } from '../protocol/documents.ts';
import type { HeldCredential } from './secret.ts';

interface CredentialsOptions extends Basics {
  links: () => Pick<PeerLinks, 'view' | 'call'>;
  random: Random;
  /** Called when something about that provider's credential has changed. */
  wake: (clusterID: string) => void;
}

export interface CredentialState {
  held?: HeldCredential;
  /** When a new one is due; milliseconds since the epoch. */
  renewAtMs?: number;
  /** Why there is no newer one. */
  problem?: string;
}

interface ProviderCredential {
  held?: HeldCredential;
  problem?: string;
  readonly backoff: Backoff;
  /** The share of its life after which a token is renewed, from 60 % to 70 %, so that not all peers renew at once. */
  readonly share: number;
  /** Monotonic time before which no token is asked for. */
  notBefore: number;
  askedAt: number;
  abort?: AbortController;
}

const CALL_TIMEOUT_MS = 15_000;
const RETRY = { baseMs: 1000, capMs: 60_000 };
/** A token that the provider refuses is replaced, but no more often than this. */
const REJECTED_INTERVAL_MS = 10_000;
const MAX_TOKEN_LENGTH = 16_384;
/** A year: longer than any API server grants. */
const MAX_LIFE_MS = 366 * 24 * 3_600_000;

/**
 * Asks providers for tokens over the link, well before the last one expires. The last one is kept until there is a new
 * one. In memory only: the Secret holds what has to outlive this process.
 */
export class CredentialRenewer {
  readonly #options: CredentialsOptions;
  readonly #entries = new Map<string, ProviderCredential>();

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  /**
   * Asks for a token where one is due; answers at once with what there is.
   *
   * @param stored what the Secret holds
   * @param why `rejected`: the provider's API server refuses the token in use; `renewal`: the text that a person has
   *   written to have a new one, which asks for one token only
   */
  want(
    clusterID: string,
    stored: HeldCredential | undefined,
    why: { rejected: boolean; renewal?: string },
  ): CredentialState {
    const entry = this.#entry(clusterID);
    // Nobody else writes that Secret. So what it holds is never newer than the last one here, whatever its dates say: the clock
    // may have been set back since, or somebody may have edited them.
    if (entry.held === undefined && stored !== undefined) entry.held = stored;
    const { held, problem } = entry;
    if (this.#isDue(entry, why)) this.#ask(clusterID, entry, why.renewal);
    return {
      ...(held !== undefined && { held, renewAtMs: renewAt(held, entry.share) }),
      ...(problem !== undefined && { problem }),
    };
  }

  /** The link is back, so waiting longer is of no use. */
  retry(clusterID: string): void {
    const entry = this.#entries.get(clusterID);
    if (entry !== undefined) entry.notBefore = -Infinity;
  }

  drop(clusterID: string): void {
    this.#entries.get(clusterID)?.abort?.abort(new Error('not wanted any more'));
    this.#entries.delete(clusterID);
  }

  stop(): void {
    for (const clusterID of this.#entries.keys()) this.drop(clusterID);
  }

  #entry(clusterID: string): ProviderCredential {
    const known = this.#entries.get(clusterID);
    if (known !== undefined) return known;
    const { random } = this.#options;
    const entry: ProviderCredential = {
      backoff: new Backoff({ ...RETRY, random }),
      share: 0.6 + 0.1 * random(),
      notBefore: -Infinity,
      askedAt: -Infinity,
    };
    this.#entries.set(clusterID, entry);
    return entry;
  }

  #isDue(
    { held, share, notBefore, askedAt, abort }: ProviderCredential,
    { rejected, renewal }: { rejected: boolean; renewal?: string },
  ): boolean {
    const { clock } = this.#options;
    const now = clock.monotonic();
    if (abort !== undefined || now < notBefore) return false;
    // Got in the future: the clock was set back, and nobody here knows how much of its life is left.
    if (
      held === undefined ||
      clock.now() >= renewAt(held, share) ||
      clock.now() < held.issuedMs - CLOCK_SKEW_MS
    )
      return true;
    if (renewal !== undefined && renewal !== held.renewal) return true;
    return rejected && now - askedAt >= REJECTED_INTERVAL_MS;
  }

  #ask(clusterID: string, entry: ProviderCredential, renewal: string | undefined): void {
    const { links, clock, wake } = this.#options;
    if (links().view(clusterID)?.connected !== true) {
      entry.problem = 'no link to ask for a token over';
      return;
    }
    const abort = new AbortController();
    entry.abort = abort;
    entry.askedAt = clock.monotonic();
    void this.#call(clusterID, entry, renewal, abort.signal).finally(() => {
      delete entry.abort;
      // If it was dropped in the meantime, nobody waits for it.
      if (this.#entries.get(clusterID) === entry) wake(clusterID);
    });
  }

  async #call(
    clusterID: string,
    entry: ProviderCredential,
    renewal: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { links, clock, log, wake } = this.#options;
    using deadline = startDeadline(clock, CALL_TIMEOUT_MS, `a token of ${clusterID}`, signal);
    try {
      const credential = await links().call(clusterID, 'credential', {}, deadline.signal);
      const held = checkedCredential(credential, clock.now());
      entry.held = { ...held, ...(renewal !== undefined && { renewal }) };
      delete entry.problem;
      entry.backoff.reset();
    } catch (error) {
      if (signal.aborted) return;
      const delayMs = entry.backoff.next();
      entry.notBefore = clock.monotonic() + delayMs;
      const message = errorMessage(error);
      if (entry.problem !== message) log.warn('no token', { peer: clusterID, error: message });
      entry.problem = message;
      clock.after(delayMs, () => wake(clusterID));
    }
  }
}

const renewAt = ({ issuedMs, expiresMs }: HeldCredential, share: number): number =>
  issuedMs + (expiresMs - issuedMs) * share;

/** Throws Invalid, without quoting the token. */
function checkedCredential({ token, expires }: Credential, nowMs: number): HeldCredential {
  const expiresMs = Math.floor(Date.parse(expires) / 1000) * 1000;
  if (token.length > MAX_TOKEN_LENGTH || !/^[\x21-\x7e]+$/u.test(token)) {
    throw new TributaryError('Invalid', 'the provider sent a malformed token');
  }
  if (!(expiresMs - nowMs > 1000)) {
    throw new TributaryError(
      'Invalid',
      'the provider sent a token that has expired already; compare the clocks of both clusters',
    );
  }
  const issuedMs = Math.floor(nowMs / 1000) * 1000;
  return { token, issuedMs, expiresMs: Math.min(expiresMs, issuedMs + MAX_LIFE_MS) };
}
