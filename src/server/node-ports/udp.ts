import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';

import type { Clock } from '../../lib/clock.ts';
import type { Place as Held, Quota } from '../../lib/quota.ts';
import type { Place, Port } from './port.ts';

/** As the kernel forgets a flow with answers (nf_conntrack_udp_timeout_stream). */
const IDLE_MS = 120_000;

interface Flow {
  /** Towards the Service; a port of its own, so that answers find their client. */
  socket: Socket;
  send: (data: Buffer) => void;
  lastUsedMs: number;
  held: Held;
}

/** Passes datagrams on, and answers back to the client that has asked. */
export class UdpPort implements Port {
  readonly #place: () => Place;
  readonly #shares: Quota;
  readonly #clock: Clock;
  /** By address and port of the client. */
  readonly #flows = new Map<string, Flow>();
  #socket: Socket | undefined;
  #cancel = (): void => undefined;

  constructor(place: () => Place, shares: Quota, clock: Clock) {
    this.#place = place;
    this.#shares = shares;
    this.#clock = clock;
  }

  async listen(host: string, port: number): Promise<void> {
    const socket = socketFor(host);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once('error', reject);
    socket.bind({ address: host, port }, resolve);
    try {
      await promise;
    } catch (error) {
      socket.close();
      throw error;
    }
    socket.off('error', reject);
    socket.on('error', () => undefined);
    socket.on('message', (data, from) => this.#pass(socket, data, from));
    this.#socket = socket;
    this.#forgetIdle();
  }

  async close(): Promise<void> {
    this.#cancel();
    for (const [key, flow] of this.#flows) this.#end(key, flow);
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#socket === undefined) resolve();
    else this.#socket.close(resolve);
    await promise;
  }

  #pass(server: Socket, data: Buffer, from: RemoteInfo): void {
    // A raw socket can say so; nobody could be answered.
    if (from.port === 0) return;
    const key = `${from.address} ${from.port}`;
    const flow = this.#flows.get(key) ?? this.#begin(key, server, from);
    // As where a table of connections is full: it is dropped.
    if (flow === undefined) return;
    this.#use(flow);
    flow.send(data);
  }

  #begin(key: string, server: Socket, { address, port }: RemoteInfo): Flow | undefined {
    const held = this.#shares.admit(address, () => this.#end(key, flow));
    if (held === undefined) return undefined;
    const { clusterIP, servicePort } = this.#place();
    const socket = socketFor(clusterIP);
    const { promise: connected, resolve } = Promise.withResolvers<void>();
    const flow: Flow = {
      socket,
      send: (datagram) => void connected.then(() => this.#flows.get(key) === flow && socket.send(datagram)),
      lastUsedMs: this.#clock.monotonic(),
      held,
    };
    // Nobody listens there: the client hears nothing, and the next datagram begins another flow.
    socket.on('error', () => this.#end(key, flow));
    socket.on('message', (answer) => {
      this.#use(flow);
      server.send(answer, port, address, () => undefined);
    });
    this.#flows.set(key, flow);
    // Connected, so that nobody else can answer the client. A failure (no route, no endpoint) comes here, and is no event.
    socket.connect(servicePort, clusterIP, (error?: unknown) =>
      Error.isError(error) ? this.#end(key, flow) : resolve(),
    );
    return flow;
  }

  #end(key: string, flow: Flow): void {
    if (this.#flows.get(key) !== flow) return;
    this.#flows.delete(key);
    flow.socket.close();
    flow.held.release();
  }

  #use(flow: Flow): void {
    flow.lastUsedMs = this.#clock.monotonic();
    flow.held.touch();
  }

  #forgetIdle(): void {
    const before = this.#clock.monotonic() - IDLE_MS;
    for (const [key, flow] of this.#flows) if (flow.lastUsedMs <= before) this.#end(key, flow);
    this.#cancel = this.#clock.after(IDLE_MS / 4, () => this.#forgetIdle());
  }
}

const socketFor = (address: string): Socket => createSocket(isIPv6(address) ? 'udp6' : 'udp4');
