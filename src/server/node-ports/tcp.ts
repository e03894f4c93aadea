import { connect, createServer, type Server, type Socket } from 'node:net';

import type { Clock } from '../../lib/clock.ts';
import { close, listen } from '../listening.ts';
import { splice, type StreamGate } from '../splice.ts';
import type { Place, Port } from './port.ts';

/** As long as the kernel tries, where a Service has no endpoint that answers. */
const CONNECT_MS = 10_000;
/** As kube-proxy's conntrack forgets a connection without a packet (tcp-timeout-established). */
const IDLE_MS = 24 * 3600 * 1000;

/** Passes connections on. Neither side's end is taken for the end of both. */
export class TcpPort implements Port {
  readonly #place: () => Place;
  readonly #gate: StreamGate;
  readonly #clock: Clock;
  readonly #open = new Set<Socket>();
  readonly #server: Server;

  constructor(place: () => Place, gate: StreamGate, clock: Clock) {
    this.#place = place;
    this.#gate = gate;
    this.#clock = clock;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => void this.#pass(client));
  }

  async listen(host: string, port: number): Promise<void> {
    await listen(this.#server, host, port);
    this.#server.on('error', () => undefined);
  }

  async close(): Promise<void> {
    await close(this.#server, () => {
      for (const client of this.#open) client.destroy();
    });
  }

  async #pass(client: Socket): Promise<void> {
    const leave = this.#gate.enter();
    if (leave === undefined) {
      client.resetAndDestroy();
      return;
    }
    this.#open.add(client);
    const { clusterIP: host, servicePort: port } = this.#place();
    const remote = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const cancel = this.#clock.after(CONNECT_MS, () => remote.destroy());
    remote.once('connect', cancel);
    client.setKeepAlive(true);
    remote.setKeepAlive(true);
    await splice(client, remote, { clock: this.#clock, idleMs: IDLE_MS });
    cancel();
    this.#open.delete(client);
    leave();
  }
}
