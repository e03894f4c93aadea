import express from 'express';
import type { Express, NextFunction, Request, Response } from 'express';

import { errorMessage } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { send, sendJson, sendText } from './answers.ts';
import type { KubeletAuth } from './auth.ts';
import type { KubeletBackend } from './backend.ts';
import type { ContainerLogs } from './logs.ts';
import { pathClass, type ServerMetrics } from './metrics.ts';
import { splitTarget } from './pod-path.ts';
import { isStreamMethod, isStreamPath, parseStreamRequest } from './stream-request.ts';

interface RoutesOptions {
  backend: KubeletBackend;
  auth: KubeletAuth;
  logs: ContainerLogs;
  log: Logger;
  metrics: ServerMetrics;
}

/** What Prometheus has asked for since 2014. */
const EXPOSITION = 'text/plain; version=0.0.4; charset=utf-8';

/** Everything but the upgraded connections. No request gets past the first step without permission. */
export function kubeletRoutes(options: RoutesOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // Routing and permissions must see one and the same path: no folding of case, no decoding.
  app.enable('case sensitive routing');
  app.set('query parser', false);
  app.use(counted(options.metrics));
  app.use(guard(options.auth));
  addHealth(app, options.backend);
  addReports(app, options);
  app.get('/containerLogs/:namespace/:pod/:container', async (request, response) => {
    const { namespace, pod, container } = request.params;
    await options.logs.serve({ namespace, pod, container }, queryOf(request), response);
  });
  app.use(streamsWithoutUpgrade);
  app.use((_request, response) => sendText(response, 404, '404 page not found'));
  app.use(failure(options.log));
  return app;
}

const queryOf = (request: Request): URLSearchParams =>
  splitTarget(request.url)?.query ?? new URLSearchParams();

const counted =
  (metrics: ServerMetrics) =>
  (request: Request, response: Response, next: NextFunction): void => {
    const path = pathClass(splitTarget(request.url)?.path ?? '');
    response.once('close', () => metrics.answered(path, request.method, response.statusCode));
    next();
  };

const guard =
  (auth: KubeletAuth) =>
  async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    const split = splitTarget(request.url);
    const refusal =
      split === undefined ? { status: 400, text: 'invalid path' } : await auth.refusal(request, split.path);
    if (refusal === undefined) next();
    else sendText(response, refusal.status, refusal.text);
  };

function addHealth(app: Express, backend: KubeletBackend): void {
  app.get(['/healthz/ping', '/healthz/log'], (_request, response) => sendText(response, 200, 'ok'));
  app.get('/healthz/syncloop', (_request, response) => {
    const { ok, message } = backend.healthz();
    if (ok) sendText(response, 200, 'ok');
    else sendText(response, 500, `internal server error: ${message}\n`);
  });
  app.get('/healthz', (request, response) => {
    const { ok } = backend.healthz();
    // As in the kubelet the reason is for those who may ask for the check itself.
    const lines = ['[+]ping ok', '[+]log ok', ok ? '[+]syncloop ok' : '[-]syncloop failed: reason withheld'];
    const list = lines.join('\n');
    if (!ok) sendText(response, 500, `${list}\nhealthz check failed\n`);
    else sendText(response, 200, queryOf(request).has('verbose') ? `${list}\nhealthz check passed\n` : 'ok');
  });
}

function addReports(app: Express, { backend }: RoutesOptions): void {
  const podList = (items: object[]): object => ({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items });
  app.get('/pods', (_request, response) => sendJson(response, podList(backend.pods())));
  app.get('/runningpods', (_request, response) => sendJson(response, podList(backend.runningPods())));
  app.get('/configz', (_request, response) => sendJson(response, backend.configz()));
  app.get(['/stats', '/stats/summary'], async (_request, response) =>
    sendJson(response, await backend.statsSummary()),
  );
  app.get('/metrics/resource', async (_request, response) =>
    send(response, 200, EXPOSITION, await backend.metricsResource()),
  );
  // Scrape jobs for kubelets ask for these; there is no prober, no cAdvisor and no health check of components to tell of.
  app.get(['/metrics/probes', '/metrics/cadvisor', '/metrics/slis'], (_request, response) =>
    send(response, 200, EXPOSITION, ''),
  );
  app.get('/metrics', async (_request, response, next) => {
    const text = await backend.metrics?.();
    if (text === undefined) next();
    else send(response, 200, EXPOSITION, text);
  });
}

/** A streaming path without an upgrade: what is wrong with it, or else that it must be upgraded. */
function streamsWithoutUpgrade(request: Request, response: Response, next: NextFunction): void {
  const target = splitTarget(request.url);
  if (target === undefined || !isStreamPath(target.path)) return next();
  if (!isStreamMethod(request.method)) return sendText(response, 405, 'Method Not Allowed');
  const parsed = parseStreamRequest(target, request.headers);
  if ('status' in parsed) return sendText(response, parsed.status, parsed.text);
  return sendText(response, 400, 'Upgrade request required');
}

/** Express finds an error handler by its four parameters. */
const failure =
  (log: Logger) =>
  (error: unknown, request: Request, response: Response, _next: NextFunction): void => {
    const { status } = (error ?? {}) as { status?: unknown };
    // Express itself throws these for paths that cannot be decoded.
    if (status === 400) return sendText(response, 400, 'invalid path');
    log.warn('kubelet request failed', {
      path: pathClass(splitTarget(request.url)?.path ?? ''),
      error: errorMessage(error),
    });
    sendText(response, 500, `internal server error: ${errorMessage(error)}`);
  };
