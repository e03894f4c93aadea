import { connect, type TLSSocket } from 'node:tls';
import { Backoff, type BackoffOptions } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { abortError, startDeadline, untilAborted } from '../lib/deadline.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { connectThrough, throughText } from './connect-proxy.ts';
import type { TlsTarget } from './credentials.ts';

export interface DialOptions {
  clock: Clock;
  target: TlsTarget;
  protocols: readonly string[];
  timeoutMs: number;
  /** Whether we may go on sending after the peer has ended its side; for upgraded connections. */
  allowHalfOpen?: boolean;
  /** What takes the bytes instead of the events of a stream; nothing does of a connection through a proxy. */
  onread?: { buffer: Buffer; callback: (bytes: number) => boolean };
  signal?: AbortSignal | undefined;
}

/**
 * Idle time before TCP probes a silent peer; libuv then probes each second, ten times. This finds dead peers
 * where nothing above does: HTTP/1.1 watches and upgraded connections.
 */
const TCP_KEEPALIVE_MS = 15_000;

/** Directly, or through the proxy that the target names. Resolves with a TLS connection whose handshake is verified; otherwise throws Unreachable. */
export async function dial(options: DialOptions): Promise<TLSSocket> {
  const { clock, target, protocols, timeoutMs, allowHalfOpen = false, onread, signal } = options;
  const { proxy, ...tls } = target;
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const where = `${target.host}:${target.port}`;
  const what = `connecting to ${where}${proxy === undefined ? '' : ` ${throughText(proxy)}`}`;
  using deadline = startDeadline(clock, timeoutMs, what, signal);
  if (deadline.signal.aborted) throw abortError(deadline.signal);
  const carrier =
    proxy === undefined
      ? undefined
      : await connectThrough(proxy, target, { allowHalfOpen, signal: deadline.signal });
  // A variable, since Node's types do not know that `connect` takes allowHalfOpen.
  const how = {
    ...tls,
    ALPNProtocols: [...protocols],
    allowHalfOpen,
    ...(onread && { onread }),
    ...(carrier && { socket: carrier }),
  };
  const socket = connect(how);
  const onError = (cause: Error): void => reject(unreachable(where, cause));
  const onClose = (): void => reject(unreachable(where, new Error('closed during the handshake')));
  socket.once('secureConnect', () => resolve(socket));
  socket.on('error', onError);
  socket.once('close', onClose);
  try {
    const connected = await untilAborted(promise, deadline.signal);
    connected.setNoDelay(true);
    connected.setKeepAlive(true, TCP_KEEPALIVE_MS);
    return connected;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    socket.off('close', onClose);
  }
}

function unreachable(where: string, cause: Error): TributaryError {
  return new TributaryError('Unreachable', `cannot connect to ${where}: ${errorMessage(cause)}`, { cause });
}

/**
 * The same, but a dial that follows a failed one waits for a while. For a server that many callers ask, each with a backoff of
 * its own: those who wait for one connection share the dial, and all go on once it is made.
 */
export function spaced<T>(
  attempt: (signal: AbortSignal) => Promise<T>,
  { clock, ...options }: BackoffOptions & { clock: Clock },
): (signal: AbortSignal) => Promise<T> {
  const backoff = new Backoff(options);
  let notBefore = -Infinity;
  return async (signal) => {
    const waitMs = notBefore - clock.monotonic();
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    try {
      const made = await attempt(signal);
      notBefore = -Infinity;
      backoff.reset();
      return made;
    } catch (error) {
      notBefore = clock.monotonic() + backoff.next();
      throw error;
    }
  };
}
