import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { errorMessage } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { RawResponse } from '../../kube/client.ts';
import type { ServerMetrics } from './metrics.ts';
import type { KubeletBackend, PodLocation } from './backend.ts';
import { locatePod } from './locate.ts';
import { parseLogQuery } from './log-options.ts';
import { invalidName } from './names.ts';
import type { PodPath } from './names.ts';
import { readBody, remoteRefusal } from './status-text.ts';
import { StreamGate } from './stream-gate.ts';
import { sendText } from './text.ts';

export interface LogsOptions {
  backend: KubeletBackend;
  log: Logger;
  metrics: ServerMetrics;
  /** Reads that are open at a time, followed ones and others. */
  maxReads: number;
}

/** /containerLogs: the log of the remote container, chunk by chunk as it comes. */
export class ContainerLogs {
  readonly #options: LogsOptions;
  readonly #gate: StreamGate;

  constructor(options: LogsOptions) {
    this.#options = options;
    this.#gate = new StreamGate(options.maxReads);
  }

  async serve(home: PodPath, given: URLSearchParams, response: ServerResponse): Promise<void> {
    const invalid = invalidName(home);
    if (invalid !== undefined) return sendText(response, 400, invalid);
    const parsed = parseLogQuery(given);
    if ('status' in parsed) return sendText(response, parsed.status, parsed.text);
    const location = locatePod(this.#options.backend, home);
    if ('status' in location) return sendText(response, location.status, location.text);
    const leave = this.#gate.enter();
    if (leave === undefined) return sendText(response, 429, 'too many logs are being read on this node');
    this.#options.metrics.openStreams('log', this.#gate.open);
    parsed.query.set('container', home.container ?? '');
    try {
      await this.#copy(home, location, parsed.query, response);
    } finally {
      leave();
      this.#options.metrics.openStreams('log', this.#gate.open);
    }
  }

  async #copy(
    home: PodPath,
    location: PodLocation,
    query: URLSearchParams,
    response: ServerResponse,
  ): Promise<void> {
    const { backend, log } = this.#options;
    const abort = new AbortController();
    const onClose = (): void => abort.abort(new Error('the client has gone'));
    response.once('close', onClose);
    try {
      const path = `${location.path}/log?${query.toString()}`;
      const remote = await backend.raw({ method: 'GET', path, signal: abort.signal });
      remote.body.on('error', () => undefined);
      abort.signal.addEventListener('abort', () => remote.body.destroy(), { once: true });
      if (abort.signal.aborted) remote.body.destroy();
      else if (remote.status === 200) await forward(remote, response);
      else await this.#refused(home, location, remote, response);
    } catch (error) {
      if (abort.signal.aborted) return;
      log.warn('cannot read a log', { pod: `${home.namespace}/${home.pod}`, error: errorMessage(error) });
      // Cut short rather than ended: the reader must not take half a log for the whole.
      if (response.headersSent) response.destroy();
      else sendText(response, 502, `error reading the log in the foreign cluster: ${errorMessage(error)}`);
    } finally {
      response.off('close', onClose);
    }
  }

  async #refused(
    home: PodPath,
    location: PodLocation,
    remote: RawResponse,
    response: ServerResponse,
  ): Promise<void> {
    const body = await readBody(remote.body);
    const { status, text } = remoteRefusal({ status: remote.status, body }, home, location);
    sendText(response, status, text);
  }
}

async function forward(remote: RawResponse, response: ServerResponse): Promise<void> {
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  });
  // At once: a followed log may say nothing for hours, and the reader should know that it is being followed.
  response.flushHeaders();
  await pipeline(remote.body, response);
}
