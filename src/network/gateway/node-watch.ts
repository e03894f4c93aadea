import { MOST_SILENT, type NetworkNode, type OwnNetwork } from '../../api/own-network.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import type { Logger } from '../../lib/log.ts';
import { familyOf } from '../plan/peer.ts';

/** Whether something answers at an address when it is asked from one of ours. */
export type Knock = (source: string, address: string) => Promise<boolean>;

export interface NodeWatchOptions {
  log: Logger;
  knock: Knock;
  /** Shows how many do not answer. */
  show: (silent: number) => void;
}

/** One lost packet says nothing. */
const MISSES = 3;
/** How many nodes are asked at once. */
const AT_ONCE = 64;

/**
 * Whether each other node of this cluster answers through VXLAN. A tunnel can be well while a firewall between the nodes of a cluster
 * drops VXLAN: then only pods on the gateway's own node reach the peer.
 */
export class NodeWatch {
  readonly #options: NodeWatchOptions;
  /** By the node's name: how often it did not answer since it last did. */
  #misses: ReadonlyMap<string, number> | undefined;

  constructor(options: NodeWatchOptions) {
    this.#options = options;
  }

  /** Names of nodes that do not answer, in order; undefined before the first round. Long lists are cut. */
  get silent(): readonly string[] | undefined {
    return this.#misses && silentOf(this.#misses).slice(0, MOST_SILENT);
  }

  /** Whether each node answered in the last round. */
  get isCalm(): boolean {
    return this.#misses !== undefined && [...this.#misses.values()].every((count) => count === 0);
  }

  /** Asks each node once. Resolves to whether `silent` has changed. */
  async look(network: OwnNetwork, nodeName: string): Promise<boolean> {
    const { log, knock, show } = this.#options;
    const self = network.nodes.find(({ name }) => name === nodeName);
    if (self === undefined) return false;
    const isFirst = this.#misses === undefined;
    const before = this.#misses ?? new Map<string, number>();
    const misses = new Map<string, number>();
    await eachAtOnce(othersOf(network, self), AT_ONCE, async ({ name, external }) => {
      const answers = await knock(self.external, external);
      misses.set(name, answers ? 0 : (before.get(name) ?? 0) + 1);
    });
    const was = new Set(silentOf(before));
    const is = new Set(silentOf(misses));
    this.#misses = misses;
    show(is.size);
    const fresh = [...is.difference(was)];
    const healed = [...was.difference(is)].filter((name) => misses.has(name));
    if (fresh.length > 0) {
      log.warn('nodes do not answer through VXLAN: their pods reach no peer', {
        nodes: namesOf(fresh),
        udpPort: network.vxlan.port,
      });
    }
    if (healed.length > 0) log.info('nodes answer again', { nodes: namesOf(healed) });
    return isFirst || was.symmetricDifference(is).size > 0;
  }
}

/** Those that VXLAN reaches: of the family of our own address. */
const othersOf = ({ nodes }: OwnNetwork, self: NetworkNode): NetworkNode[] =>
  nodes.filter(({ name, external }) => name !== self.name && familyOf(external) === familyOf(self.external));

const namesOf = (names: readonly string[]): string => names.slice(0, MOST_SILENT).join(', ');

const silentOf = (misses: ReadonlyMap<string, number>): string[] =>
  [...misses]
    .filter(([, count]) => count >= MISSES)
    .map(([name]) => name)
    .toSorted();
