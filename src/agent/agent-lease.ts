import { agentLeaseName, NODE_LEASES } from '../api/agent-lease.ts';
import { nodeNameOf } from '../api/node-labels.ts';
import { API_VERSION, type VirtualNode } from '../api/virtual-node.ts';
import type { KubeClient } from '../kube/client.ts';
import { ClientEventRecorder } from '../kube/events.ts';
import { LeaderElection } from '../kube/leader-election.ts';
import type { Component } from '../lib/lifecycle.ts';
import { hasEnded, nameIn, processIdentity } from '../lib/process-life.ts';
import type { AgentParts } from './parts.ts';

interface AgentLeaseOptions {
  parts: AgentParts;
  /** Not fenced. */
  home: KubeClient;
  /** As read at start. */
  virtualNode: VirtualNode;
  /** The UID of the VirtualNode as it is now: it may have been made anew. */
  ownerUid: () => string;
  /** Called when this agent may write again, after home took no renewal for a term. */
  onRegained: () => void;
  /** Called once, when another agent has taken over. */
  onLost: (reason: string) => void;
}

/** Longer than a home API server is away for its own restart. Two thirds of it is a term, as long as until home counts as away. */
const DEFAULT_SECONDS = 30;
/** Share of the Lease. A standby looks often: a Lease that was given up is to be taken soon. */
const LOOKS = 10;
/** Share of the Lease. It leaves two fifths of a term in which a renewal that failed is tried again. */
const RENEWAL = 0.4;

/**
 * One agent of a VirtualNode acts at a time: the one that holds this Lease. `start` resolves when it is ours. A home that is
 * away ends no agent: its writes wait until the Lease can be renewed (docs/decisions/0088-one-agent-acts.md).
 */
export class AgentLease implements Component {
  readonly name: string;
  readonly #election: LeaderElection;
  readonly #options: AgentLeaseOptions;
  readonly #events: ClientEventRecorder;

  constructor(options: AgentLeaseOptions) {
    const { parts, home, virtualNode, ownerUid, onRegained, onLost } = options;
    const { config, clock, log } = parts;
    const { leaseSeconds = DEFAULT_SECONDS } = config;
    const durationMs = leaseSeconds * 1000;
    const { apiVersion = API_VERSION, kind = 'VirtualNode', metadata } = virtualNode;
    this.#options = options;
    this.#events = new ClientEventRecorder({ client: home, clock, log, component: 'tributary' });
    this.#election = new LeaderElection({
      client: home,
      clock,
      log: log.named('agent-lease'),
      namespace: NODE_LEASES,
      name: agentLeaseName(nodeNameOf(virtualNode)),
      identity: processIdentity(config.identity),
      durationMs,
      retryMs: durationMs / LOOKS,
      renewMs: durationMs * RENEWAL,
      isOver: hasEnded,
      outlastsSilence: true,
      // It goes with the VirtualNode.
      ownerReferences: () => [{ apiVersion, kind, name: metadata.name, uid: ownerUid() }],
      onRegained,
      onTaken: (holder) => this.#tell(nameIn(holder)),
      onLost: (reason) => onLost(`${reason}: ${this.holder ?? 'nobody'}`),
    });
    this.name = this.#election.name;
  }

  /** Throws Aborted unless this agent is the one that acts. */
  check(): void {
    this.#election.check();
  }

  /** The agent that acts instead, as last seen. */
  get holder(): string | undefined {
    const { holder } = this.#election;
    return holder === undefined ? undefined : nameIn(holder);
  }

  /** When the agent before this one was last there, in milliseconds since 1970; undefined: there was none. */
  get predecessorAt(): number | undefined {
    return this.#election.predecessorAt;
  }

  async start(signal: AbortSignal): Promise<void> {
    await this.#election.start(signal);
  }

  /** Gives the Lease up. */
  async stop(): Promise<void> {
    await this.#election.stop();
    await this.#events.stop();
  }

  #tell(holder: string): void {
    const { parts, virtualNode } = this.#options;
    const { apiVersion = API_VERSION, kind = 'VirtualNode', metadata } = virtualNode;
    const message =
      `the agent ${parts.config.identity} does nothing while ${holder} acts for this virtual node ` +
      `(Lease ${NODE_LEASES}/${agentLeaseName(nodeNameOf(virtualNode))}); one of the two is to be ended`;
    parts.log.warn(message);
    this.#events.event({ apiVersion, kind, metadata }, 'Warning', 'AgentStandsBy', message);
  }
}
