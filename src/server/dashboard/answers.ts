/** Bodies of requests and answers. */
import type { IncomingMessage, ServerResponse } from 'node:http';

import { type ErrorCode, TributaryError } from '../../lib/errors.ts';
import { parseUntrusted } from '../../lib/untrusted.ts';

const MAX_BODY = 32_768;

/** What an error of the API server, or of ours, is called in HTTP. */
export const STATUS: Readonly<Record<ErrorCode, number>> = {
  NotFound: 404,
  AlreadyExists: 409,
  Conflict: 409,
  Invalid: 422,
  Forbidden: 403,
  Unauthorized: 401,
  Expired: 410,
  TooManyRequests: 429,
  Unavailable: 503,
  Unreachable: 504,
  Aborted: 503,
};

/** JSON, small and flat. Throws Invalid. */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/u.test(request.headers['content-type'] ?? '')) {
    throw new TributaryError('Invalid', 'the body must be application/json');
  }
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_BODY) throw new TributaryError('Invalid', 'the body is too large');
    parts.push(part);
  }
  return parseUntrusted(Buffer.concat(parts).toString('utf8'), 'the body');
}

export function reply(response: ServerResponse, status: number, body: Buffer | string, type: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

export function replyJson(response: ServerResponse, status: number, body: object): void {
  response.setHeader('Cache-Control', 'no-store');
  reply(response, status, JSON.stringify(body), 'application/json; charset=utf-8');
}
