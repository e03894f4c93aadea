import { getSystemErrorName } from 'node:util';
import { Protocol, createNetlink, parseError } from './netlink.ts';

import type { Basics } from '../../lib/basics.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';

type Socket = ReturnType<typeof createNetlink>;
type Reply = Awaited<ReturnType<Socket['request']>>[0];

/** The kernel answers a request at once. When this has passed, it hangs or has lost our answer. */
const ANSWER_MS = 10_000;
const DUMP_TRIES = 5;
/** NLM_F_* of linux/netlink.h. */
const DUMP = 0x300;
const INTERRUPTED = 0x10;
const TYPE_ERROR = 2;

/** Flags of requests that make something. */
export const CREATE = 0x400;
export const EXCLUSIVE = 0x200;
export const REPLACE = 0x100;

/** The kernel refused a request. */
export class KernelError extends Error {
  override readonly name = 'KernelError';
  /** `EEXIST`, `ENODEV`, ... */
  readonly errno: string;

  constructor(errno: string) {
    super(`the kernel refused it: ${errno}`);
    this.errno = errno;
  }
}

export const isKernelError = (error: unknown, ...errnos: readonly string[]): boolean =>
  error instanceof KernelError && errnos.includes(error.errno);

/**
 * Sends requests to the kernel's routing part (rtnetlink(7)) in the network namespace of this process, one at a time, since a
 * dump would mix with another answer. Keeps the process alive only while it waits for an answer.
 */
export class Rtnetlink {
  readonly #clock: Clock;
  readonly #log: Logger;
  #socket: Socket | undefined;
  #fail: ((error: unknown) => void) | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: Basics) {
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Lists every object of one type: the payloads of the answers. */
  async dump(type: number, payload: Uint8Array): Promise<Buffer[]> {
    let reply: Reply = [];
    for (let tries = 0; tries < DUMP_TRIES; tries++) {
      reply = await this.#request(type, DUMP, payload);
      // Something changed meanwhile. After some tries we take the list as it is, since the change calls us again.
      if (!reply.some((message) => message.flags & INTERRUPTED)) break;
    }
    return reply.map((message) => message.data);
  }

  /** Reads one object: the payload of the answer. Throws KernelError. */
  async get(type: number, payload: Uint8Array): Promise<Buffer | undefined> {
    const [answer] = await this.#request(type, 0, payload);
    return answer?.data;
  }

  /** Resolves when the kernel has done it. Throws KernelError. */
  async write(type: number, flags: number, payload: Uint8Array): Promise<void> {
    await this.#request(type, flags, payload);
  }

  close(): void {
    this.#isClosed = true;
    this.#drop(new TributaryError('Aborted', 'the network of this host is closed'));
  }

  async #request(type: number, flags: number, payload: Uint8Array): Promise<Reply> {
    const answer = this.#last.then(async () => this.#ask(type, flags, payload));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #ask(type: number, flags: number, payload: Uint8Array): Promise<Reply> {
    if (this.#isClosed) throw new TributaryError('Aborted', 'the network of this host is closed');
    const socket = (this.#socket ??= this.#open());
    const failed = Promise.withResolvers<never>();
    this.#fail = failed.reject;
    const cancel = this.#clock.after(ANSWER_MS, () =>
      this.#drop(new TributaryError('Unavailable', 'the kernel has not answered a netlink request')),
    );
    try {
      const asked = socket.request(type, payload, { flags, checkError: false });
      const [reply] = await Promise.race([asked, failed.promise]);
      return checked(reply);
    } finally {
      cancel();
      this.#fail = undefined;
    }
  }

  #open(): Socket {
    const socket = createNetlink(Protocol.ROUTE);
    // Without this listener an error would end the process. What was lost may be the answer for which we wait.
    socket.on('error', (error) => {
      this.#log.warn('The netlink socket failed', { error: errorMessage(error) });
      this.#drop(new TributaryError('Unavailable', `netlink: ${errorMessage(error)}`));
    });
    return socket;
  }

  /** Gives up the answer that is awaited. The next request opens a new socket. */
  #drop(error: unknown): void {
    this.#socket?.close();
    this.#socket = undefined;
    this.#fail?.(error);
  }
}

function checked(reply: Reply): Reply {
  const [first] = reply;
  if (first?.type !== TYPE_ERROR) return reply;
  const { errno } = parseError(first.data, first.flags);
  if (errno !== 0) throw new KernelError(errnoName(errno));
  return [];
}

function errnoName(errno: number): string {
  try {
    const name = getSystemErrorName(errno);
    // libuv has a name of its own for EOPNOTSUPP.
    return name === 'ENOTSUP' ? 'EOPNOTSUPP' : name;
  } catch {
    return `errno ${-errno}`;
  }
}
