/** What a code means, and whether trying again helps. */
interface CodeText {
  readonly means: string;
  readonly retry: string;
}

/**
 * Few errors, named by what the caller should do. Match on `code`, never on the text or the class: across realms and copies
 * of a module `instanceof` lies. docs/reference/errors.md is made from this.
 */
export const ERROR_CODES: Readonly<Record<ErrorCode, CodeText>> = {
  NotFound: { means: 'the object is not there', retry: 'no' },
  AlreadyExists: { means: 'the name is taken', retry: 'no' },
  Conflict: { means: 'somebody wrote first, or the UID precondition failed', retry: 'after a fresh read' },
  Invalid: { means: 'the request can never succeed as it is', retry: 'no' },
  Forbidden: { means: 'authorisation, admission or quota said no', retry: 'slowly' },
  Unauthorized: { means: 'the credential is wrong or has expired', retry: 'slowly' },
  Expired: { means: 'the resourceVersion is too old (HTTP 410)', retry: 'after a new list' },
  TooManyRequests: {
    means: 'the server asks for patience (HTTP 429)',
    retry: 'after the time that it names, a minute at most',
  },
  Unavailable: { means: 'the server answered 5xx', retry: 'at growing intervals' },
  Unreachable: { means: 'no answer: refused, reset, timed out, DNS, TLS', retry: 'at growing intervals' },
  Aborted: { means: 'this program itself gave up, mostly because it stops', retry: 'no' },
};

export type ErrorCode =
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Invalid'
  | 'Forbidden'
  | 'Unauthorized'
  | 'Expired'
  | 'TooManyRequests'
  | 'Unavailable'
  | 'Unreachable'
  | 'Aborted';

/** One of several things that a server named: a field, a budget. */
export interface ErrorCause {
  reason: string;
  message: string;
}

export interface ErrorDetails {
  cause?: unknown;
  /** HTTP status, where there was an answer. */
  status?: number;
  /** Kubernetes `Status.reason`, where there was one. */
  reason?: string;
  /** From Retry-After or `details.retryAfterSeconds`. */
  retryAfterMs?: number;
  /** From `details.causes`. */
  causes?: readonly ErrorCause[];
}

export class TributaryError extends Error {
  override readonly name = 'TributaryError';
  readonly code: ErrorCode;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly causes: readonly ErrorCause[] | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.reason = details.reason;
    this.retryAfterMs = details.retryAfterMs;
    this.causes = details.causes;
  }
}

/** The code of a caught value; undefined for what is not ours (a bug, then). */
export function errorCode(error: unknown): ErrorCode | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { name, code } = error as { name?: unknown; code?: unknown };
  if (name === 'TributaryError') return code as ErrorCode;
  if (name === 'AbortError') return 'Aborted';
  return undefined;
}

export const hasCode = (error: unknown, ...codes: ErrorCode[]): boolean => {
  const code = errorCode(error);
  return code !== undefined && codes.includes(code);
};

/** For `catch`: what has one of these codes counts as no result, anything else is thrown on. */
export const ignoring =
  (...codes: ErrorCode[]) =>
  (error: unknown): undefined => {
    if (!hasCode(error, ...codes)) throw error;
  };

/** For work that goes on after a failure: the first failure is thrown when everything else is done. */
export function throwFirst([first]: readonly unknown[]): void {
  if (first !== undefined) throw first as Error;
}

/** The text of a caught value with its chain of causes, on one line. */
export function errorMessage(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const { message, cause, errors } = error as { message?: unknown; cause?: unknown; errors?: unknown };
  // Where Node has tried several addresses, each of them has an error, and the error as a whole has no text.
  const parts =
    Array.isArray(errors) && errors.length > 0 ? errors.map(errorMessage).join(', ') : 'unknown error';
  const text = typeof message === 'string' && message !== '' ? message : parts;
  if (cause === undefined) return text;
  const why = errorMessage(cause);
  return text.includes(why) ? text : `${text}: ${why}`;
}
