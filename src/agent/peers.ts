/**
 * Role `peers`: the virtual nodes of all foreign clusters whose VirtualNodes bear LABEL_AGENT, in one process. It finds them by a
 * watch, so that no start is needed when one comes or goes. Why it is a choice and not the default: docs/decisions/0091-one-agent-of-all-peers.md.
 */
import { LABEL_AGENT, AGENT_OF_ALL } from '../api/names.ts';
import { type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import type { Cache } from '../kube/cache.ts';
import { Caches } from '../kube/caches.ts';
import { createClient } from '../kube/http-client.ts';
import type { Clock } from '../lib/clock.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Component, Lifecycle } from '../lib/lifecycle.ts';
import { NodePortSources } from '../server/node-ports/sources.ts';
import { OpsServer } from '../server/ops.ts';
import { Registries } from '../server/registries.ts';
import { homeCredentials } from './home.ts';
import { type Agent, type AgentParts, createRegistry, lifecycleOf, run } from './parts.ts';
import { nodeAddressOf } from './peer.ts';
import { LowestFree } from './lowest-free.ts';
import { ServedNodes } from './served-nodes.ts';
import { followSettings } from './settings.ts';
import { VirtualNodeAgent } from './virtual-node.ts';

const MAX_PORT = 65_535;

export async function startPeers(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const address = nodeAddressOf(config);
  const credentials = await homeCredentials(config, clock);
  const home = createClient(credentials, { clock });
  const registries = new Registries(createRegistry('peers', parts));
  const caches = new Caches({ client: home, clock, log });
  const nodePorts = new NodePortSources({ host: address, clock, log: log.named('node-ports') });
  const ports = new LowestFree(config.kubeletPort, MAX_PORT);
  const nodes = new ServedNodes({
    open: (virtualNode, own) =>
      new VirtualNodeAgent({
        parts: { ...parts, log: own },
        home,
        homeCa: credentials.ca,
        caches,
        virtualNode,
        address,
        kubeletPort: config.kubeletPort === 0 ? 0 : ports.take(virtualNode),
        nodePorts,
        sharesWatches: true,
        registry: registries.open(virtualNode),
        metrics: async () => registries.metrics(),
      }),
    close: (virtualNode) => registries.close(virtualNode),
    clock,
    log,
  });
  const served = new LabelledNodes({
    virtualNodes: caches.of(virtualNodes, { name: 'virtual nodes' }),
    nodes,
    ended: (virtualNode) => ports.give(virtualNode),
    clock,
  });
  const lifecycle: Lifecycle = lifecycleOf(
    [
      opsServer(parts, { registries, nodes, lifecycle: () => lifecycle }),
      followSettings(parts, caches),
      nodePorts,
      ...served.components(),
    ],
    parts,
  );
  return run(lifecycle, [home], signal);
}

function opsServer(
  { config, log }: AgentParts,
  parts: { registries: Registries; nodes: ServedNodes; lifecycle: () => Lifecycle },
): OpsServer {
  const { registries, nodes, lifecycle } = parts;
  return new OpsServer({
    port: config.opsPort,
    registry: registries,
    live: [],
    // A foreign cluster that is away, and a virtual node that cannot start, are no reason to call the others unready.
    ready: [
      {
        name: 'started',
        check: () => {
          const { starting } = lifecycle();
          return starting === undefined ? undefined : `starting: ${starting}`;
        },
      },
    ],
    components: () => ({
      order: [
        ...lifecycle().order,
        ...nodes.names().map((name) => `${name}: ${nodes.agentOf(name)?.starting ?? 'served'}`),
      ],
      starting: lifecycle().starting,
    }),
    log: log.named('ops'),
  });
}

interface LabelledNodesOptions {
  virtualNodes: Cache<VirtualNode>;
  nodes: Pick<ServedNodes, 'agentOf' | 'end' | 'has' | 'serve' | 'stop'>;
  /** Its agent has stopped, and no other will follow for now. */
  ended: (virtualNode: string) => void;
  clock: Clock;
}

/** How long an agent may take to remove what belonged to a VirtualNode that is gone; it is asked in between. */
const OVER_MS = 10_000;
const OVER_POLL_MS = 250;

const isLabelled = ({ metadata }: VirtualNode): boolean => metadata.labels?.[LABEL_AGENT] === AGENT_OF_ALL;

/** Serves each VirtualNode as long as it bears the label; one that is deleted until its agent has removed its Node. */
export class LabelledNodes {
  readonly #options: LabelledNodesOptions;
  /** Being ended. */
  readonly #ending = new Set<string>();
  readonly #stopped = new AbortController();

  constructor(options: LabelledNodesOptions) {
    this.#options = options;
  }

  components(): Component[] {
    const { virtualNodes: all, nodes } = this.#options;
    all.onChange((name) => this.#look(name));
    return [
      all,
      {
        name: 'agents',
        start: () => undefined,
        stop: async () => {
          this.#stopped.abort(new TributaryError('Aborted', 'stopped'));
          await nodes.stop();
        },
      },
    ];
  }

  #look(name: string): void {
    const { virtualNodes: all, nodes } = this.#options;
    const isWanted = this.#isWanted(name);
    if (this.#stopped.signal.aborted || this.#ending.has(name) || isWanted === nodes.has(name)) return;
    if (isWanted) nodes.serve(name);
    else void this.#end(name, all.get(name) === undefined);
  }

  #isWanted(name: string): boolean {
    const found = this.#options.virtualNodes.get(name);
    return found !== undefined && isLabelled(found);
  }

  async #end(name: string, isDeleted: boolean): Promise<void> {
    const { nodes, ended } = this.#options;
    this.#ending.add(name);
    try {
      if (isDeleted) await this.#untilOver(name);
      // It may have been made again meanwhile, and its agent has gone on then.
      if (!this.#isWanted(name)) await nodes.end([name]);
    } finally {
      this.#ending.delete(name);
      if (!nodes.has(name)) ended(name);
      this.#look(name);
    }
  }

  async #untilOver(name: string): Promise<void> {
    const { nodes, clock } = this.#options;
    const { signal } = this.#stopped;
    const end = clock.monotonic() + OVER_MS;
    while (!signal.aborted && clock.monotonic() < end) {
      if (this.#isWanted(name) || nodes.agentOf(name)?.isOver === true) return;
      await clock.sleep(OVER_POLL_MS, signal).catch(() => undefined);
    }
  }
}
