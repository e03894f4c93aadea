import { Caches } from '../kube/caches.ts';
import { createClient } from '../kube/http-client.ts';
import type { Component } from '../lib/lifecycle.ts';
import { createHost } from '../network/host/host.ts';
import { OpsServer } from '../server/ops.ts';
import { homeCredentials } from './home.ts';
import { hostComponent, nodeComponents } from './network.ts';
import { type Agent, type AgentParts, controllerMetrics, createRegistry, lifecycleOf, run } from './parts.ts';
import { followSettings } from './settings.ts';

/** Role `node`: routes of one node to the active gateway and back. */
export async function startNode(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('node', parts);
  const host = await createHost({ clock, log: log.named('host') });
  const caches = new Caches({ client: home, clock, log });
  const metrics = controllerMetrics(registry);
  const network = nodeComponents({ parts, home, caches, host, metrics }, registry);
  const ops: Component = new OpsServer({
    port: config.opsPort,
    registry,
    live: [],
    ready: [{ name: 'started', check: () => lifecycle.starting && `starting: ${lifecycle.starting}` }],
    components: () => ({ order: lifecycle.order, starting: lifecycle.starting }),
    log: log.named('ops'),
  });
  const lifecycle = lifecycleOf([ops, followSettings(parts, caches), hostComponent(host), ...network], parts);
  return run(lifecycle, [home], signal);
}
