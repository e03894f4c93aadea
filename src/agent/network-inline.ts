import { GATEWAY_LEASE } from '../api/own-network.ts';
import type { Registry } from 'prom-client';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { LeaderElection } from '../kube/leader-election.ts';
import type { Component } from '../lib/lifecycle.ts';
import { createHost } from '../network/host/host.ts';
import { gatewayElection, StandbyFence } from './gateway-lead.ts';
import { gatewayComponents, hostComponent, nodeComponents } from './gateway-network.ts';
import type { AgentParts } from './parts.ts';

export interface InlineNetwork {
  components(shared: {
    home: KubeClient;
    caches: Caches;
    metrics: ControllerMetrics;
    registry: Registry;
  }): Component[];
  /** Fires when another gateway may be active; the process then ends. */
  lost: AbortSignal;
}

/** Gateway and node in one process, for role `all`. */
export async function inlineNetwork(parts: AgentParts): Promise<InlineNetwork> {
  const { config, clock, log } = parts;
  const host = await createHost({ clock, log: log.named('host') });
  const lost = new AbortController();
  return {
    lost: lost.signal,
    components({ home, caches: shared, metrics, registry }) {
      const fence = new StandbyFence({ host, clock, log: log.named('fence') });
      const election = new LeaderElection({
        client: home,
        clock,
        log,
        namespace: config.systemNamespace,
        name: GATEWAY_LEASE,
        ...gatewayElection(config, (node) => fence.taken(node)),
        onLost: (reason) => lost.abort(new Error(`no longer the active gateway: ${reason}`)),
      });
      const given = { parts, home, caches: shared, host, metrics };
      const { caches, active } = gatewayComponents(given, { registry, leading: () => election.leading });
      return [hostComponent(host), ...nodeComponents(given, registry), ...caches, election, fence, ...active];
    },
  };
}
