import type { ClusterApi } from '../../../support/e2e/api.ts';
import { NODE } from '../../../support/e2e/pods.ts';

/** Streams that have come as far as the agent: WebSockets are GETs there, SPDY is POST. */
export interface StreamCounts {
  readonly webSocket: number;
  readonly spdy: number;
  /** Streams that the API server passed on unchanged (KEP-4006), and those that it had to translate. */
  readonly handedThrough: number;
  readonly translated: number;
}

/** Streams so far, of one path of the kubelet API. */
export async function streamCounts(
  home: ClusterApi,
  path: 'exec' | 'attach' | 'portForward',
): Promise<StreamCounts> {
  const [agent, server] = await Promise.all(
    [`/api/v1/nodes/${NODE}/proxy/metrics`, '/metrics'].map(async (from) => home.text(from)),
  );
  const requests = (method: string): number =>
    sum(agent ?? '', 'tributary_kubelet_requests_total', [
      `path="${path}"`,
      `method="${method}"`,
      'code="101"',
    ]);
  const streams = (type: string): number =>
    sum(server ?? '', 'apiserver_websocket_streaming_requests_total', [
      `subresource="${path.toLowerCase()}"`,
      `proxy_type="${type}"`,
    ]);
  return {
    webSocket: requests('GET'),
    spdy: requests('POST'),
    handedThrough: streams('proxied_to_kubelet'),
    translated: streams('translated_at_apiserver'),
  };
}

/** The streams that `action` has added. */
export async function streamsOf(
  home: ClusterApi,
  path: 'exec' | 'attach' | 'portForward',
  action: () => Promise<void>,
): Promise<StreamCounts> {
  const before = await streamCounts(home, path);
  await action();
  const after = await streamCounts(home, path);
  return {
    webSocket: after.webSocket - before.webSocket,
    spdy: after.spdy - before.spdy,
    handedThrough: after.handedThrough - before.handedThrough,
    translated: after.translated - before.translated,
  };
}

/** Sum over the series of a metric that have all the labels. */
const sum = (exposition: string, metric: string, labels: readonly string[]): number =>
  exposition
    .split('\n')
    .filter((line) => line.startsWith(`${metric}{`) && labels.every((label) => line.includes(label)))
    .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
