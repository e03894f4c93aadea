import type { AddressInfo, Server } from 'node:net';

/** The port that is listened on; undefined unless it is. */
export const portOf = (server: Server | undefined): number | undefined =>
  (server?.address() as AddressInfo | null | undefined)?.port;

/** Resolves when the server listens. Without a host it listens on all addresses, IPv4 and IPv6. */
export async function listen(server: Server, host: string | undefined, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ port, ...(host !== undefined && { host }) }, resolve);
  try {
    await promise;
  } finally {
    server.off('error', reject);
  }
}

/** Lets nobody in any more, then resolves when all connections are gone; `end` ends those that would last. */
export async function close(server: Server, end: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  end();
  await promise;
}
