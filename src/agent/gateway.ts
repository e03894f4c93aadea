import { createClient } from '../kube/http-client.ts';
import { homeCredentials } from './home.ts';
import { lanComponents } from './lan.ts';
import { leading } from './leading.ts';
import type { Agent, AgentParts } from './parts.ts';
import { controllerMetrics, createRegistry, lifecycleOf, run } from './parts.ts';

const LEASE = 'tributary-gateway';

/** Role `gateway`: what needs the host network, by one leader; another replica takes over where that one's host fails. */
export async function startGateway(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock } = parts;
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('gateway');
  const { ops, election, holder, lost } = leading(parts, { home, lease: LEASE, registry });
  holder.lifecycle = lifecycleOf(
    [ops, election, ...lanComponents(parts, home, controllerMetrics(registry))],
    parts,
  );
  return run(holder.lifecycle, [home], signal, lost);
}
