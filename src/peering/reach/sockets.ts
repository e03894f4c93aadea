import { connect, type Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { TributaryError, errorMessage } from '../../lib/errors.ts';
import { abortError } from '../../lib/deadline.ts';

/** Idle time before TCP probes a silent peer; libuv then probes each second, ten times. Milliseconds. */
export const TCP_KEEPALIVE_MS = 15_000;

/** A TCP connection that is not read yet. */
export async function connectTcp(
  { host, port }: { host: string; port: number },
  signal: AbortSignal,
): Promise<Socket> {
  if (signal.aborted) throw abortError(signal);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({
    host,
    port,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEPALIVE_MS,
  });
  const onAbort = (): void => reject(abortError(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('connect', () => resolve(socket));
  socket.on('error', (cause) =>
    reject(
      new TributaryError('Unreachable', `cannot connect to ${host}:${port}: ${errorMessage(cause)}`, {
        cause,
      }),
    ),
  );
  try {
    return await promise;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Takes a WebSocket over before anything of it is read. */
export function hold(ws: WebSocket): WebSocket {
  // Its errors end in a close, which whoever joins it sees; without a listener they would end the process.
  ws.on('error', () => undefined);
  ws.pause();
  return ws;
}

export function refuse(ws: WebSocket, code: number, why: string): void {
  // A paused socket never reads the answer to its close.
  ws.resume();
  ws.close(code, why);
}
