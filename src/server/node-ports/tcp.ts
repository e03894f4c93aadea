import { connect, createServer, type Server, type Socket } from 'node:net';

import type { Clock } from '../../lib/clock.ts';
import type { Place as Held, Quota } from '../../lib/quota.ts';
import { close, listen } from '../listening.ts';
import { splice } from '../splice.ts';
import type { Place, Port } from './port.ts';

/** As long as the kernel tries, where a Service has no endpoint that answers. */
const CONNECT_MS = 10_000;
/** As kube-proxy's conntrack forgets a connection without a packet (tcp-timeout-established). */
const IDLE_MS = 24 * 3600 * 1000;
/** How often it is looked which connections are in use. */
const LOOK_MS = 5_000;

interface Open {
  held: Held;
  /** Bytes of both directions, when it was looked at. */
  passed: number;
}

/** Passes connections on. Neither side's end is taken for the end of both. */
export class TcpPort implements Port {
  readonly #place: () => Place;
  readonly #shares: Quota;
  readonly #clock: Clock;
  readonly #open = new Map<Socket, Open>();
  readonly #server: Server;
  #cancelLook: (() => void) | undefined;

  constructor(place: () => Place, shares: Quota, clock: Clock) {
    this.#place = place;
    this.#shares = shares;
    this.#clock = clock;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => void this.#pass(client));
  }

  async listen(host: string, port: number): Promise<void> {
    await listen(this.#server, host, port);
    this.#server.on('error', () => undefined);
  }

  async close(): Promise<void> {
    await close(this.#server, () => {
      for (const client of this.#open.keys()) client.destroy();
    });
    this.#cancelLook?.();
  }

  async #pass(client: Socket): Promise<void> {
    const held = this.#shares.admit(client.remoteAddress ?? '', () => client.resetAndDestroy());
    if (held === undefined) {
      client.resetAndDestroy();
      return;
    }
    this.#open.set(client, { held, passed: 0 });
    this.#cancelLook ??= this.#clock.after(LOOK_MS, () => this.#look());
    const { clusterIP: host, servicePort: port } = this.#place();
    const remote = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const cancel = this.#clock.after(CONNECT_MS, () => remote.destroy());
    remote.once('connect', cancel);
    client.setKeepAlive(true);
    remote.setKeepAlive(true);
    await splice(client, remote, { clock: this.#clock, idleMs: IDLE_MS });
    cancel();
    this.#open.delete(client);
    held.release();
  }

  /** Counts bytes now and then instead of following each of them. */
  #look(): void {
    for (const [client, open] of this.#open) {
      const passed = client.bytesRead + client.bytesWritten;
      if (passed === open.passed) continue;
      open.passed = passed;
      open.held.touch();
    }
    this.#cancelLook = this.#open.size > 0 ? this.#clock.after(LOOK_MS, () => this.#look()) : undefined;
  }
}
