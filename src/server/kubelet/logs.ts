import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';

import type { RawResponse } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { readBody, remoteRefusal, sendText, untilClosed } from './answers.ts';
import type { KeptLog, KubeletBackend, PodLocation } from './backend.ts';
import { selectedLog } from './kept-log.ts';
import type { ServerMetrics } from './metrics.ts';
import { invalidName, locatePod, type PodPath } from './pod-path.ts';
import { logWithoutBody } from './without-body.ts';
import { StreamGate } from '../splice.ts';

/**
 * Query parameters of /containerLogs, decoded and checked as the kubelet does (PodLogOptions of v1) and written
 * out again for the foreign API server. The list is closed: nothing else is passed on.
 */
type LogQuery = { query: URLSearchParams } | { status: 400 | 422; text: string };

const undecodable: LogQuery = { status: 400, text: '{"message": "Unable to decode query."}' };
const invalid: LogQuery = { status: 422, text: '{"message": "Invalid request."}' };

const INT64_MAX = 2n ** 63n - 1n;
const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** As apimachinery converts a query value to bool: whatever is not a way to say no means yes. */
const isTrue = (value: string): boolean => value !== '0' && value.toLowerCase() !== 'false';

/** Undefined when it is no 64-bit integer. */
function parseInteger(value: string): bigint | undefined {
  if (!/^[+-]?\d{1,19}$/.test(value)) return undefined;
  const number = BigInt(value.replace('+', ''));
  return number > INT64_MAX || number < -INT64_MAX - 1n ? undefined : number;
}

