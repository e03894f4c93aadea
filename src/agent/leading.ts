/** What the roles share in which one replica leads. */
import type { KubeClient } from '../kube/client.ts';
import { fenced } from '../kube/fenced-client.ts';
import { LeaderElection, type LeaderElectionOptions } from '../kube/leader-election.ts';
import { loneTimes } from '../kube/lone-leader.ts';
import type { Lifecycle } from '../lib/lifecycle.ts';
import { OpsServer, type OpsServerOptions } from '../server/ops.ts';
import type { AgentParts } from './parts.ts';

const LEADER_LEASE_SECONDS = 15;
/**
 * Of a leader for whom nobody waits; shares of the usual duration. A term as long as that keeps what is promised of a process that
 * cannot reach its API server: it has ended its links by then (docs/failures.md).
 */
const LONE = { duration: 2, term: 1, renewal: 0.6 };

/** What roles decide differently. */
export type SpecialElection = Pick<
  LeaderElectionOptions,
  'identity' | 'durationMs' | 'retryMs' | 'lone' | 'releaseOnStop' | 'outlastsSilence' | 'onTaken'
>;

interface LeadingOptions {
  home: KubeClient;
  lease: string;
  registry: OpsServerOptions['registry'];
  /** Where this role's election differs from the usual one. */
  election?: Partial<SpecialElection>;
  /** Whether a replica that waits to lead is Ready. False where a Service would send it work. */
  standbyReady?: boolean;
}

interface Leading {
  /** `home`, whose writes fail unless this process leads now: one that was stopped does not know yet that another does. */
  acting: KubeClient;
  /** The same of another client. */
  act: (client: KubeClient) => KubeClient;
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
  const durationMs = (config.leaseSeconds ?? LEADER_LEASE_SECONDS) * 1000;
  const election = new LeaderElection({
    client: home,
    clock,
    log,
    namespace: config.systemNamespace,
    name: lease,
    identity: config.identity,
    durationMs,
    lone: loneTimes(durationMs, LONE),
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
  const act = (client: KubeClient): KubeClient => fenced(client, () => election.check());
  return { acting: act(home), act, ops, election, holder, lost: lost.signal };
}
