import { createClient } from '../kube/http-client.ts';
import { LeaderElection } from '../kube/leader-election.ts';
import type { Lifecycle } from '../lib/lifecycle.ts';
import { OpsServer } from '../server/ops.ts';
import { homeCredentials } from './home.ts';
import { lanComponents } from './lan.ts';
import type { Agent, AgentParts } from './parts.ts';
import { controllerMetrics, createRegistry, lifecycleOf, run } from './parts.ts';

const LEASE = 'tributary-gateway';
const LEADER_LEASE_MS = 15_000;

/** Role `gateway`: what needs the host network, by one leader; another replica takes over where that one's host fails. */
export async function startGateway(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('gateway');
  const lost = new AbortController();
  const election = new LeaderElection({
    client: home,
    clock,
    log,
    namespace: config.systemNamespace,
    name: LEASE,
    identity: config.identity,
    durationMs: LEADER_LEASE_MS,
    onLost: (reason) => lost.abort(new Error(`no longer the leader: ${reason}`)),
  });
  const holder: { lifecycle?: Lifecycle } = {};
  const ops = new OpsServer({
    port: config.opsPort,
    registry,
    live: [],
    // A replica that waits to lead is in order.
    ready: [],
    components: () => ({
      order: holder.lifecycle?.order ?? [],
      starting: holder.lifecycle?.starting,
    }),
    log: log.named('ops'),
  });
  holder.lifecycle = lifecycleOf(
    [ops, election, ...lanComponents(parts, home, controllerMetrics(registry))],
    parts,
  );
  return run(holder.lifecycle, [home], signal, lost.signal);
}
