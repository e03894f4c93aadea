import type { Basics } from '../../lib/basics.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { TributaryError, errorCode, errorMessage } from '../../lib/errors.ts';
import type { LendingSide, PeerIdentity } from '../ports.ts';
import type { CallMethod, Calls } from '../protocol/documents.ts';
import { PARAMS, isCallMethod } from '../protocol/forms.ts';
import { MAX_RESULT_LENGTH, type Message, problemText } from './message.ts';

/** What peers may call. */
export type CallHandlers = {
  [Method in CallMethod]: (
    peer: PeerIdentity,
    params: Calls[Method]['params'],
    signal: AbortSignal,
  ) => Promise<Calls[Method]['result']>;
};

export type DialBack = (
  peer: PeerIdentity,
  params: Calls['dial']['params'],
  signal: AbortSignal,
) => Promise<void>;

export const callHandlers = (
  lending: Pick<LendingSide, 'credential' | 'renew'>,
  dialBack: DialBack,
): CallHandlers => ({
  credential: async (peer, _params, signal) => lending.credential(peer, signal),
  dial: async (peer, params, signal) => {
    await dialBack(peer, params, signal);
    return {};
  },
  renew: async (peer, params, signal) => lending.renew(peer, params, signal),
});

export interface AnswersOptions extends Basics {
  peer: PeerIdentity;
  handlers: CallHandlers;
  send: (message: Message) => void;
  timeoutMs: number;
  /** How many are worked on at the same time. */
  max: number;
}

/** Answers the calls of one peer. */
export class Answers {
  readonly #options: AnswersOptions;
  readonly #abort = new AbortController();
  #open = 0;

  constructor(options: AnswersOptions) {
    this.#options = options;
  }

  /** Never rejects: an error becomes the answer. */
  async answer(id: number, method: string, params: unknown): Promise<void> {
    const { send, max, log } = this.#options;
    this.#open += 1;
    try {
      if (this.#open > max) throw new TributaryError('TooManyRequests', `${max} calls are being answered`);
      const result = await this.#result(method, params);
      if (JSON.stringify(result).length > MAX_RESULT_LENGTH) throw new RangeError('the result is too large');
      send({ type: 'result', id, result });
    } catch (error) {
      const code = errorCode(error);
      if (code === undefined) log.error('a call failed', { method, error: errorMessage(error) });
      const message = code === undefined ? 'internal error' : problemText((error as Error).message);
      send({ type: 'error', id, code: code ?? 'Unavailable', message });
    } finally {
      this.#open -= 1;
    }
  }

  async #result(method: string, params: unknown): Promise<unknown> {
    if (!isCallMethod(method)) throw new TributaryError('Invalid', `unknown call ${problemText(method)}`);
    const { peer, handlers, clock, timeoutMs } = this.#options;
    const checked = PARAMS[method](params, `params of ${method}`);
    using deadline = startDeadline(clock, timeoutMs, `call ${method}`, this.#abort.signal);
    const handle = handlers[method] as CallHandlers[CallMethod] &
      ((peer: PeerIdentity, params: unknown, signal: AbortSignal) => Promise<unknown>);
    return await untilAborted(handle(peer, checked as never, deadline.signal), deadline.signal);
  }

  /** The link has ended; nobody waits for these answers. */
  stop(): void {
    this.#abort.abort(new TributaryError('Aborted', 'the link has ended'));
  }
}
