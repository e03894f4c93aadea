import { isIP } from 'node:net';
import type { AgentConfig } from '../config.ts';
import { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import { createClient } from '../kube/http-client.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import { OpsServer } from '../server/ops.ts';
import { homeCredentials } from './home.ts';
import { ServedNode } from './served-node.ts';
import { type Agent, type AgentParts, createRegistry } from './parts.ts';
import { followSettings } from './settings.ts';
import { Registries } from '../server/registries.ts';
import { VirtualNodeAgent } from './virtual-node.ts';

const MAX_PORT = 65_535;

/**
 * Role `peer`: the virtual nodes of one foreign cluster, one for each name in `--virtual-node A,B,...`. They share the
 * process, the client and the ops server; each has its kubelet API on a port of its own, counted from --kubelet-port. Another
 * agent may take over one of several: the process then stands by for that one, and goes on with the others. Of only one, it ends.
 */
export async function startPeer(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock } = parts;
  const names = virtualNodeNames(config.virtualNode);
  const address = nodeAddressOf(config);
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
  return { failed: AbortSignal.any(nodes.map(({ failed }) => failed)), stop };
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

/** Throws Invalid where there is none. */
export function nodeAddressOf({ nodeAddress = '' }: Pick<AgentConfig, 'nodeAddress'>): string {
  if (nodeAddress === '') {
    const message = 'say where the API server reaches this agent: --node-address or $POD_IP';
    throw new TributaryError('Invalid', message);
  }
  if (isIP(nodeAddress) === 0)
    throw new TributaryError('Invalid', `"${nodeAddress}" is no address: --node-address`);
  return nodeAddress;
}

type Served = Pick<ServedNode, 'agent' | 'failed' | 'name' | 'start' | 'stop'>;

/** The process ends with it, and its pod starts it again. */
const alone = (agent: VirtualNodeAgent): Served => ({
  agent,
  name: agent.name,
  failed: agent.lost,
  start: async (signal) => agent.start(signal),
  stop: async () => agent.stop(),
});

/** If there is only one virtual node, the metrics have no label with its name. */
function createAgents(given: {
  parts: AgentParts;
  home: KubeClient;
  homeCa: string | undefined;
  address: string;
  names: string[];
}): {
  nodes: Served[];
  ops: OpsServer;
  settings: Component;
} {
  const { parts, home, names } = given;
  const { kubeletPort } = parts.config;
  const own = createRegistry('peer', parts);
  const registries = new Registries(own);
  const isOne = names.length === 1;
  const caches = new Caches({ client: home, clock: parts.clock, log: parts.log });
  const agentOf = (virtualNode: string, index: number): VirtualNodeAgent =>
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
    });
  const nodes = names.map((name, index): Served => {
    if (isOne) return alone(agentOf(name, index));
    const open = (): VirtualNodeAgent => agentOf(name, index);
    const close = (): void => registries.close(name);
    return new ServedNode(name, { open, close, clock: parts.clock, log: parts.log.named(name) });
  });
  return { nodes, ops: opsServer(parts, registries, nodes), settings: followSettings(parts, caches) };
}

function opsServer({ config, log }: AgentParts, registry: Registries, nodes: readonly Served[]): OpsServer {
  const startingOf = ({ agent }: Served): string | undefined =>
    agent === undefined ? 'waiting for the VirtualNode' : agent.starting;
  const starting = (): string | undefined =>
    nodes
      .flatMap((node) => {
        const component = startingOf(node);
        return component === undefined ? [] : [labelled(nodes, node, component)];
      })
      .at(0);
  const waiting = (): string[] =>
    nodes.flatMap((node) => {
      const { standsByFor } = node.agent ?? {};
      return standsByFor === undefined ? [] : [labelled(nodes, node, `stands by for ${standsByFor}`)];
    });
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
      order: nodes.flatMap((node) => (node.agent?.order ?? []).map((name) => labelled(nodes, node, name))),
      starting: starting(),
    }),
    log: log.named('ops'),
  });
}

const labelled = (nodes: readonly Served[], node: Served, text: string): string =>
  nodes.length === 1 ? text : `${node.name}: ${text}`;
