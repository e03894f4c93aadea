/** Forwards TCP to one of several servers, as a load balancer before API servers does. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class TcpSwitch {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #to: URL;

  private constructor(to: string) {
    this.#to = new URL(to);
    this.#server = createServer((client) => {
      const { hostname, port } = this.#to;
      const server = connect(Number(port), hostname);
      for (const [socket, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
  }

  /** `to`: URL of the first server. */
  static async start(to: string): Promise<TcpSwitch> {
    const made = new TcpSwitch(to);
    made.#server.listen(0, '127.0.0.1');
    await once(made.#server, 'listening');
    return made;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** All connections end, and new ones go to that URL. */
  turn(to: string): void {
    this.#to = new URL(to);
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
