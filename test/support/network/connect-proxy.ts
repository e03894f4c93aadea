/** An HTTP proxy that knows CONNECT and nothing else; it leads where the test says, so that no test needs names or other hosts. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { parseProxy, type ProxySettings } from '../../../src/lib/proxy.ts';

interface Asked {
  /** `host:port` */
  target: string;
  authorization: string | undefined;
}

export class ConnectProxy {
  readonly asked: Asked[] = [];
  /** By `host:port`: the port on loopback that is there. */
  readonly routes: Map<string, number> = new Map();
  /** What it answers instead of connecting. */
  answer: ((socket: Socket) => void) | undefined;
  readonly #server: Server = createServer((socket) => this.#serve(socket));
  readonly #sockets = new Set<Socket>();

  async start(): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }

  get name(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** `user` is `name:password`. */
  url(user?: string): string {
    return `http://${user === undefined ? '' : `${user}@`}${this.name}`;
  }

  settings(except = '', user?: string): ProxySettings {
    return { proxy: parseProxy(this.url(user), 'proxy'), except };
  }

  #serve(socket: Socket): void {
    this.#hold(socket);
    let head = '';
    const onData = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', onData);
      const [, target = ''] = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head) ?? [];
      this.asked.push({ target, authorization: /\r\nProxy-Authorization: (.*)\r\n/.exec(head)?.[1] });
      if (this.answer !== undefined) this.answer(socket);
      else this.#join(socket, this.routes.get(target));
    };
    socket.on('data', onData);
  }

  #join(socket: Socket, port: number | undefined): void {
    if (port === undefined) {
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
      return;
    }
    const upstream = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    this.#hold(upstream);
    upstream.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n');
      socket.pipe(upstream);
      upstream.pipe(socket);
    });
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      one.once('close', () => other.destroy());
    }
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
  }
}
