import type { ErrorCode } from '../../lib/errors.ts';
import type { DocumentChanges, Hello } from '../protocol/documents.ts';
import { checkDocuments, checkHello } from '../protocol/forms.ts';
import { ownField } from '../../lib/fields.ts';
import { anyObject, integer, parseUntrusted, plainText, prose, text } from '../../lib/untrusted.ts';

/** Of one message, in bytes; larger ones end the connection while they arrive. */
export const MAX_MESSAGE_BYTES: number = 1024 * 1024;
/** Of what may be in the answer to a call. */
export const MAX_RESULT_LENGTH = 65_536;

/**
 * What goes over a link, one JSON object each. `hello` is the first of each side and may be repeated when something
 * in it has changed. A `state` is answered by an `ack`, which says what was wrong with it; a `call` by a `result` or an
 * `error`. An `error` may also answer a message that was not understood.
 */
export type Message =
  | { type: 'hello'; hello: Hello }
  | { type: 'state'; id: number; documents: DocumentChanges }
  | { type: 'ack'; id: number; problem?: string }
  | { type: 'call'; id: number; method: string; params: unknown }
  | { type: 'result'; id: number; result: unknown }
  | { type: 'error'; id?: number; code: ErrorCode; message: string };

/** As received: what can be wrong with a state is told in its ack. */
export type Received =
  | Exclude<Message, { type: 'state' }>
  | { type: 'state'; id: number; documents: DocumentChanges; problems: string[] }
  | { type: 'unknown'; id?: number; name: string };

const MAX_PROBLEM = 1_024;
const messageID = integer(1, Number.MAX_SAFE_INTEGER);

export function encode(message: Message): string {
  return JSON.stringify(message);
}

/** Throws Invalid for what is not a message; its sender is broken or hostile, and the link ends. */
export function decode(raw: string): Received {
  const given = anyObject(parseUntrusted(raw, 'message'), 'message');
  const field = (name: string): unknown => ownField(given, name);
  const type = text({ most: 32 })(field('type'), 'type');
  const id = (): number => messageID(field('id'), 'id');
  const optionalID = field('id') === undefined ? {} : { id: id() };
  switch (type) {
    case 'hello':
      return { type, hello: checkHello(field('hello'), 'hello') };
    case 'state':
      return stateOf(id(), field('documents'));
    case 'ack':
      return { type, id: id(), ...problemOf(field('problem')) };
    case 'call':
      return {
        type,
        id: id(),
        method: text({ most: 64 })(field('method'), 'method'),
        params: field('params') ?? {},
      };
    case 'result':
      return { type, id: id(), result: field('result') };
    case 'error':
      return {
        type,
        ...optionalID,
        code: codeOf(field('code')),
        message: prose(MAX_PROBLEM)(field('message') ?? '', 'message'),
      };
    default:
      return { type: 'unknown', ...optionalID, name: type };
  }
}

function stateOf(id: number, documents: unknown): Received {
  const { changes, problems } = checkDocuments(documents);
  return { type: 'state', id, documents: changes, problems };
}

const problemOf = (value: unknown): { problem?: string } =>
  value === undefined || value === null ? {} : { problem: prose(MAX_PROBLEM)(value, 'problem') };

/** For `ack` and `error`: one line, short enough. */
export const problemText = (message: string): string => plainText(message, MAX_PROBLEM);

/** What a peer may claim that an error is; anything else is taken for trouble at its end. */
const CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'NotFound',
  'AlreadyExists',
  'Conflict',
  'Invalid',
  'Forbidden',
  'TooManyRequests',
  'Unavailable',
  'Unreachable',
]);

const codeOf = (value: unknown): ErrorCode =>
  typeof value === 'string' && CODES.has(value) ? (value as ErrorCode) : 'Unavailable';
