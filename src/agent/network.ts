/** The network's parts on hosts, put together: gateway and node over one host. */
import type { Registry } from 'prom-client';

import { GATEWAY_LEASE } from '../api/own-network.ts';
import type { AgentConfig } from '../config.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { ClientEventRecorder } from '../kube/events.ts';
import { LeaderElection } from '../kube/leader-election.ts';
import { loneTimes } from '../kube/lone-leader.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Gateway } from '../network/gateway/gateway.ts';
import { lookUpByDns, nameServersOfHost } from '../network/gateway/resolver.ts';
import { StandbyFence } from '../network/gateway/standby-fence.ts';
import { type HostNetwork, type Owner, TABLES } from '../network/host/host-config.ts';
import { createHost } from '../network/host/host.ts';
import { sentPackets } from '../network/host/link-packets.ts';
import { listCounters } from '../network/host/nftables/table.ts';
import { refusedMetrics, silentNodesMetric, tunnelMetrics, tunnelRefusedMetric } from '../network/metrics.ts';
import { NodeNetwork } from '../network/node/node.ts';
import { TableCounters } from '../network/table-counters.ts';
import { knock } from '../network/probe/probe-client.ts';
import { Prober } from '../network/probe/prober.ts';
import { Responder } from '../network/probe/responder.ts';
import { countingSockets, type ProbeSockets, systemSockets } from '../network/probe/sockets.ts';
import { Traffic } from '../network/probe/traffic.ts';
import type { SpecialElection } from './leading.ts';
import type { AgentParts } from './parts.ts';

/**
 * The share of `leaseSeconds`, the time within which another gateway has to take over, for which the Lease is valid. The
 * rest is for what comes before and after: up to an eighth of it until a renewal is seen, as much until the end of the
 * Lease is noticed, and the set-up of the host.
 */
const LEASE_SHARE = 0.65;

const GATEWAY_LEASE_SECONDS = 15;
/** While no other gateway waits; shares of the usual duration. Within ten seconds a renewal shows that etcd was restored. */
const LONE = { duration: 3, term: 2, renewal: 1 };

/**
 * Who is the active gateway: see docs/decisions/0023-gateway-failover.md. The identity is the node: a gateway that starts
 * again there goes on leading, and other roles know where it is.
 */
export function gatewayElection(config: AgentConfig, onTaken: (holder: string) => void): SpecialElection {
  const { leaseSeconds = GATEWAY_LEASE_SECONDS } = config;
  const durationMs = leaseSeconds * 1000 * LEASE_SHARE;
  return {
    identity: nodeNameOf(config),
    durationMs,
    retryMs: durationMs / 8,
    lone: loneTimes(durationMs, LONE),
    releaseOnStop: false,
    // The kernel goes on forwarding; ending this program would only mean that nobody watches it.
    outlastsSilence: true,
    onTaken,
  };
}

function nodeNameOf({ nodeName }: AgentConfig): string {
  if (nodeName !== undefined) return nodeName;
  throw new TributaryError('Invalid', 'say on which node this runs: --node-name or $NODE_NAME');
}

interface NetworkParts {
  parts: AgentParts;
  home: KubeClient;
  /** At that API server. */
  caches: Caches;
  host: HostNetwork;
  metrics: ControllerMetrics;
}

/** Names of interfaces have at most 15 characters. */
const vxlanLinkOf = ({ wireguardInterface }: AgentConfig): string => `${wireguardInterface.slice(0, 12)}-vx`;

/** For an answer from another node of the same cluster. */
const KNOCK_MS = 1000;

/** Closes the host network after all others, since components stop in reverse order. */
export const hostComponent = (host: HostNetwork): Component => ({
  name: 'host network',
  stop: () => host.close(),
});

/** The caches of every gateway, and the parts that only the holder of the Lease runs; each in the order of its start. */
export function gatewayComponents(
  given: NetworkParts,
  { registry, leading }: { registry: Registry; leading: () => boolean },
): { caches: Component[]; active: Component[] } {
  const { parts, home, caches, host, metrics } = given;
  const { config, clock, log } = parts;
  const nodeName = nodeNameOf(config);
  const events = new ClientEventRecorder({
    client: home,
    clock,
    log,
    component: 'tributary',
    host: nodeName,
  });
  const { sockets, prober, responder } = probing(given);
  const gateway = new Gateway({
    client: home,
    caches,
    host,
    prober,
    responder,
    nodes: {
      knock: async (source, address) => knock(sockets, { source, address, timeoutMs: KNOCK_MS }),
      show: silentNodesMetric(registry),
    },
    lookUp: async (name) => lookUpByDns(name),
    nameServers: nameServersOfHost,
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
    wireguard: config.wireguard,
    ...(config.tunnelEndpoints !== undefined && { endpoints: config.tunnelEndpoints }),
    probeSeconds: config.probeSeconds,
    leading,
  });
  const read = countersOf(given, 'gateway');
  refusedMetrics(registry, 'gateway', read);
  tunnelRefusedMetric(registry, { peers: () => gateway.peers(), read });
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
  refusedMetrics(registry, 'node', countersOf(given, 'node'));
  return network.components();
}

/** Probes of peers, and answers to theirs. They share sockets, so that what is sent beside them is known. */
function probing({ parts: { config, clock, log }, host }: NetworkParts): {
  sockets: ProbeSockets;
  prober: Prober;
  responder: Responder;
} {
  const sockets = countingSockets(systemSockets(clock));
  const { isFlowing } = new Traffic({
    clock,
    linkPackets: () => sentPackets(config.wireguardInterface),
    probePackets: sockets.sentPackets,
  });
  const prober = new Prober({
    clock,
    sockets,
    mtu: config.tunnelMtu,
    pathMtu: async (address) => host.pathMtu(address),
    isFlowing,
    intervalMs: config.probeSeconds * 1000,
  });
  const responder = new Responder({ clock, log: log.named('probes'), sockets, asked: prober.asked });
  return { sockets, prober, responder };
}

function countersOf({ parts: { clock, log } }: NetworkParts, owner: Owner): TableCounters['read'] {
  return new TableCounters({
    clock,
    log: log.named('refused packets'),
    list: async () => listCounters(TABLES[owner]),
  }).read;
}

interface InlineNetwork {
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
