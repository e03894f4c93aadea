import type { ServerResponse } from 'node:http';

/** Answers in plain text; browsers must not guess anything else from it. */
export function sendText(response: ServerResponse, status: number, text: string): void {
  send(response, status, 'text/plain; charset=utf-8', text);
}

export function sendJson(response: ServerResponse, value: object): void {
  send(response, 200, 'application/json', JSON.stringify(value));
}

export function send(response: ServerResponse, status: number, contentType: string, text: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, {
    'Content-Type': contentType,
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': Buffer.byteLength(text),
    ...(status === 429 ? { 'Retry-After': '1' } : {}),
  });
  response.end(text);
}
