import type { Clock } from '../../lib/clock.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { type ErrorCode, TributaryError } from '../../lib/errors.ts';
import type { CallMethod, Calls } from '../protocol/documents.ts';
import { RESULTS } from '../protocol/forms.ts';

export interface CallsOptions {
  clock: Clock;
  send: (id: number, method: CallMethod, params: object) => void;
  timeoutMs: number;
  /** How many may wait for their answer. */
  max: number;
}

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

/** Our calls to one peer that wait for their answers. */
export class OutgoingCalls {
  readonly #options: CallsOptions;
  readonly #waiting = new Map<number, Waiting>();
  #lastID = 0;
  #ended: string | undefined;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  async call<Method extends CallMethod>(
    method: Method,
    params: Calls[Method]['params'],
    signal: AbortSignal | undefined,
  ): Promise<Calls[Method]['result']> {
    const { clock, send, timeoutMs, max } = this.#options;
    if (this.#ended !== undefined) throw unreachable(this.#ended);
    if (this.#waiting.size >= max) {
      throw new TributaryError('TooManyRequests', `${max} calls wait for this peer's answer`);
    }
    const id = ++this.#lastID;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    using deadline = startDeadline(clock, timeoutMs, `call ${method}`, signal);
    try {
      send(id, method, params);
      const result = await untilAborted(promise, deadline.signal);
      return RESULTS[method](result, `result of ${method}`);
    } finally {
      this.#waiting.delete(id);
    }
  }

  /** Ignores the answer to a call that nobody waits for any more. */
  answered(id: number, result: unknown): void {
    this.#waiting.get(id)?.resolve(result);
  }

  refused(id: number, code: ErrorCode, message: string): void {
    this.#waiting.get(id)?.reject(new TributaryError(code, `the peer answered: ${message}`));
  }

  end(reason: string): void {
    this.#ended = reason;
    for (const { reject } of this.#waiting.values()) reject(unreachable(reason));
  }
}

const unreachable = (reason: string): TributaryError =>
  new TributaryError('Unreachable', `the link to the peer has ended: ${reason}`);
