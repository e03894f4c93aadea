import type { Basics } from './basics.ts';
import { type ErrorCode, errorCode, errorMessage, hasCode } from './errors.ts';

interface PersistenceOptions extends Basics {
  /** Logged with the error, once for each. */
  complaint: string;
  /** What waiting does not cure. Default: Invalid and Forbidden. */
  final?: readonly ErrorCode[];
}

const RETRY_MS = 1_000;
const FINAL: readonly ErrorCode[] = ['Invalid', 'Forbidden'];

/**
 * Does again what has failed, until it succeeds or the signal fires. For a start, which has no controller yet: one answer of an API
 * server that is just coming back must not end the process. What this program itself gave up ends it, and so does a bug.
 */
export async function persistently<R>(
  work: () => Promise<R>,
  { clock, log, complaint, final = FINAL }: PersistenceOptions,
  signal: AbortSignal,
): Promise<R> {
  for (let said = ''; ;) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (errorCode(error) === undefined || hasCode(error, 'Aborted', ...final)) throw error;
      const why = errorMessage(error);
      if (why !== said) log.warn(complaint, { error: why });
      said = why;
      await clock.sleep(RETRY_MS, signal);
    }
  }
}
