import { type AddressInfo, type Socket, createServer, connect } from 'node:net';

/** A TCP relay that can fail like a network: fall silent without closing, reset, or refuse. */
export interface TcpProxy {
  readonly port: number;
  /** Accepted so far. */
  readonly connections: number;
  /** From now on nothing passes, on old and new connections, and neither side is told. */
  silence(): void;
  /** Lets new connections through again; silenced ones stay dead, as after a lost NAT entry. */
  restore(): void;
  /** Resets all connections. */
  cut(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let silent = false;
  let connections = 0;
  const server = createServer((client) => {
    connections++;
    const upstream = connect(targetPort, '127.0.0.1');
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      let dead = false;
      from.on('data', (chunk: Buffer) => {
        dead ||= silent;
        if (!dead) to.write(chunk);
      });
      from.on('error', () => undefined);
      from.on('end', () => !dead && !silent && to.end());
      from.on('close', () => {
        sockets.delete(from);
        if (!dead && !silent) to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    silence: () => (silent = true),
    restore: () => (silent = false),
    cut: () => {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
