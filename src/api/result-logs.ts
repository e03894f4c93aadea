import { fieldsIn } from '../lib/fields.ts';
import { BASE64 } from '../lib/untrusted.ts';

/** The ends of the logs of one pod by container, lines as the API server writes them with `timestamps=true`. */
export type ResultLogs = ReadonlyMap<string, Buffer>;

/** Of all containers of one pod together. As base64 it fits into the annotations of an object (256 KiB) many times. */
export const MOST_LOG_BYTES: number = 16 * 1024;
const MAX_TEXT = 4 * MOST_LOG_BYTES;

/** The value of ANNOTATION_RESULT_LOGS. Base64, because a log may hold any bytes, and JSON would make six of one. */
export const resultLogsText = (logs: ResultLogs): string =>
  JSON.stringify(Object.fromEntries(logs.entries().map(([name, log]) => [name, log.toString('base64')])));

/** Another cluster has written it: what cannot be read counts as not there. */
export function parseResultLogs(text: string): ResultLogs {
  return new Map(
    Object.entries(fieldsIn(text, MAX_TEXT)).flatMap(([name, value]): [string, Buffer][] =>
      typeof value === 'string' && (value === '' || BASE64.test(value))
        ? [[name, Buffer.from(value, 'base64')]]
        : [],
    ),
  );
}
