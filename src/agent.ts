/**
 * Builds everything: the one file where features, listeners and API servers meet. A role is a list of components in
 * the order in which they start; there is no `if (role)` anywhere else.
 */
import { readFile } from 'node:fs/promises';
import { Registry } from 'prom-client';
import { authoritiesFromFile, ClientAuthorities } from './agent/client-authorities.ts';
import { homeCredentials } from './agent/home.ts';
import { kubeletBackend } from './agent/kubelet-backend.ts';
import type { VirtualNode } from './api/virtual-node.ts';
import { virtualNodes } from './api/virtual-node.ts';
import type { AgentConfig } from './config.ts';
import type { KubeClient } from './kube/client.ts';
import { ClientEventRecorder } from './kube/events.ts';
import { createClient } from './kube/http-client.ts';
import type { Clock } from './lib/clock.ts';
import { errorMessage, hasCode, TributaryError } from './lib/errors.ts';
import type { Component } from './lib/lifecycle.ts';
import { Lifecycle } from './lib/lifecycle.ts';
import type { Logger } from './lib/log.ts';
import { Provider } from './provider/provider.ts';
import { apiServerReviews } from './server/kubelet/reviews.ts';
import { KubeletServer } from './server/kubelet/server.ts';
import { ServerMetrics } from './server/metrics.ts';
import { Variable } from './server/source.ts';
import { VERSION } from './version.ts';

export interface AgentParts {
  config: AgentConfig;
  clock: Clock;
  log: Logger;
}

/** Longest stop of all components together; below the pod's grace of 45 s. */
const STOP_DEADLINE_MS = 30_000;
const WAIT_FOR_OBJECT_MS = 2_000;

/** An agent that is running. */
export interface Agent {
  stop(): Promise<void>;
}

/** Role `peer`: the virtual node of one foreign cluster. */
export async function startPeer(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  if (config.virtualNode === undefined) {
    throw new TributaryError('Invalid', 'name the VirtualNode to serve: --virtual-node NAME');
  }
  if (config.nodeAddress === undefined) {
    throw new TributaryError(
      'Invalid',
      'say where the API server reaches this agent: --node-address or $POD_IP',
    );
  }
  const home = createClient(await homeCredentials(config, clock), { clock });
  const virtualNode = await waitForVirtualNode(home, config.virtualNode, parts, signal);
  const registry = new Registry();
  const events = new ClientEventRecorder({ client: home, clock, log, component: 'tributary' });
  const provider = new Provider({
    virtualNode,
    home,
    events,
    nodeAddress: config.nodeAddress,
    kubeletPort: config.kubeletPort,
    version: VERSION,
    clock,
    log,
  });
  const authorities = new ClientAuthorities({ home, clock, log });
  const certificate = new Variable({
    certificate: await readFile(config.tlsCertFile ?? '', 'utf8'),
    key: await readFile(config.tlsPrivateKeyFile ?? '', 'utf8'),
  });
  const kubelet = new KubeletServer({
    nodeName: provider.nodeName,
    port: config.kubeletPort,
    backend: kubeletBackend(provider, clock, {
      statsSummary: async () => Promise.resolve({}),
      metricsResource: async () => Promise.resolve(''),
      metrics: async () => registry.metrics(),
    }),
    reviews: apiServerReviews(home),
    servingCertificate: certificate,
    clientAuthorities:
      config.clientCaFile === undefined ? authorities.source : await authoritiesFromFile(config.clientCaFile),
    clock,
    log: log.named('kubelet'),
    metrics: new ServerMetrics(registry),
  });
  const ready: Component = {
    name: 'ready',
    start: async () => Promise.resolve(provider.setListening(true)),
    stop: async () => Promise.resolve(provider.setListening(false)),
  };
  const lifecycle = new Lifecycle(
    [events, ...provider.caches(), authorities, kubelet, ...provider.actors(), ready],
    { clock, log: log.named('lifecycle'), stopDeadlineMs: STOP_DEADLINE_MS },
  );
  return run(lifecycle, [home], signal);
}

async function run(lifecycle: Lifecycle, clients: KubeClient[], signal: AbortSignal): Promise<Agent> {
  const stop = async (): Promise<void> => {
    await lifecycle.stop();
    await Promise.all(clients.map(async (client) => client.close()));
  };
  try {
    await lifecycle.start(signal);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/** The VirtualNode may be made after its agent; until then there is nothing to do but to say so. */
async function waitForVirtualNode(
  home: KubeClient,
  name: string,
  { clock, log }: AgentParts,
  signal: AbortSignal,
): Promise<VirtualNode> {
  for (let said = ''; ;) {
    try {
      return await home.get(virtualNodes, { name }, { signal });
    } catch (error) {
      if (hasCode(error, 'Aborted')) throw error;
      const why = errorMessage(error);
      if (why !== said) log.warn('waiting for the VirtualNode', { virtualNode: name, error: why });
      said = why;
      await clock.sleep(WAIT_FOR_OBJECT_MS, signal);
    }
  }
}