/** Undefined when it is no time; empty, as for apimachinery, is the beginning of all times, and so the whole log. */
function parseTime(value: string): string | undefined {
  if (value === '' || value === 'null') return '';
  return RFC3339.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

const FLAGS = ['follow', 'previous', 'timestamps'] as const;
/** Smallest permitted value each. */
const INTEGERS = { sinceSeconds: 1n, tailLines: 0n, limitBytes: 1n } as const;
const STREAMS: ReadonlySet<string> = new Set(['All', 'Stdout', 'Stderr']);

/** `tail` is what clients before v1 said; `all` is the same as nothing. */
function withLegacyTail(query: URLSearchParams): URLSearchParams {
  const tail = query.get('tail');
  if (tail === null || tail === '') return query;
  const copy = new URLSearchParams(query);
  if (tail === 'all') copy.delete('tailLines');
  else copy.set('tailLines', tail);
  return copy;
}

export function parseLogQuery(received: URLSearchParams): LogQuery {
  const given = withLegacyTail(received);
  const query = new URLSearchParams();
  let outOfRange = false;
  for (const flag of FLAGS) {
    const value = given.get(flag);
    if (value !== null && isTrue(value)) query.set(flag, 'true');
  }
  for (const [name, minimum] of Object.entries(INTEGERS)) {
    const value = given.get(name);
    if (value === null) continue;
    const number = parseInteger(value);
    if (number === undefined) return undecodable;
    outOfRange ||= number < minimum;
    query.set(name, String(number));
  }
  const sinceTime = given.get('sinceTime');
  const since = sinceTime === null ? '' : parseTime(sinceTime);
  if (since === undefined) return undecodable;
  if (since !== '') query.set('sinceTime', since);
  if (outOfRange || (sinceTime !== null && query.has('sinceSeconds'))) return invalid;
  return withStream(query, given.get('stream'));
}

/**
 * KEP-3288. `All` is what a server does unasked, and one without the feature refuses the parameter, so it is
 * left out.
 */
function withStream(query: URLSearchParams, stream: string | null): LogQuery {
  if (stream === null || stream === 'All') return { query };
  if (!STREAMS.has(stream) || query.has('tailLines')) return invalid;
  query.set('stream', stream);
  return { query };
}

interface LogsOptions {
  backend: KubeletBackend;
  clock: Clock;
  log: Logger;
  metrics: ServerMetrics;
  /** Reads that are open at a time, followed ones and others. */
  maxReads: number;
}

interface LogRead {
  home: PodPath;
  /** As it is passed on. */
  query: URLSearchParams;
  /** Fires when nobody reads any more. */
  signal: AbortSignal;
}

/** /containerLogs: the log of the remote container, chunk by chunk as it comes. */
export class ContainerLogs {
  readonly #options: LogsOptions;
  readonly #gate: StreamGate;

  constructor(options: LogsOptions) {
    this.#options = options;
    this.#gate = new StreamGate(options.maxReads, (open) => options.metrics.openStreams('log', open));
  }

  async serve(home: PodPath, given: URLSearchParams, response: ServerResponse): Promise<void> {
    const invalid = invalidName(home);
    if (invalid !== undefined) return sendText(response, 400, invalid);
    const parsed = parseLogQuery(given);
    if ('status' in parsed) return sendText(response, parsed.status, parsed.text);
    const leave = this.#gate.enter();
    if (leave === undefined) return sendText(response, 429, 'too many logs are being read on this node');
    try {
      await this.#answer({ home, query: parsed.query, signal: untilClosed(response) }, response);
    } finally {
      leave();
    }
  }

  async #answer(read: LogRead, response: ServerResponse): Promise<void> {
    const { home, query, signal } = read;
    const location = await locatePod(this.#options.backend, home, {
      signal,
      withoutBody: (pod) => logWithoutBody(pod, home.container, query.has('previous')),
    });
    if ('status' in location) return sendText(response, location.status, location.text);
    if (location.keptLog !== undefined) return this.#sendKept(home, location.keptLog, query, response);
    query.set('container', home.container ?? '');
    await this.#copy(read, location, response);
  }

  #sendKept(home: PodPath, kept: KeptLog, query: URLSearchParams, response: ServerResponse): void {
    if ('gone' in kept) return sendText(response, 404, kept.gone);
    if (query.has('previous')) {
      const what = `previous terminated container ${JSON.stringify(home.container)} in pod ${JSON.stringify(home.pod)}`;
      return sendText(response, 400, `${what} not found`);
    }
    const stream = query.get('stream');
    if (stream !== null) {
      return sendText(
        response,
        400,
        noStream(stream, 'of this pod the end of the log is kept, both streams together'),
      );
    }
    sendText(response, 200, selectedLog(kept.bytes, query, this.#options.clock.now()));
  }

  async #copy(
    { home, query, signal }: LogRead,
    location: PodLocation,
    response: ServerResponse,
  ): Promise<void> {
    const { backend, log } = this.#options;
    try {
      const path = `${location.path}/log?${query.toString()}`;
      const remote = await backend.raw({ method: 'GET', path, signal });
      remote.body.on('error', () => undefined);
      signal.addEventListener('abort', () => remote.body.destroy(), { once: true });
      if (signal.aborted) remote.body.destroy();
      else if (remote.status === 200) await forward(remote, response);
      else await this.#refused(home, { location, remote, stream: query.get('stream') }, response);
    } catch (error) {
      if (signal.aborted) return;
      log.warn('cannot read a log', { pod: `${home.namespace}/${home.pod}`, error: errorMessage(error) });
      // Cut the connection instead of ending it: the reader must not take half a log for the whole.
      if (response.headersSent) response.destroy();
      else sendText(response, 502, `error reading the log in the foreign cluster: ${errorMessage(error)}`);
    }
  }

  async #refused(
    home: PodPath,
    { location, remote, stream }: { location: PodLocation; remote: RawResponse; stream: string | null },
    response: ServerResponse,
  ): Promise<void> {
    const body = await readBody(remote.body);
    const { status, text } = remoteRefusal({ status: remote.status, body }, home, location);
    // The other parameters are known to be good; a kubelet without the feature says the same.
    if (status === 422 && stream !== null) {
      return sendText(
        response,
        400,
        noStream(stream, 'the foreign cluster has not enabled PodLogsQuerySplitStreams'),
      );
    }
    sendText(response, status, text);
  }
}

const noStream = (stream: string, why: string): string =>
  `unable to return the given log stream: ${JSON.stringify(stream)}: ${why}`;

async function forward(remote: RawResponse, response: ServerResponse): Promise<void> {
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  });
  // At once: a followed log may say nothing for hours, and the reader should know that it is being followed.
  response.flushHeaders();
  await pipeline(remote.body, response);
}
