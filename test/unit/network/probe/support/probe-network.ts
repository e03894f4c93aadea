import { PROBE_PORT } from '../../../../../src/api/own-network.ts';
import type {
  Knock,
  ProbeListener,
  ProbeSocket,
  ProbeSockets,
} from '../../../../../src/network/probe/sockets.ts';
import type { FakeClock } from '../../../../support/fake-clock.ts';

/** IPv4 and UDP headers. */
const HEADERS = 28;
const FIRST_FREE_PORT = 40_000;

/** Hosts that send each other datagrams through a tunnel that a test can make narrow, slow or lossy. */
export class ProbeNetwork implements ProbeSockets {
  /** Larger IP packets disappear. */
  mtu = 1500;
  delayMs = 1;
  /** Whether this datagram is lost. */
  loses: (to: string, from: string) => boolean = () => false;
  /** Called with each datagram that is sent. */
  onSend: (to: string) => void = () => undefined;
  /** Own addresses that hosts do not have at present. */
  readonly absent: Set<string> = new Set();
  /** Addresses whose kernel answers. */
  readonly kernels: Set<string> = new Set();
  /** Of IP packets that were sent, in bytes, by where to. */
  readonly sent: { to: string; size: number }[] = [];
  readonly #clock: FakeClock;
  readonly #sockets = new Map<string, ProbeListener>();
  #port = FIRST_FREE_PORT;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  async bind(address: string, port: number, listener: ProbeListener): Promise<ProbeSocket> {
    if (this.absent.has(address)) throw new Error('EADDRNOTAVAIL');
    const own = port === 0 ? (this.#port += 1) : port;
    const name = `${address}:${own}`;
    if (this.#sockets.has(name)) throw new Error('EADDRINUSE');
    this.#sockets.set(name, listener);
    return {
      send: async (bytes, to, toPort) => this.#send(bytes, { address, port: own }, `${to}:${toPort}`),
      close: () => void this.#sockets.delete(name),
    };
  }

  async knock({ source, address, timeoutMs }: Knock): Promise<boolean> {
    const isAnswered = this.kernels.has(address) && !this.absent.has(source);
    await this.#clock.sleep(isAnswered ? this.delayMs * 2 : timeoutMs);
    return isAnswered;
  }

  /** Open sockets. */
  get open(): string[] {
    return [...this.#sockets.keys()];
  }

  async #send(bytes: Uint8Array, from: { address: string; port: number }, to: string): Promise<void> {
    const size = bytes.length + HEADERS;
    this.sent.push({ to, size });
    this.onSend(to);
    if (size > this.mtu || this.loses(to, `${from.address}:${from.port}`)) return;
    const copy = Uint8Array.from(bytes);
    this.#clock.after(this.delayMs, () => this.#sockets.get(to)?.(copy, from));
  }

  /** Datagrams to responders. */
  requests(): number {
    return this.sent.filter(({ to }) => to.endsWith(`:${PROBE_PORT}`)).length;
  }
}
