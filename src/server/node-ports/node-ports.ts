import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import { StreamGate } from '../splice.ts';
import type { Port, WantedPort } from './port.ts';
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
}

/** Connections and flows of all ports together. */
const MAX_OPEN = 2_048;
const RETRY_MS = 30_000;

interface Open {
  wanted: WantedPort;
  /** Undefined: the address is taken; it is tried again. */
  port: Port | undefined;
}

/**
 * The node ports of a virtual node. A real node's kube-proxy translates addresses in its kernel; this process has a network of its
 * own and no right to change it, so it takes connections and passes them to the ClusterIP.
 */
export class NodePorts implements Component {
  readonly name = 'node ports';
  readonly #options: NodePortsOptions;
  readonly #gate = new StreamGate(MAX_OPEN, () => undefined);
  readonly #open = new Map<string, Open>();
  /** Keys of those that could not be opened: it is said once. */
  readonly #refused = new Set<string>();
  /** One change after the other; a port is closed before it is opened again. */
  #work: Promise<void> = Promise.resolve();
  #isStopped = false;
  #unsubscribe = (): void => undefined;
  #cancel = (): void => undefined;

  constructor(options: NodePortsOptions) {
    this.#options = options;
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
    for (const key of this.#refused) if (!wanted.has(key)) this.#refused.delete(key);
    for (const [key, open] of this.#open) {
      const now = wanted.get(key);
      if (now === undefined || open.port === undefined) {
        await open.port?.close();
        this.#open.delete(key);
      } else if (!deepEqual(now, open.wanted)) open.wanted = now;
    }
    for (const [key, one] of wanted) {
      if (!this.#open.has(key)) this.#open.set(key, await this.#listen(key, one));
    }
    const isLater = [...this.#open.values()].some(({ port }) => port === undefined);
    if (isLater) this.#cancel = this.#options.clock.after(RETRY_MS, () => void this.#settle());
  }

  async #listen(key: string, wanted: WantedPort): Promise<Open> {
    const { host, clock, log } = this.#options;
    const open: Open = { wanted, port: undefined };
    const Kind = wanted.protocol === 'TCP' ? TcpPort : UdpPort;
    const port = new Kind(() => open.wanted, this.#gate, clock);
    try {
      await port.listen(host, wanted.port);
      open.port = port;
      this.#refused.delete(key);
    } catch (error) {
      const isSaid = this.#refused.has(key);
      this.#refused.add(key);
      if (isSaid) return open;
      const { protocol, port: number, service } = wanted;
      const why = `${errorMessage(error)}; real nodes answer on it`;
      log.warn(`the node port ${protocol} ${number} of Service ${service} is not served at ${host}: ${why}`);
    }
    return open;
  }
}
