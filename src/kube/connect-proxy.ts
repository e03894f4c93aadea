import { connect, type Socket } from 'node:net';
import { abortError, untilAborted } from '../lib/deadline.ts';
import { type Endpoint, joinEndpoint } from '../lib/endpoint.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { nameOfProxy, type Proxy } from '../lib/proxy.ts';

interface ThroughOptions {
  /** Whether we may go on sending after the other side has ended its own. */
  allowHalfOpen?: boolean;
  signal: AbortSignal;
}

/** Of the head of the proxy's answer. What a proxy says is not trusted, and none needs more. */
const MAX_HEAD_BYTES = 16 * 1024;

/**
 * A connection to that place, opened by a proxy (CONNECT, RFC 9110 section 9.3.6); neither side has sent anything on it yet. The
 * caller's signal is the time limit. Throws Unreachable.
 */
export async function connectThrough(proxy: Proxy, at: Endpoint, options: ThroughOptions): Promise<Socket> {
  const { allowHalfOpen = false, signal } = options;
  if (signal.aborted) throw abortError(signal);
  const request = requestFor(proxy, at);
  const socket = connect({ host: proxy.host, port: proxy.port, allowHalfOpen, noDelay: true });
  try {
    socket.once('connect', () => socket.write(request));
    await untilAborted(permission(socket, proxy, at), signal);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Follows the name of what is dialled, where a time limit is told. */
export const throughText = (proxy: Proxy): string =>
  `through the proxy ${nameOfProxy(proxy)} (is it an HTTP proxy, and may it connect there?)`;

function requestFor({ authorization }: Proxy, { host, port }: Endpoint): string {
  const where = joinEndpoint(host, port);
  // A line break would begin a header of its own.
  if (!/^[\x21-\x7e]+$/u.test(where)) {
    throw new TributaryError(
      'Invalid',
      `a proxy cannot be asked for the name ${JSON.stringify(host.slice(0, 80))}`,
    );
  }
  const credentials = authorization === undefined ? '' : `Proxy-Authorization: ${authorization}\r\n`;
  return `CONNECT ${where} HTTP/1.1\r\nHost: ${where}\r\n${credentials}\r\n`;
}

async function permission(socket: Socket, proxy: Proxy, at: Endpoint): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const fail = (why: string): void =>
    reject(new TributaryError('Unreachable', `cannot connect to ${joinEndpoint(at.host, at.port)}: ${why}`));
  let head = '';
  const onData = (chunk: Buffer): void => {
    head += chunk.toString('latin1');
    const verdict = readHead(head);
    if (verdict === 'more') return;
    // Paused, since whoever takes the socket over reads from its handle.
    socket.off('data', onData).pause();
    if (verdict === 'open') resolve();
    else fail(refusalText(verdict, proxy, at));
  };
  socket.on('data', onData);
  // This listener stays, since errors may also come later.
  socket.on('error', (error) =>
    fail(`the proxy ${nameOfProxy(proxy)} cannot be reached: ${errorMessage(error)}`),
  );
  socket.once('end', () => fail(refusalText('closed', proxy, at)));
  await promise;
}

export type Verdict = 'more' | 'open' | 'garbage' | 'tooLarge' | 'surplus' | 'closed' | number;

/** What the beginning of a proxy's answer means; a number is the status of a refusal. */
export function readHead(head: string): Verdict {
  const start = 'HTTP/1.';
  if (!head.startsWith(start.slice(0, head.length)) && !head.startsWith(start)) return 'garbage';
  const end = head.indexOf('\r\n\r\n');
  if ((end === -1 ? head.length : end) > MAX_HEAD_BYTES) return 'tooLarge';
  const lineEnd = head.indexOf('\r\n');
  if (lineEnd === -1) return 'more';
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/u.exec(head.slice(0, lineEnd))?.[1] ?? Number.NaN);
  if (Number.isNaN(status)) return 'garbage';
  if (status < 200 || status > 299) return status;
  if (end === -1) return 'more';
  // In TLS the client speaks first.
  return head.length === end + 4 ? 'open' : 'surplus';
}

type Refusal = Exclude<Verdict, 'more' | 'open'>;

/** What happened, and what to do. Nothing of it is in the proxy's own words. */
function refusalText(verdict: Refusal, proxy: Proxy, { host, port }: Endpoint): string {
  const name = `the proxy ${nameOfProxy(proxy)}`;
  if (verdict === 407) {
    return proxy.authorization === undefined
      ? `${name} wants a user and a password (407): name them in its URL, http://USER:PASSWORD@HOST:PORT`
      : `${name} does not accept the user and the password in its URL (407): correct them`;
  }
  if (typeof verdict === 'number') {
    return verdict < 500
      ? `${name} does not permit it (${verdict}): let it permit CONNECT to ${host} at port ${port}, or name ${host} in NO_PROXY`
      : `${name} cannot reach it (${verdict}): is it up, and may the proxy connect there?`;
  }
  const what = {
    garbage: 'does not speak HTTP',
    tooLarge: `answers with more than ${MAX_HEAD_BYTES} bytes of headers`,
    surplus: 'sends data that nobody has asked for',
    closed: 'closes the connection without an answer',
  }[verdict];
  return `${name} ${what}: is it an HTTP proxy that knows CONNECT?`;
}
