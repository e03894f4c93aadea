import type { Registry } from 'prom-client';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import { Controller } from '../kube/controller.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { ClientEventRecorder } from '../kube/events.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Gateway } from '../network/gateway/gateway.ts';
import { listCounters } from '../network/host/nftables/table.ts';
import { TABLES } from '../network/host/host-config.ts';
import { NodeNetwork } from '../network/node/node.ts';
import { Prober } from '../network/probe/prober.ts';
import { Responder } from '../network/probe/responder.ts';
import { systemSockets } from '../network/probe/sockets.ts';
import type { HostNetwork } from '../network/ports.ts';
import type { AgentConfig } from '../config.ts';
import { nodeNameOf } from './gateway-lead.ts';
import { lookUpByDns } from './look-up.ts';
import type { AgentParts } from './parts.ts';
import { refusedMetrics, tunnelMetrics } from './tunnel-metrics.ts';

export interface NetworkParts {
  parts: AgentParts;
  home: KubeClient;
  /** At that API server. */
  caches: Caches;
  host: HostNetwork;
  metrics: ControllerMetrics;
}

/** Names of interfaces have at most 15 characters. */
const vxlanLinkOf = ({ wireguardInterface }: AgentConfig): string => `${wireguardInterface.slice(0, 12)}-vx`;

/** The host network as the last to be closed. */
export const hostComponent = (host: HostNetwork): Component => ({
  name: 'host network',
  start: async () => Promise.resolve(),
  stop: async () => Promise.resolve(host.close()),
});

/** What a standby has at hand, and the active gateway for the holder of the Lease; each in the order of its start. */
export function gatewayComponents(
  given: NetworkParts,
  { registry, leading }: { registry: Registry; leading: () => boolean },
): { caches: Component[]; active: Component[] } {
  const { parts, home, caches, host, metrics } = given;
  const { config, clock, log } = parts;
  const nodeName = nodeNameOf(config);
  const sockets = systemSockets(clock);
  const showRefused = refusedMetrics(registry, 'gateway');
  const events = new ClientEventRecorder({
    client: home,
    clock,
    log,
    component: 'tributary',
    host: nodeName,
  });
  const prober = new Prober({
    clock,
    sockets,
    mtu: config.tunnelMtu,
    pathMtu: async (address) => host.pathMtu(address),
    intervalMs: config.probeSeconds * 1000,
  });
  const responder = new Responder({ clock, log: log.named('probes'), sockets });
  const gateway = new Gateway({
    client: home,
    caches,
    host,
    prober,
    responder,
    lookUp: async (name) => lookUpByDns(name),
    counters: async () => {
      const counters = await listCounters(TABLES.gateway);
      showRefused(counters);
      return counters;
    },
    clock,
    log: log.named('gateway'),
    events,
    metrics: tunnelMetrics(registry),
    controllerMetrics: metrics,
    namespace: config.systemNamespace,
    nodeName,
    ...(config.nodeAddress !== undefined && { nodeAddress: config.nodeAddress }),
    link: config.wireguardInterface,
    vxlanLink: vxlanLinkOf(config),
    mtu: config.tunnelMtu,
    port: config.wireguardPort,
    ...(config.tunnelEndpoints !== undefined && { endpoints: config.tunnelEndpoints }),
    probeSeconds: config.probeSeconds,
    leading,
  });
  return { caches: gateway.caches(), active: [events, responder, prober, ...gateway.components()] };
}

/** The network of one node, in the order of its start. */
export function nodeComponents(given: NetworkParts, registry: Registry): Component[] {
  const { parts, caches, host, metrics } = given;
  const { config, clock, log } = parts;
  const network = new NodeNetwork({
    caches,
    host,
    clock,
    log: log.named('node'),
    metrics,
    namespace: config.systemNamespace,
    nodeName: nodeNameOf(config),
    link: config.wireguardInterface,
    vxlanLink: vxlanLinkOf(config),
    mtu: config.tunnelMtu,
  });
  return [...network.components(), refusedCount(given, registry)];
}

/** Reading all rules is work. */
const COUNT_MS = 10_000;

function refusedCount({ parts: { clock, log }, metrics }: NetworkParts, registry: Registry): Component {
  const show = refusedMetrics(registry, 'node');
  const controller = new Controller({
    name: 'refused packets',
    concurrency: 1,
    clock,
    log,
    metrics,
    reconcile: async () => {
      show(await listCounters(TABLES.node));
      return { requeueAfterMs: COUNT_MS };
    },
  });
  controller.add('count');
  return controller;
}
