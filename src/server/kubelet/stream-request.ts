import type { IncomingHttpHeaders } from 'node:http';
import { subprotocols } from './auth-token.ts';
import { decodeSegment, invalidName, splitTarget } from './names.ts';
import type { PodPath } from './names.ts';

/**
 * The kubelet's streaming paths and what becomes of their parameters on the way to a pod's subresource. Parameters
 * are a closed list per kind; names and values that the foreign API server expects differ from the kubelet's.
 */
export const STREAM_KINDS = ['exec', 'attach', 'portForward'] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

export interface StreamRequest {
  kind: StreamKind;
  home: PodPath;
  /** What follows the remote pod's path, for example `/exec?container=a&stdin=true&command=sh`. */
  suffix: string;
}

export interface BadStreamRequest {
  status: 400 | 404;
  text: string;
}

/** True for every path that belongs to a streaming endpoint, well formed or not. */
export const isStreamPath = (path: string): boolean =>
  STREAM_KINDS.some((kind) => path === `/${kind}` || path.startsWith(`/${kind}/`));

const TUNNEL_SUBPROTOCOL = 'SPDY/3.1+portforward.k8s.io';

function parsePath(path: string): { kind: StreamKind; home: PodPath } | BadStreamRequest {
  const notFound: BadStreamRequest = { status: 404, text: '404 page not found' };
  const [first, ...rest] = path.slice(1).split('/');
  const kind = STREAM_KINDS.find((candidate) => candidate === first);
  const names = rest.map((segment) => decodeSegment(segment));
  if (kind === undefined) return notFound;
  if (names.includes(undefined)) return { status: 400, text: 'invalid path' };
  const [namespace = '', pod = '', third, fourth] = names;
  const longest = kind === 'portForward' ? 3 : 4;
  if (names.length < longest - 1 || names.length > longest) return notFound;
  const home: PodPath = { namespace, pod };
  if (names.length === longest) home.uid = third ?? '';
  if (kind !== 'portForward') home.container = (names.length === 4 ? fourth : third) ?? '';
  const invalid = invalidName(home);
  return invalid === undefined ? { kind, home } : { status: 400, text: invalid };
}

/** `input=1` and its like become `stdin=true`. As in the kubelet a terminal has no separate stderr. */
function commandQuery(given: URLSearchParams, home: PodPath, commands: string[]): URLSearchParams | string {
  const wants = (name: string): boolean => given.get(name) === '1';
  const tty = wants('tty');
  const streams = { stdin: wants('input'), stdout: wants('output'), stderr: wants('error') && !tty };
  if (!Object.values(streams).includes(true)) return 'you must specify at least 1 of stdin, stdout, stderr';
  const query = new URLSearchParams({ container: home.container ?? '' });
  for (const [name, wanted] of Object.entries({ ...streams, tty })) query.set(name, String(wanted));
  for (const command of commands) query.append('command', command);
  return query;
}

/** Ports are in the query only for WebSocket clients that do not tunnel SPDY; others name them in the stream. */
function portQuery(given: URLSearchParams, headers: IncomingHttpHeaders): URLSearchParams | string {
  const query = new URLSearchParams();
  const isWebSocket = headers.upgrade?.toLowerCase() === 'websocket';
  const tunnels = subprotocols(headers['sec-websocket-protocol'] ?? '').includes(TUNNEL_SUBPROTOCOL);
  if (!isWebSocket || tunnels) return query;
  const values = given.getAll('port');
  if (values.length === 0) return 'query parameter "port" is required';
  for (const port of values.flatMap((value) => value.split(','))) {
    if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) {
      return `unable to parse ${JSON.stringify(port.slice(0, 32))} as a port`;
    }
    query.append('ports', port);
  }
  return query;
}

export function parseStreamRequest(
  target: string,
  headers: IncomingHttpHeaders,
): StreamRequest | BadStreamRequest {
  const split = splitTarget(target);
  if (split === undefined) return { status: 400, text: 'invalid path' };
  const parsed = parsePath(split.path);
  if ('status' in parsed) return parsed;
  const { kind, home } = parsed;
  const commands = kind === 'exec' ? split.query.getAll('command') : [];
  const query =
    kind === 'portForward' ? portQuery(split.query, headers) : commandQuery(split.query, home, commands);
  if (typeof query === 'string') return { status: 400, text: query };
  const text = query.toString();
  return { kind, home, suffix: `/${kind.toLowerCase()}${text === '' ? '' : `?${text}`}` };
}
