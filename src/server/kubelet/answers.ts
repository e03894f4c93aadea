import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';

import { setDate } from '../http.ts';
import type { PodLocation } from './backend.ts';
import type { PodPath } from './pod-path.ts';

/** Answers in plain text; browsers must not guess anything else from it. */
export function sendText(response: ServerResponse, status: number, text: string | Buffer): void {
  send(response, status, 'text/plain; charset=utf-8', text);
}

export function sendJson(response: ServerResponse, value: object): void {
  send(response, 200, 'application/json', JSON.stringify(value));
}

export function send(
  response: ServerResponse,
  status: number,
  contentType: string,
  text: string | Buffer,
): void {
  if (response.destroyed || response.headersSent) return;
  setDate(response);
  response.writeHead(status, {
    'Content-Type': contentType,
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': Buffer.byteLength(text),
    ...(status === 429 ? { 'Retry-After': '1' } : {}),
  });
  response.end(text);
}

/** Fires when nobody waits for the answer any more. */
export function untilClosed(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  const onClose = (): void => closed.abort(new Error('the client has gone'));
  if (response.destroyed) onClose();
  response.once('close', onClose);
  return closed.signal;
}

/** Far more than any Status; what comes beyond is cut. */
const MAX_BODY_BYTES = 65_536;

/** A refusal by the foreign API server, in words that hold at home. */
interface RemoteRefusal {
  status: number;
  /** The message of a Status, or the text as it came. */
  text: string;
  /** The whole Status in home names, where there was one. */
  json?: string;
}

/** The start of a body, read until it ends, fails or is long enough. */
export async function readBody(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(Buffer.from(chunk));
      size += chunk.length;
      if (size >= MAX_BODY_BYTES) break;
    }
  } catch {
    // What arrived before the connection broke is still the best explanation.
  }
  return Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString('utf8');
}

const escape = (text: string): string => text.replaceAll(/[.\\+*?[^\]$(){}=!<>|:-]/g, String.raw`\$&`);

const replaceWord = (text: string, from: string, to: string): string =>
  from === to ? text : text.replaceAll(new RegExp(`(?<![\\w.-])${escape(from)}(?![\\w-]|\\.\\w)`, 'g'), to);

/** Puts the home names of a pod and its namespace where those over there stand. */
function inHomeWords(text: string, home: PodPath, location: PodLocation): string {
  const match = /\/namespaces\/([^/]+)\/pods\/([^/]+)$/.exec(location.path);
  const [, namespace, pod] = match ?? [];
  if (namespace === undefined || pod === undefined) return text;
  return replaceWord(replaceWord(text, pod, home.pod), namespace, home.namespace);
}

function statusMessage(body: string): string | undefined {
  try {
    const { kind, message } = JSON.parse(body) as { kind?: unknown; message?: unknown };
    return kind === 'Status' && typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

/** What the caller at home is told of an answer that is no success. */
export function remoteRefusal(
  answer: { status: number; body: string },
  home: PodPath,
  location: PodLocation,
): RemoteRefusal {
  if (answer.status === 401) {
    // The caller's own credentials are good; passed on, this would send them to log in again.
    return { status: 502, text: 'the foreign cluster does not accept the credentials of this node' };
  }
  // A redirect, or a success without what was asked for: the caller could do nothing with it.
  const status = answer.status >= 400 ? answer.status : 502;
  const body = inHomeWords(answer.body, home, location);
  const message = statusMessage(body);
  if (message === undefined) return { status, text: body };
  return { status, text: message, json: body };
}
