import type { Clock } from './clock.ts';
import { TributaryError, errorCode } from './errors.ts';

/** A signal that also fires when time is up. Declare it with `using`, so that its timer ends whatever the outcome. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** No more time limit; the parent's signal still counts. */
  stopTimer(): void;
  /** The whole time again, from now. */
  restart(): void;
}

/**
 * Joins a parent's signal with a time limit. When time is up, the reason is an Unreachable error that says how
 * long was waited. (`AbortSignal.any` and `AbortSignal.timeout` would do, but take no clock, and a signal that
 * lives as long as the process would gather dependants.)
 */
export function startDeadline(clock: Clock, ms: number, what: string, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  const onParent = (): void => controller.abort(parent?.reason);
  const start = (): (() => void) =>
    clock.after(ms, () =>
      controller.abort(new TributaryError('Unreachable', `${what}: no answer within ${Math.round(ms)} ms`)),
    );
  let cancel = start();
  if (parent?.aborted === true) onParent();
  else parent?.addEventListener('abort', onParent, { once: true });
  return {
    signal: controller.signal,
    stopTimer: () => cancel(),
    restart() {
      cancel();
      cancel = start();
    },
    [Symbol.dispose]() {
      cancel();
      parent?.removeEventListener('abort', onParent);
    },
  };
}

/** The error to throw for a fired signal: its reason where that is ours, else Aborted. */
export function abortError(signal: AbortSignal): TributaryError {
  const reason: unknown = signal.reason;
  if (errorCode(reason) !== undefined && (reason as { name?: unknown }).name === 'TributaryError') {
    return reason as TributaryError;
  }
  return new TributaryError('Aborted', 'aborted', { cause: reason });
}

/** Waits for `work` until the signal fires; the work itself goes on (it is shared with others). */
export async function untilAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return work;
  if (signal.aborted) {
    // Nobody will hear how it ends.
    work.catch(() => undefined);
    throw abortError(signal);
  }
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(abortError(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Resolves when the signal fires. */
export async function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  await promise;
}
