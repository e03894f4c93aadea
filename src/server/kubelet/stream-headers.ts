import { BEARER_SUBPROTOCOL, subprotocols } from './auth-token.ts';

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
