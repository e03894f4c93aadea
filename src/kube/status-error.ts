import { type ErrorCause, type ErrorCode, type ErrorDetails, TributaryError } from '../lib/errors.ts';
import { plainText, shownText } from '../lib/untrusted.ts';

/** The `metav1.Status` of a failed request, as far as we read it. */
interface Status {
  message?: unknown;
  reason?: unknown;
  code?: unknown;
  details?: { retryAfterSeconds?: unknown; causes?: unknown } | null;
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  401: 'Unauthorized',
  402: 'Forbidden',
  403: 'Forbidden',
  404: 'NotFound',
  408: 'Unavailable',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
};

/** An API server sends no longer text, unless it is hostile. */
const MAX_MESSAGE = 2000;
const MAX_CAUSES = 8;
const MAX_CAUSE = 500;
/** No longer does anybody wait because an answer asks for it: a proxy may say a day, and its server be back in seconds. */
const MAX_RETRY_AFTER_MS = 60_000;

/** The error for an answer with this status; `body` is a Status, or anything that a proxy put there. */
export function statusError(
  status: number,
  body: unknown,
  { what, retryAfter }: { what: string; retryAfter?: string | undefined },
): TributaryError {
  const { message, reason, details } = asStatus(body);
  const info: ErrorDetails = { status };
  if (typeof reason === 'string') info.reason = plainText(reason, 100);
  const seconds = retryAfter !== undefined ? Number(retryAfter) : details?.retryAfterSeconds;
  if (typeof seconds === 'number' && seconds >= 0)
    info.retryAfterMs = Math.min(seconds * 1000, MAX_RETRY_AFTER_MS);
  const causes = causesOf(details?.causes);
  if (causes.length > 0) info.causes = causes;
  const text = typeof message === 'string' && message !== '' ? message : `HTTP ${status}`;
  return new TributaryError(codeOf(status, reason), `${what}: ${shownText(text, MAX_MESSAGE)}`, info);
}

/** The error for an ERROR event of a watch, whose object is a Status. */
export function watchError(object: unknown, what: string): TributaryError {
  const { code } = asStatus(object);
  return statusError(typeof code === 'number' ? code : 500, object, { what });
}

/** The body of a failed request, parsed where it is JSON and taken as the message where it is text. */
export function parseStatus(body: Buffer): unknown {
  const text = body.toString('utf8');
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return { message: text.replaceAll(/\s+/g, ' ').trim().slice(0, 300) };
  }
}

function causesOf(causes: unknown): ErrorCause[] {
  if (!Array.isArray(causes)) return [];
  return causes.slice(0, MAX_CAUSES).map((cause: { reason?: unknown; message?: unknown } | null) => ({
    reason: textOf(cause?.reason),
    message: textOf(cause?.message),
  }));
}

const textOf = (value: unknown): string => (typeof value === 'string' ? shownText(value, MAX_CAUSE) : '');

function asStatus(body: unknown): Status {
  return typeof body === 'object' && body !== null ? body : {};
}

function codeOf(status: number, reason: unknown): ErrorCode {
  if (status === 409 && reason === 'AlreadyExists') return 'AlreadyExists';
  const code = CODES[status] ?? (status >= 500 || status < 400 ? 'Unavailable' : 'Invalid');
  // What an API server means for good it says with a reason. A bare 404 or 400 comes from something on the way, and
  // must not be taken for the end of an object.
  const isFinal = code === 'NotFound' || code === 'Invalid';
  return isFinal && typeof reason !== 'string' ? 'Unavailable' : code;
}
