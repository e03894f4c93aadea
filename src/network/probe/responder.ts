import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { TokenBucket, TokenBuckets } from '../../lib/token-bucket.ts';
import { PROBE_PORT } from '../../api/own-network.ts';
import { decodeProbe, encodeProbe } from './message.ts';
import type { ProbeSocket, ProbeSockets } from './sockets.ts';

export interface ResponderOptions extends Basics {
  sockets: ProbeSockets;
  /** Called for each probe that is answered. */
  asked?: (address: string, isHeard: boolean) => void;
}

/** The address comes and goes with the WireGuard link. */
const RETRY_MS = 500;
/** For one address: a whole search for the path MTU at once, and beats. */
const PEER_RATE = { burst: 128, perSecond: 40, maxKeys: 4096 };
/** For all together, since a peer has many addresses. */
const WHOLE_RATE = { burst: 2000, perSecond: 2000 };

/** Answers probes of peers on the gateway's external address, UDP port PROBE_PORT. An answer is never larger than its probe. */
export class Responder implements Component {
  readonly name = 'probe responder';
  readonly #options: ResponderOptions;
  readonly #senders: TokenBuckets;
  readonly #whole: TokenBucket;
  #running = false;
  #address: string | undefined;
  #socket: ProbeSocket | undefined;
  #cancelRetry: () => void = () => undefined;
  /** Counts changes of the address, so that a socket that is bound too late is dropped. */
  #generation = 0;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#senders = new TokenBuckets({ clock: options.clock, ...PEER_RATE });
    this.#whole = new TokenBucket({ clock: options.clock, ...WHOLE_RATE });
  }

  start(_signal: AbortSignal): void {
    this.#running = true;
    this.#reopen();
  }

  stop(): void {
    this.#running = false;
    this.#reopen();
  }

  /** The address on which to listen, without a prefix length. Undefined: do not listen. */
  setAddress(address: string | undefined): void {
    if (address === this.#address) return;
    this.#address = address;
    this.#reopen();
  }

  #reopen(): void {
    this.#generation += 1;
    this.#cancelRetry();
    this.#socket?.close();
    this.#socket = undefined;
    if (this.#running && this.#address !== undefined) void this.#open(this.#address, this.#generation);
  }

  async #open(address: string, generation: number): Promise<void> {
    const { clock, log, sockets } = this.#options;
    try {
      const socket = await sockets.bind(address, PROBE_PORT, (bytes, from) => this.#answer(bytes, from));
      if (generation === this.#generation) this.#socket = socket;
      else socket.close();
    } catch (error) {
      if (generation !== this.#generation) return;
      log.debug('cannot answer probes yet', { address, port: PROBE_PORT, error: errorMessage(error) });
      this.#cancelRetry = clock.after(RETRY_MS, () => void this.#open(address, generation));
    }
  }

  #answer(bytes: Uint8Array, from: { address: string; port: number }): void {
    const message = decodeProbe(bytes);
    if (message?.type !== 'request' || !this.#isWithinRates(from.address)) return;
    // An answer that cannot be sent looks like a probe that was lost.
    this.#socket
      ?.send(encodeProbe({ ...message, type: 'answer' }), from.address, from.port)
      .catch(() => undefined);
    this.#options.asked?.(from.address, message.isHeard === true);
  }

  #isWithinRates(address: string): boolean {
    return this.#senders.of(address).tryTake(1) && this.#whole.tryTake(1);
  }
}
