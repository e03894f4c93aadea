/** Passes connections on, as somebody does who is between two others; it cannot read them. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export class Relay {
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(host: string, target: { host: string; port: number }): Promise<Relay> {
    const server = createServer();
    const relay = new Relay(server);
    server.on('connection', (socket) => relay.#join(socket, connect(target)));
    await new Promise<void>((done, fail) => server.once('error', fail).listen(0, host, done));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }

  #join(here: Socket, there: Socket): void {
    this.connections += 1;
    for (const [from, to] of [
      [here, there],
      [there, here],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => undefined);
      from.once('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}
