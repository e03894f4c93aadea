/** Waiting with words: what for, and for how long already. */
import { hasCode, TributaryError } from '../../lib/errors.ts';
import type { Session } from '../peering/environment.ts';

export type InstallSession = Pick<Session, 'client' | 'clock' | 'io' | 'signal'>;

const POLL_MS = 500;
/** A wait that is shorter than this is not worth a line; a longer one gets one in such intervals while something changes. */
const QUIET_MS = 5_000;
/** Where nothing changes, the intervals grow to this. */
const MOST_QUIET_MS = 60_000;

export interface Wait {
  /** `for what`. */
  readonly what: string;
  readonly timeoutMs: number;
  /** Empty: it is so. Otherwise what is still missing. */
  readonly look: () => Promise<string>;
  /** What to do where it is not so in time. */
  readonly advice?: string;
  /** What is seen now hardly goes away by itself: it is not waited for as long. */
  readonly isHopeless?: () => boolean;
}

/** A registry that is away for a moment, or a tag that is just being pushed, is back by then. */
const HOPELESS_MS = 30_000;

/** Returns what is missing at the end; empty where nothing is. An API server that does not answer for a moment is no error. */
export async function waitFor(
  session: InstallSession,
  { what, timeoutMs, look, isHopeless = () => false }: Wait,
): Promise<string> {
  const { clock, io, signal } = session;
  const began = clock.monotonic();
  let [said, quietMs, last, hopefulAt] = [began, QUIET_MS, '', began];
  for (;;) {
    signal.throwIfAborted();
    const missing = await look().catch((error: unknown) => {
      if (hasCode(error, 'Unreachable', 'Unavailable', 'TooManyRequests')) return String(error);
      throw error;
    });
    if (missing === '') return '';
    const now = clock.monotonic();
    if (!isHopeless()) hopefulAt = now;
    if (now - began >= timeoutMs || now - hopefulAt >= HOPELESS_MS) return missing;
    if (now - said >= (missing === last ? quietMs : QUIET_MS)) {
      io.out(`  waiting ${what}, ${Math.round((now - began) / 1000)} s: ${missing}\n`);
      quietMs = missing === last ? Math.min(2 * quietMs, MOST_QUIET_MS) : QUIET_MS;
      [said, last] = [now, missing];
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** Throws Unavailable where it is not so in time. */
export async function mustBe(session: InstallSession, wait: Wait): Promise<void> {
  const began = session.clock.monotonic();
  const missing = await waitFor(session, wait);
  if (missing === '') return;
  throw new TributaryError(
    'Unavailable',
    `waited ${Math.round((session.clock.monotonic() - began) / 1000)} s ${wait.what}, without success: ${missing}${wait.advice === undefined ? '' : `. ${wait.advice}`}`,
  );
}

const MOST_NAMED = 5;

/** `a, b, c, d, e and 3 more`. */
export function someOf(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
