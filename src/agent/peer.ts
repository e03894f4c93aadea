import { isIP } from 'node:net';
import { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import { createClient } from '../kube/http-client.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import { OpsServer } from '../server/ops.ts';
import { homeCredentials } from './home.ts';
import { type Agent, type AgentParts, createRegistry } from './parts.ts';
import { followSettings } from './settings.ts';
import { Registries } from '../server/registries.ts';
import { VirtualNodeAgent } from './virtual-node.ts';

const MAX_PORT = 65_535;

/**
 * Role `peer`: the virtual nodes of one foreign cluster, one for each name in `--virtual-node A,B,...`. They share the
 * process, the client and the ops server; each has its kubelet API on a port of its own, counted from --kubelet-port.
 */
export async function startPeer(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock } = parts;
  const names = virtualNodeNames(config.virtualNode);
  const address = required(
    config.nodeAddress,
    'say where the API server reaches this agent: --node-address or $POD_IP',
  );
  if (isIP(address) === 0) throw new TributaryError('Invalid', `"${address}" is no address: --node-address`);
  if (config.kubeletPort + names.length - 1 > MAX_PORT) {
    throw new TributaryError('Invalid', `there are no ${names.length} ports from ${config.kubeletPort} on`);
  }
  const credentials = await homeCredentials(config, clock);
  const home = createClient(credentials, { clock });
  const agents = createAgents({ parts, home, homeCa: credentials.ca, address, names });
  const { nodes, ops, settings } = agents;
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map(async (node) => node.stop()));
    await settings.stop?.();
    await home.close();
    await ops.stop();
  };
  try {
    await ops.start(signal);
    await settings.start?.(signal);
    await Promise.all(nodes.map(async (node) => node.start(signal)));
  } catch (error) {
    await stop();
    throw error;
  }
  return { failed: AbortSignal.any(nodes.map(({ lost }) => lost)), stop };
}

function virtualNodeNames(text: string | undefined): string[] {
  const names = (text ?? '').split(',').filter((name) => name !== '');
  if (names.length === 0) {
    throw new TributaryError('Invalid', 'name the VirtualNode to serve: --virtual-node NAME');
  }
  if (new Set(names).size < names.length) {
    throw new TributaryError('Invalid', `--virtual-node names one twice: ${names.join(',')}`);
  }
  return names;
}

function required(value: string | undefined, message: string): string {
  if (value === undefined || value === '') throw new TributaryError('Invalid', message);
  return value;
}

/** If there is only one virtual node, the metrics have no label with its name. */
function createAgents(given: {
  parts: AgentParts;
  home: KubeClient;
  homeCa: string | undefined;
  address: string;
  names: string[];
}): {
  nodes: VirtualNodeAgent[];
  ops: OpsServer;
  settings: Component;
} {
  const { parts, home, names } = given;
  const { kubeletPort } = parts.config;
  const own = createRegistry('peer', parts);
  const registries = new Registries(own);
  const isOne = names.length === 1;
  const caches = new Caches({ client: home, clock: parts.clock, log: parts.log });
  const nodes = names.map(
    (virtualNode, index) =>
      new VirtualNodeAgent({
        ...given,
        caches,
        parts: isOne ? parts : { ...parts, log: parts.log.named(virtualNode) },
        virtualNode,
        kubeletPort: kubeletPort === 0 ? 0 : kubeletPort + index,
        // All have the same address, and the same namespaces.
        servesNodePorts: index === 0,
        registry: isOne ? own : registries.open(virtualNode),
        metrics: async () => registries.metrics(),
      }),
  );
  return { nodes, ops: opsServer(parts, registries, nodes), settings: followSettings(parts, caches) };
}

function opsServer(
  { config, log }: AgentParts,
  registry: Registries,
  nodes: readonly VirtualNodeAgent[],
): OpsServer {
  const starting = (): string | undefined => {
    const node = nodes.find((node) => node.starting !== undefined);
    return node === undefined ? undefined : labelled(nodes, node, node.starting ?? '');
  };
  const waiting = (): string[] =>
    nodes.flatMap((node) =>
      node.standsByFor === undefined ? [] : [labelled(nodes, node, `stands by for ${node.standsByFor}`)],
    );
  return new OpsServer({
    port: config.opsPort,
    registry,
    // A foreign cluster that is away is no reason to restart this process, nor to call it unready.
    live: [],
    ready: [
      {
        name: 'started',
        check: () => {
          const component = starting();
          return component === undefined ? undefined : [`starting: ${component}`, ...waiting()].join('; ');
        },
      },
    ],
    components: () => ({
      order: nodes.flatMap((node) => node.order.map((name) => labelled(nodes, node, name))),
      starting: starting(),
    }),
    log: log.named('ops'),
  });
}

const labelled = (nodes: readonly VirtualNodeAgent[], node: VirtualNodeAgent, text: string): string =>
  nodes.length === 1 ? text : `${node.name}: ${text}`;
