import express from 'express';
import type { Express, NextFunction, Request, Response } from 'express';

import { errorMessage } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { send, sendJson, sendText, untilClosed } from './answers.ts';
import type { KubeletAuth } from './auth.ts';
import type { KubeletBackend } from './backend.ts';
import type { ContainerLogs } from './logs.ts';
import { pathClass, type ServerMetrics } from './metrics.ts';
import { locatePod, splitTarget } from './pod-path.ts';
import { isStreamPath, METHOD_NOT_ALLOWED, parseStreamRequest } from './stream-request.ts';
import { streamWithoutBody } from './without-body.ts';

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
  app.enable('strict routing');
  app.set('query parser', false);
  app.use(counted(options.metrics));
  app.use(guard(options.auth));
  addHealth(app, options.backend);
  addReports(app, options);
  app.all('/containerLogs/:namespace/:pod/:container{/}', async (request, response) => {
    if (!permits(response, request.method, ['GET'])) return;
    const { namespace, pod, container } = request.params;
    await options.logs.serve({ namespace, pod, container }, queryOf(request), response);
  });
  app.use(streamsWithoutUpgrade(options.backend));
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

/**
 * Paths that the kubelet gives to go-restful may end with a slash and know their methods, and HEAD is none of them; those
 * that it gives to Go's ServeMux (health, metrics, configuration) are as they are and take any method.
 */
function permits(response: Response, method: string, methods: readonly string[]): boolean {
  if (methods.includes(method)) return true;
  response.setHeader('Allow', methods.join(', '));
  sendText(response, 405, METHOD_NOT_ALLOWED);
  return false;
}

function addHealth(app: Express, backend: KubeletBackend): void {
  app.all(['/healthz/ping', '/healthz/log'], (_request, response) => sendText(response, 200, 'ok'));
  app.all('/healthz/syncloop', (_request, response) => {
    const { ok, message } = backend.healthz();
    if (ok) sendText(response, 200, 'ok');
    else sendText(response, 500, `internal server error: ${message}\n`);
  });
  app.all('/healthz', (request, response) => {
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
  app.all('/pods{/}', ({ method }, response) => {
    if (permits(response, method, ['GET'])) sendJson(response, podList(backend.pods()));
  });
  app.all('/runningpods{/}', ({ method }, response) => {
    if (permits(response, method, ['GET'])) sendJson(response, podList(backend.runningPods()));
  });
  app.all('/stats/summary{/}', async ({ method }, response) => {
    if (permits(response, method, ['GET', 'POST'])) sendJson(response, await backend.statsSummary());
  });
  app.all('/configz', (_request, response) => sendJson(response, backend.configz()));
  app.all('/metrics/resource', async (_request, response) =>
    send(response, 200, EXPOSITION, await backend.metricsResource()),
  );
  // Scrape jobs for kubelets ask for these; there is no prober, no cAdvisor and no health check of components to tell of.
  app.all(['/metrics/probes', '/metrics/cadvisor', '/metrics/slis'], (_request, response) =>
    send(response, 200, EXPOSITION, ''),
  );
  app.all('/metrics', async (_request, response, next) => {
    const text = await backend.metrics?.();
    if (text === undefined) next();
    else send(response, 200, EXPOSITION, text);
  });
}

/** A streaming path without an upgrade: what is wrong with it, or else that it must be upgraded. */
const streamsWithoutUpgrade =
  (backend: KubeletBackend) =>
  async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    const target = splitTarget(request.url);
    if (target === undefined || !isStreamPath(target.path)) return next();
    const parsed = parseStreamRequest(target, request);
    if ('status' in parsed) {
      for (const [name, value] of parsed.headers ?? []) response.setHeader(name, value);
      return sendText(response, parsed.status, parsed.text);
    }
    const location = await locatePod(backend, parsed.home, {
      signal: untilClosed(response),
      withoutBody: () => streamWithoutBody(parsed),
    });
    if ('status' in location) return sendText(response, location.status, location.text);
    return sendText(response, 400, 'Upgrade request required');
  };

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
