import { createClient } from '../kube/http-client.ts';
import { LeaderElection } from '../kube/leader-election.ts';
import type { Lifecycle } from '../lib/lifecycle.ts';
import { OpsServer } from '../server/ops.ts';
import { AgentApprover } from './approver.ts';
import { homeCredentials } from './home.ts';
import type { Agent, AgentParts } from './parts.ts';
import { createRegistry, lifecycleOf, run } from './parts.ts';

const LEADER_LEASE_MS = 15_000;

/** Role `cluster`: what is done once for the home cluster, by one leader. */
export async function startCluster(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const { systemNamespace: namespace } = config;
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('cluster');
  const lost = new AbortController();
  const election = new LeaderElection({
    client: home,
    clock,
    log,
    namespace,
    name: 'tributary-cluster',
    identity: config.identity,
    durationMs: LEADER_LEASE_MS,
    onLost: (reason) => lost.abort(new Error(`no longer the leader: ${reason}`)),
  });
  const approver = new AgentApprover(parts, home);
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
  holder.lifecycle = lifecycleOf([ops, ...approver.caches(), election, ...approver.actors()], parts);
  return run(holder.lifecycle, [home], signal, lost.signal);
}
