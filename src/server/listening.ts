import type { AddressInfo, Server } from 'node:net';

import { errorMessage, TributaryError } from '../lib/errors.ts';
import { holderOf } from './port-holder.ts';

/** The port that is listened on; undefined unless it is. */
export const portOf = (server: Server | undefined): number | undefined =>
  (server?.address() as AddressInfo | null | undefined)?.port;

/**
 * Resolves when the server listens. Without a host it listens on all addresses, IPv4 and IPv6. With the option that names the port,
 * an error says what a person can do; the code of the cause remains.
 */
export async function listen(
  server: Server,
  host: string | undefined,
  port: number,
  option?: string,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ port, ...(host !== undefined && { host }) }, resolve);
  try {
    await promise;
  } catch (error) {
    throw option === undefined ? error : explained(error, { host, port, option });
  } finally {
    server.off('error', reject);
  }
  // A connection that cannot be accepted, for want of memory, ends with that.
  server.on('error', () => undefined);
}

function explained(
  error: unknown,
  { host, port, option }: { host: string | undefined; port: number; option: string },
): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const at = `${host ?? 'any address'}, port ${port}`;
  const advice = `choose another one with --${option}`;
  const cause = errorMessage(error);
  const wrong = (message: string): Error =>
    new TributaryError('Conflict', `${message} (${cause})`, { cause: error });
  if (code === 'EADDRINUSE') {
    return wrong(
      `cannot listen on ${at}: ${holderOf(port) ?? 'another program'} holds it already; end that, or ${advice}`,
    );
  }
  if (code === 'EACCES') return wrong(`cannot listen on ${at}: not allowed for this user; ${advice}`);
  if (code === 'EADDRNOTAVAIL') return wrong(`cannot listen on ${at}: this host does not have that address`);
  return error;
}

/** Lets nobody in any more, then resolves when all connections are gone; `end` ends those that would last. */
export async function close(server: Server, end: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  end();
  await promise;
}
