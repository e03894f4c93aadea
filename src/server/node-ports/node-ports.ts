import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import type { Quota } from '../../lib/quota.ts';
import type { Port, WantedPort } from './port.ts';
import { forgeShares } from './shares.ts';
import { TcpPort } from './tcp.ts';
import { UdpPort } from './udp.ts';

interface NodePortsOptions {
  /** The address of the node. */
  host: string;
  /** As they are to be now. */
  wanted: () => readonly WantedPort[];
  /** Calls back when they may have changed. */
  onChange: (listener: () => void) => () => void;
  clock: Clock;
  log: Logger;
  /** Connections of all ports together; and as many flows of UDP. */
  maxOpen?: number;
}

const MAX_OPEN = 2_048;
/** A client of UDP has its answer by then. */
const OUT_OF_USE_MS = { TCP: 10_000, UDP: 2_000 } as const;
const RETRY_MS = 30_000;

interface Open {
  wanted: WantedPort;
  /** Undefined: it could not be opened, which was said; it is tried again. */
  port?: Port;
}

/**
 * The node ports of a virtual node. A real node's kube-proxy translates addresses in its kernel; this process has a network of its
 * own and no right to change it, so it takes connections and passes them to the ClusterIP.
 */
export class NodePorts implements Component {
  readonly name = 'node ports';
  readonly #options: NodePortsOptions;
  /** A flood of datagrams takes no connection away. */
  readonly #shares: Readonly<Record<WantedPort['protocol'], Quota>>;
  readonly #open = new Map<string, Open>();
  /** One change after the other; a port is closed before it is opened again. */
  #work: Promise<void> = Promise.resolve();
  #isStopped = false;
  #unsubscribe = (): void => undefined;
  #cancel = (): void => undefined;

  constructor(options: NodePortsOptions) {
    this.#options = options;
    const { clock, maxOpen = MAX_OPEN } = options;
    this.#shares = {
      TCP: forgeShares(maxOpen, OUT_OF_USE_MS.TCP, clock),
      UDP: forgeShares(maxOpen, OUT_OF_USE_MS.UDP, clock),
    };
  }

  /** How many are listened on. */
  get count(): number {
    return [...this.#open.values()].filter(({ port }) => port !== undefined).length;
  }

  async start(): Promise<void> {
    this.#unsubscribe = this.#options.onChange(() => void this.#settle());
    await this.#settle();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    await this.#settle();
  }

  async #settle(): Promise<void> {
    this.#work = this.#work.then(async () => this.#apply());
    await this.#work;
  }

  async #apply(): Promise<void> {
    this.#cancel();
    const list = this.#isStopped ? [] : this.#options.wanted();
    const wanted = new Map(list.map((one) => [`${one.protocol} ${one.port}`, one]));
    for (const [key, { port }] of this.#open) {
      if (wanted.has(key)) continue;
      await port?.close();
      this.#open.delete(key);
    }
    for (const [key, one] of wanted) {
      const known = this.#open.get(key);
      const open = known ?? { wanted: one };
      open.wanted = one;
      this.#open.set(key, open);
      if (open.port === undefined) await this.#listen(open, known === undefined);
    }
    const isLater = [...this.#open.values()].some(({ port }) => port === undefined);
    if (isLater) this.#cancel = this.#options.clock.after(RETRY_MS, () => void this.#settle());
  }

  async #listen(open: Open, isNew: boolean): Promise<void> {
    const { host, clock, log } = this.#options;
    const { protocol, port: number, service } = open.wanted;
    const Kind = protocol === 'TCP' ? TcpPort : UdpPort;
    const port = new Kind(() => open.wanted, this.#shares[protocol], clock);
    try {
      await port.listen(host, number);
      open.port = port;
    } catch (error) {
      const why = `${errorMessage(error)}; real nodes answer on it`;
      if (isNew)
        log.warn(
          `the node port ${protocol} ${number} of Service ${service} is not served at ${host}: ${why}`,
        );
    }
  }
}
