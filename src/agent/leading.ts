/** What the roles share in which one replica leads. */
import type { KubeClient } from '../kube/client.ts';
import { LeaderElection, type LeaderElectionOptions } from '../kube/leader-election.ts';
import type { Lifecycle } from '../lib/lifecycle.ts';
import { OpsServer, type OpsServerOptions } from '../server/ops.ts';
import type { AgentParts } from './parts.ts';

const LEADER_LEASE_MS = 15_000;

interface LeadingOptions {
  home: KubeClient;
  lease: string;
  registry: OpsServerOptions['registry'];
  /** Where this role's election differs from the usual one. */
  election?: Partial<
    Pick<
      LeaderElectionOptions,
      'identity' | 'durationMs' | 'retryMs' | 'releaseOnStop' | 'outlastsSilence' | 'onTaken'
    >
  >;
  /** Whether a replica that waits to lead is Ready. False where a Service would send it work. */
  standbyReady?: boolean;
}

interface Leading {
  ops: OpsServer;
  election: LeaderElection;
  /** The caller puts the lifecycle here; `ops` reports on it. */
  holder: { lifecycle?: Lifecycle };
  /** Fires when another replica may lead; the process then ends. */
  lost: AbortSignal;
}

export function leading(
  { config, clock, log }: AgentParts,
  { home, lease, registry, election: special = {}, standbyReady = false }: LeadingOptions,
): Leading {
  const lost = new AbortController();
  const holder: Leading['holder'] = {};
  const election = new LeaderElection({
    client: home,
    clock,
    log,
    namespace: config.systemNamespace,
    name: lease,
    identity: config.identity,
    durationMs: LEADER_LEASE_MS,
    ...special,
    onLost: (reason) => lost.abort(new Error(`no longer the leader: ${reason}`)),
  });
  const ops = new OpsServer({
    port: config.opsPort,
    registry,
    live: [],
    ready: [],
    ...(standbyReady && { waiting: election.name }),
    components: () => ({ order: holder.lifecycle?.order ?? [], starting: holder.lifecycle?.starting }),
    log: log.named('ops'),
  });
  return { ops, election, holder, lost: lost.signal };
}
