import type { IncomingHttpHeaders } from 'node:http';

/** Browsers cannot set Authorization on a WebSocket; Kubernetes lets them put the token in a subprotocol. */
export const BEARER_SUBPROTOCOL = 'base64url.bearer.authorization.k8s.io.';

export const subprotocols = (header: string): string[] =>
  header
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** The bearer token of a request; undefined where there is none or more than one. */
export function bearerToken(headers: IncomingHttpHeaders): string | undefined {
  const match = /^bearer +([^\s]+) *$/i.exec(headers.authorization?.trim() ?? '');
  if (match !== null) return match[1];
  const offered = subprotocols(headers['sec-websocket-protocol'] ?? '').filter((item) =>
    item.startsWith(BEARER_SUBPROTOCOL),
  );
  const encoded = offered[0]?.slice(BEARER_SUBPROTOCOL.length);
  if (offered.length !== 1 || encoded === undefined || !/^[\w-]+$/.test(encoded)) return undefined;
  return Buffer.from(encoded, 'base64url').toString('utf8');
}
