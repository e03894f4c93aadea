import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { HomeApiServer } from '../../api/virtual-node.ts';
import type { Caches } from '../../kube/caches.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ControllerMetrics } from '../../kube/controller.ts';
import type { DrainLimits } from '../../kube/drain-stage.ts';
import type { EventRecorder, EventSubject } from '../../kube/events.ts';
import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { AgentLauncher, ApiReach, NamespaceOffloadings, OwnIdentity, PeerLinks } from '../ports.ts';

/** What people and policies here want of one provider. */
export interface BorrowingWish {
  wanted: boolean;
  /** Home namespaces that the ForeignCluster names; those of the policy come on top. */
  namespaces: readonly string[];
  /** The one that decides about this provider's offers. */
  policy?: AcceptancePolicy;
  /** The provider's one-time token. */
  joinToken?: string;
  /** Take it down without waiting for pods to end well. */
  force?: boolean;
  /** The ForeignCluster, for events that concern no Advertisement yet. */
  subject?: EventSubject;
}

export interface BorrowingWishes {
  wish(clusterID: string): BorrowingWish;
  /** Calls back with each ClusterID whose wish may have changed; the returned function ends that. */
  onChange(listener: (clusterID: string) => void): () => void;
}

export interface BorrowingOptions {
  client: KubeClient;
  caches: Caches;
  identity: OwnIdentity;
  /** Of this cluster, for people over there. */
  clusterName: string;
  wishes: BorrowingWishes;
  /** Namespaces that are wanted over there besides; default: none. */
  offloadings?: NamespaceOffloadings;
  /** Late bound: the registry of links needs us, too. */
  links: () => Pick<PeerLinks, 'view' | 'publish' | 'call' | 'onChange'>;
  reach: ApiReach;
  /** How the last stream to that provider was made, for people. */
  wayTo?: (clusterID: string) => 'Link' | 'DialBack' | undefined;
  launcher: AgentLauncher;
  /** Where the kubeconfig Secrets are. */
  systemNamespace: string;
  /** Where offloaded pods reach our API server, where they can. */
  homeApiServer?: HomeApiServer;
  /** `host:port`, or `host` where that is 443, of our own API server: no peer may send our agents there. */
  ownApiServers?: readonly string[];
  /** For development: a provider's API server on this machine's loopback may be dialled. Default false. */
  allowLoopback?: boolean;
  /** How long pods may take to leave when a peering ends. Default 300 000 as budgets allow, 30 000 to end then. */
  drain?: Partial<DrainLimits>;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  clock: Clock;
  random?: Random;
  log: Logger;
}
