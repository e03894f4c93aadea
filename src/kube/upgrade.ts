import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { type Clock, systemClock } from '../lib/clock.ts';
import { abortError, startDeadline } from '../lib/deadline.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { collect } from './body.ts';
import { type Credentials, tlsTarget } from './credentials.ts';
import { dialLanded } from './landed.ts';
import type { SpareConnection } from './spare-connection.ts';

export interface UpgradeRequest {
  method: string;
  /** Path with query, after the server URL's own path. */
  path: string;
  /** In order, names as written. Host, Authorization and those of a body are ours and are dropped here. */
  rawHeaders: readonly (readonly [string, string])[];
  signal?: AbortSignal;
  /** Time limit until the head of the answer has come. Default 30 s. */
  timeoutMs?: number;
  /** Where a connection may wait that was dialled before; when the stream has ended, there will be one for the next. */
  spare?: SpareConnection;
  clock?: Clock;
}

export interface UpgradeResponse {
  status: number;
  statusMessage: string;
  /** In order, names as the server wrote them. */
  headers: [string, string][];
  /** Half-open where status is 101, destroyed otherwise. Give it an `error` listener before anything else. */
  socket: Duplex;
  /** What followed the head of a 101 in the same packet. */
  head: Buffer;
  /** The body of an answer that is not 101, cut at 64 KiB. */
  body: Buffer;
}

const MAX_REFUSAL_BYTES = 64 * 1024;

const OURS = /^(host|authorization|content-length|transfer-encoding)$/i;

/**
 * Dials a connection of its own and asks to upgrade it (SPDY or WebSocket, we do not care): what comes after the
 * 101 is handed over as raw bytes. HTTP/1.1, since upgrades do not exist in HTTP/2.
 */
export async function dialUpgrade(
  credentials: Credentials,
  upgrade: UpgradeRequest,
): Promise<UpgradeResponse> {
  const { clock = systemClock, timeoutMs = 30_000 } = upgrade;
  using deadline = startDeadline(clock, timeoutMs, `upgrade at ${credentials.server.host}`, upgrade.signal);
  const { signal } = deadline;
  const token = await credentials.token?.(signal);
  const answer = await attempt(credentials, upgrade, token, signal);
  if (answer.status !== 401 || credentials.token === undefined) return answer;
  const fresh = await credentials.token(signal, true);
  if (fresh === undefined || fresh === token) return answer;
  return await attempt(credentials, upgrade, fresh, signal);
}

async function attempt(
  credentials: Credentials,
  { clock = systemClock, timeoutMs = 30_000, spare, ...upgrade }: UpgradeRequest,
  token: string | undefined,
  signal: AbortSignal,
): Promise<UpgradeResponse> {
  // Who has gone already takes no connection from those who come.
  if (signal.aborted) throw abortError(signal);
  const target = tlsTarget(credentials);
  const waiting = await spare?.take(credentials, signal);
  const socket = waiting ?? (await dialLanded({ clock, target, timeoutMs, signal }));
  const { promise, resolve, reject } = Promise.withResolvers<UpgradeResponse>();
  const request = httpsRequest({
    // The request uses this socket as it is, without an agent or a pool.
    createConnection: () => socket,
    method: upgrade.method,
    path: credentials.server.pathname.replace(/\/+$/, '') + upgrade.path,
    headers: wireHeaders(credentials, upgrade.rawHeaders, token),
  });
  const onAbort = (): void => {
    reject(abortError(signal));
    socket.destroy();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  request.on('error', (cause) =>
    reject(new TributaryError('Unreachable', `upgrade failed: ${errorMessage(cause)}`, { cause })),
  );
  request.once('upgrade', (incoming: IncomingMessage, _socket: Duplex, head: Buffer) => {
    socket.once('close', () => spare?.prepare(credentials));
    resolve({ ...headOf(incoming), socket, head, body: Buffer.alloc(0) });
  });
  request.once('response', (incoming: IncomingMessage) => {
    collect(incoming, { maxBytes: MAX_REFUSAL_BYTES, excess: 'cut' })
      .then((body) => resolve({ ...headOf(incoming), socket, head: Buffer.alloc(0), body }), reject)
      .finally(() => socket.destroy());
  });
  request.end();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** As a flat list, so that Node keeps order, spelling and repetitions. */
function wireHeaders(
  credentials: Credentials,
  rawHeaders: UpgradeRequest['rawHeaders'],
  token: string | undefined,
): string[] {
  const headers = ['Host', credentials.server.host];
  for (const [name, value] of rawHeaders) {
    if (!OURS.test(name)) headers.push(name, value);
  }
  if (token !== undefined) headers.push('Authorization', `Bearer ${token}`);
  // Else Node announces a chunked body for a POST, and its empty last chunk would be the stream's first bytes.
  headers.push('Content-Length', '0');
  return headers;
}

function headOf(incoming: IncomingMessage): Pick<UpgradeResponse, 'status' | 'statusMessage' | 'headers'> {
  const { statusCode, statusMessage, rawHeaders } = incoming;
  const headers: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    headers.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']);
  }
  return { status: statusCode ?? 0, statusMessage: statusMessage ?? '', headers };
}
