import type { Registry } from 'prom-client';

import { CLUSTER_LEASE } from '../api/manifest.ts';
import { PodLauncher } from '../deploy/launcher.ts';
import { SharedLauncher } from '../deploy/shared-launcher.ts';
import { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { Credentials } from '../kube/credentials.ts';
import { createClient } from '../kube/http-client.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Component, Lifecycle } from '../lib/lifecycle.ts';
import { networkExchangeMetrics } from '../network/metrics.ts';
import { ClusterIdentity } from '../peering/identity/store.ts';
import type { AgentLauncher } from '../peering/ports.ts';
import type { ReachAddress } from '../peering/reach/ports.ts';
import { Registries } from '../server/registries.ts';
import { AgentApprover } from '../certificates/serving-approver.ts';
import { homeCredentials } from './home.ts';
import { leading } from './leading.ts';
import { type Agent, type AgentParts, controllerMetrics, createRegistry, lifecycleOf, run } from './parts.ts';
import { Peering } from './peering.ts';
import { followSettings } from './settings.ts';

export const LOOPBACK = '127.0.0.1';

/** What the parts of one process share. */
export interface Shared {
  parts: AgentParts;
  home: KubeClient;
  /** The same, for what only the leader may write. */
  acting: KubeClient;
  /** The same as `acting`, of a client of another account. */
  act: (client: KubeClient) => KubeClient;
  credentials: Credentials;
  /** Of all parts, at that API server. */
  caches: Caches;
  registries: Registries;
  homeCa: string | undefined;
  /** Of the process itself. */
  registry: Registry;
  metrics: ControllerMetrics;
}

/** How the two roles that lead a cluster differ. */
export interface Flavour {
  role: 'cluster' | 'all';
  /** Whether API servers come by our Service. */
  inPod: boolean;
  /** Where agents reach API servers of providers; default: on all addresses of this process. */
  reachAt?: ReachAddress;
  launcher: (shared: Shared) => AgentLauncher & Partial<Component>;
  /** Further components, which start before peering. */
  more: (shared: Shared) => Component[];
  /** Fires when one of the further components cannot go on. */
  failed?: AbortSignal;
}

/** Role `cluster`: what is done once for the home cluster, by one leader. */
export async function startCluster(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  return startLeading(parts, { role: 'cluster', inPod: true, launcher: podLauncher, more: () => [] }, signal);
}

/** Of the two roles that lead a cluster. */
export async function startLeading(parts: AgentParts, flavour: Flavour, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const credentials = await homeCredentials(config, clock);
  const home = createClient(credentials, { clock });
  const registry = createRegistry(flavour.role, parts);
  const registries = new Registries(registry);
  const caches = new Caches({ client: home, clock, log });
  const metrics = controllerMetrics(registry);
  const { acting, act, ops, election, holder, lost } = leading(parts, {
    home,
    lease: CLUSTER_LEASE,
    registry: registries,
  });
  const shared: Shared = {
    parts,
    home,
    acting,
    act,
    credentials,
    homeCa: credentials.ca,
    caches,
    registries,
    registry,
    metrics,
  };
  const launcher = flavour.launcher(shared);
  const approver = approverOf(shared);
  const identity = new ClusterIdentity({
    client: acting,
    namespace: config.systemNamespace,
    clock,
    log: log.named('identity'),
  });
  holder.lifecycle = lifecycleOf(
    [
      ops,
      followSettings(parts, caches),
      ...approver.caches(),
      election,
      ...approver.actors(),
      identity,
      ...(isComponent(launcher) ? [launcher] : []),
      ...flavour.more(shared),
      peering({
        ...shared,
        home: acting,
        identity,
        launcher,
        inPod: flavour.inPod,
        reachAt: flavour.reachAt ?? { host: '::', advertised: config.nodeAddress ?? LOOPBACK },
        exchangeMetrics: networkExchangeMetrics(registry),
      }),
    ],
    parts,
  );
  const failed = flavour.failed === undefined ? lost : AbortSignal.any([lost, flavour.failed]);
  return run(holder.lifecycle, [home], signal, failed);
}

const approverOf = ({ parts: { config, clock, log }, acting, caches }: Shared): AgentApprover =>
  new AgentApprover({ client: acting, caches, clock, log, systemNamespace: config.systemNamespace });

/** Its parts are made when the identity of this cluster is known. */
function peering(options: ConstructorParameters<typeof Peering>[0]): Component {
  let lifecycle: Lifecycle | undefined;
  return {
    name: 'peering',
    start: async (signal) => {
      lifecycle = lifecycleOf(new Peering(options).components(), options.parts);
      await lifecycle.start(signal);
    },
    stop: async () => lifecycle?.stop(),
  };
}

const isComponent = (launcher: AgentLauncher & Partial<Component>): launcher is AgentLauncher & Component =>
  launcher.name !== undefined;

function podLauncher({ parts: { config, clock, log }, acting }: Shared): AgentLauncher {
  const { agentImage: image, agentPriorityClass: priorityClassName, logLevel } = config;
  const { clusterDns, clusterDomain, restoredKeepSeconds } = config;
  if (image === undefined) throw new TributaryError('Invalid', 'name the image of the agents: --agent-image');
  const Launcher = config.agents === 'shared' ? SharedLauncher : PodLauncher;
  return new Launcher({
    home: acting,
    image,
    ...(priorityClassName !== undefined && { priorityClassName }),
    dns: { nameservers: clusterDns, domain: clusterDomain },
    logLevel,
    restoredKeepSeconds,
    clock,
    log: log.named('launcher'),
  });
}
