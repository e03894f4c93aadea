import type { Readable } from 'node:stream';
import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { isFields } from '../lib/fields.ts';
import { lines, readError } from './body.ts';
import type { WatchEvent } from './client.ts';
import { parseObjects } from './managed-fields.ts';
import { isObject, oneShape } from './objects.ts';
import { watchError } from './status-error.ts';

/**
 * The events in the body of a watch. Ends when the server ends the stream; throws on an ERROR event, on a line
 * that is no event (a gap in what we know is worse than a new list), and when the connection breaks.
 */
export async function* watchEvents<T extends KubeObject>(
  type: ResourceType<T>,
  body: Readable,
  what: string,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  try {
    for await (const line of lines(body as AsyncIterable<Buffer>)) {
      if (line.length > 0) yield parseEvent(type, line, what);
    }
  } catch (error) {
    throw readError(error);
  } finally {
    body.destroy();
  }
}

const objectOf = (event: unknown): unknown[] => (isFields(event) ? [event['object']] : []);

function parseEvent<T extends KubeObject>(type: ResourceType<T>, line: Buffer, what: string): WatchEvent<T> {
  let event: unknown;
  try {
    event = parseObjects(line.toString('utf8'), objectOf);
  } catch (error) {
    throw new TributaryError('Unavailable', `${what}: a line is not JSON: ${errorMessage(error)}`);
  }
  if (!isFields(event)) throw new TributaryError('Unavailable', `${what}: a line is not an event`);
  const { type: kind, object } = event;
  if (kind === 'ERROR') throw watchError(object, what);
  if (kind === 'BOOKMARK') {
    const version = isFields(object) && isFields(object['metadata']) && object['metadata']['resourceVersion'];
    if (typeof version === 'string') return { type: 'BOOKMARK', resourceVersion: version };
  } else if ((kind === 'ADDED' || kind === 'MODIFIED' || kind === 'DELETED') && isObject(object)) {
    return { type: kind, object: oneShape(type, object) };
  }
  throw new TributaryError('Unavailable', `${what}: a line is not an event we know`);
}
