export type Route = { kind: 'link' } | { kind: 'api' } | { kind: 'stream'; id: string };

const STREAM = /^\/v1\/streams\/([A-Za-z0-9_-]{8,64})$/;

/** What a caller wants of us; undefined for anything else. Queries are not part of the protocol. */
export function routeOf(target: string): Route | undefined {
  if (target === '/v1/link') return { kind: 'link' };
  if (target === '/v1/api') return { kind: 'api' };
  const id = STREAM.exec(target)?.[1];
  return id === undefined ? undefined : { kind: 'stream', id };
}
