import { randomBytes } from 'node:crypto';

import type { Clock } from '../../lib/clock.ts';
import { PROBE_PORT } from '../../api/own-network.ts';
import { decodeProbe, encodeProbe, SMALLEST_REQUEST } from './message.ts';
import { payloadOf } from './path-mtu.ts';
import type { ProbeSocket, ProbeSockets } from './sockets.ts';

/**
 * From where a question is asked: an address of our own, and as what the host translates it on the way. conntrack translates all packets
 * between two ports as it did the first of them, so another translation takes another port.
 */
export interface Origin {
  source: string;
  /** Absent: not known. */
  as?: string;
}

export interface Question extends Origin {
  address: string;
  /** Size of the inner IP packet, in bytes. Absent: as small as possible. */
  size?: number;
  timeoutMs: number;
  /** Whether the other end has answered before; it is told that. */
  isHeard?: boolean;
}

interface Pending {
  address: string;
  /** Monotonic. */
  sentAt: number;
  answered: (rttMs: number) => void;
}

/** Whether the kernel of that host answers at the port for probes, also where no program of ours runs there. */
export const knock = async (
  sockets: Pick<ProbeSockets, 'knock'>,
  { source, address, timeoutMs }: Question,
): Promise<boolean> => sockets.knock({ source, address, port: PROBE_PORT, timeoutMs }).catch(() => false);

/** Asks responders over one UDP socket for each origin, and finds the answer to each question. */
export class ProbeClient {
  readonly #clock: Clock;
  readonly #sockets: ProbeSockets;
  /** By origin. */
  readonly #open = new Map<string, Promise<ProbeSocket>>();
  readonly #pending = new Map<number, Pending>();
  /** Tells our answers from those to an earlier process. */
  readonly #token = randomBytes(8).toString('hex');
  #sequence = 0;

  constructor(clock: Clock, sockets: ProbeSockets) {
    this.#clock = clock;
    this.#sockets = sockets;
  }

  /** Resolves to the milliseconds until the answer. Undefined: there was none, or the question could not be sent. */
  async ask(question: Question): Promise<number | undefined> {
    const { address, size, timeoutMs, isHeard = false } = question;
    const sequence = (this.#sequence = (this.#sequence + 1) % 2 ** 32);
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const cancel = this.#clock.after(timeoutMs, () => resolve(undefined));
    try {
      const socket = await this.#socket(question);
      const bytes = encodeProbe({
        type: 'request',
        size: size === undefined ? SMALLEST_REQUEST : payloadOf(size, address),
        token: this.#token,
        sequence,
        isHeard,
      });
      this.#pending.set(sequence, { address, sentAt: this.#clock.monotonic(), answered: resolve });
      await socket.send(bytes, address, PROBE_PORT);
      return await promise;
    } catch {
      return undefined;
    } finally {
      cancel();
      this.#pending.delete(sequence);
    }
  }

  /** Whether the kernel of that host answers, also where our program there does not run. */
  async knock({ source, address, timeoutMs }: Question): Promise<boolean> {
    return knock(this.#sockets, { source, address, timeoutMs });
  }

  /** Closes the sockets of all other origins. */
  keep(origins: readonly Origin[]): void {
    const kept = new Set(origins.map(nameOf));
    for (const [name, socket] of this.#open) {
      if (kept.has(name)) continue;
      this.#open.delete(name);
      void socket.then(
        (open) => open.close(),
        () => undefined,
      );
    }
  }

  async #socket(origin: Origin): Promise<ProbeSocket> {
    const name = nameOf(origin);
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const socket = this.#sockets.bind(origin.source, 0, (bytes, from) => this.#heard(bytes, from.address));
    this.#open.set(name, socket);
    try {
      return await socket;
    } catch (error) {
      // The link may come later.
      if (this.#open.get(name) === socket) this.#open.delete(name);
      throw error;
    }
  }

  #heard(bytes: Uint8Array, from: string): void {
    const message = decodeProbe(bytes);
    if (message?.type !== 'answer' || message.token !== this.#token) return;
    const pending = this.#pending.get(message.sequence);
    if (pending?.address === from) pending.answered(this.#clock.monotonic() - pending.sentAt);
  }
}

const nameOf = ({ source, as = '' }: Origin): string => `${source} ${as}`;
