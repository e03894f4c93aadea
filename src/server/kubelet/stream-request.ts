import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import { decodeSegment, invalidName, type PodPath, type Target } from './pod-path.ts';
import { BEARER_SUBPROTOCOL, subprotocols } from './user.ts';

/**
 * The kubelet's streaming paths and what becomes of their parameters on the way to a pod's subresource. Parameters
 * are a closed list per kind; names and values that the foreign API server expects differ from the kubelet's.
 */
const STREAM_KINDS = ['exec', 'attach', 'portForward'] as const;
type StreamKind = (typeof STREAM_KINDS)[number];

export interface StreamRequest {
  kind: StreamKind;
  home: PodPath;
  /** What follows the remote pod's path, for example `/exec?container=a&stdin=true&command=sh`. */
  suffix: string;
}

interface BadStreamRequest {
  status: 400 | 404 | 405;
  text: string;
  headers?: [string, string][];
}

/** In the words of go-restful. */
export const METHOD_NOT_ALLOWED = '405: Method Not Allowed';

/** True for every path that belongs to a streaming endpoint, well formed or not. */
export const isStreamPath = (path: string): boolean =>
  STREAM_KINDS.some((kind) => path === `/${kind}` || path.startsWith(`/${kind}/`));

/** With which the kubelet opens streams. */
const METHODS: readonly (string | undefined)[] = ['GET', 'POST'];

const TUNNEL_SUBPROTOCOL = 'SPDY/3.1+portforward.k8s.io';

function parsePath(path: string): { kind: StreamKind; home: PodPath } | BadStreamRequest {
  const notFound: BadStreamRequest = { status: 404, text: '404 page not found' };
  const [first, ...rest] = path.slice(1).replace(/\/$/, '').split('/');
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
  { path, query: given }: Target,
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
): StreamRequest | BadStreamRequest {
  const parsed = parsePath(path);
  if ('status' in parsed) return parsed;
  if (!METHODS.includes(method))
    return { status: 405, text: METHOD_NOT_ALLOWED, headers: [['Allow', METHODS.join(', ')]] };
  const { kind, home } = parsed;
  const commands = kind === 'exec' ? given.getAll('command') : [];
  const query = kind === 'portForward' ? portQuery(given, headers) : commandQuery(given, home, commands);
  if (typeof query === 'string') return { status: 400, text: query };
  const text = query.toString();
  return { kind, home, suffix: `/${kind.toLowerCase()}${text === '' ? '' : `?${text}`}` };
}

/**
 * Headers of an upgrade, on their way there and back. A closed list goes there: identity (Authorization, Cookie,
 * Impersonate-*, X-Remote-*), provenance (X-Forwarded-*, Origin) and framing of a body must not cross, and a list
 * of what may cross cannot forget one of them. Repetitions matter: SPDY clients offer each version of the
 * stream protocol in a header of its own.
 */
const REQUEST_HEADERS: ReadonlySet<string> = new Set([
  'upgrade',
  'user-agent',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
  'x-stream-protocol-version',
]);

/** Of the answer: what speaks of the other connection or belongs to the foreign server's own clients. */
const DROPPED_RESPONSE_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'trailer',
  'set-cookie',
  'www-authenticate',
  'audit-id',
  'strict-transport-security',
]);

export function pairs(rawHeaders: readonly string[]): [string, string][] {
  const list: [string, string][] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    list.push([rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '']);
  }
  return list;
}

/** A token for the home cluster may be among the subprotocols; the foreign server must not see it. */
function withoutBearer(value: string): string {
  return subprotocols(value)
    .filter((item) => !item.startsWith(BEARER_SUBPROTOCOL))
    .join(', ');
}

export function upgradeHeaders(method: string, rawHeaders: readonly string[]): [string, string][] {
  const kept: [string, string][] = [['Connection', 'Upgrade']];
  // Said outright: a client that frames an empty body in chunks would put its last chunk into the stream.
  if (method !== 'GET') kept.push(['Content-Length', '0']);
  for (const [name, value] of pairs(rawHeaders)) {
    const lower = name.toLowerCase();
    if (!REQUEST_HEADERS.has(lower)) continue;
    const cleaned = lower === 'sec-websocket-protocol' ? withoutBearer(value) : value;
    if (cleaned !== '') kept.push([name, cleaned]);
  }
  return kept;
}

export function answerHeaders(headers: readonly [string, string][]): [string, string][] {
  return headers.filter(([name]) => !DROPPED_RESPONSE_HEADERS.has(name.toLowerCase()));
}

/** The first value of a header, by its name in lower case. */
export const headerValue = (headers: readonly [string, string][], name: string): string | undefined =>
  headers.find(([candidate]) => candidate.toLowerCase() === name)?.[1];

/** An HTTP/1.1 message head. Values come from parsed messages and hold no line breaks. */
export function formatHead(status: number, message: string, headers: readonly [string, string][]): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `HTTP/1.1 ${status} ${message}\r\n${lines}\r\n`;
}
