/** What role `peers` costs at rest with many peers. */
import type { Bench } from '../frame/bench.ts';
import {
  foundAtRest,
  MANY_PEERS,
  type ManyPeersBed,
  type ManyPeersParameters,
  restWithPeers,
} from '../idle/many-peers.ts';
import type { Program } from '../frame/program.ts';
import { PeersBed } from '../peers/bed.ts';

class AgentsBed implements ManyPeersBed {
  readonly #bed: PeersBed;
  readonly #program: Program;

  private constructor(bed: PeersBed, program: Program) {
    this.#bed = bed;
    this.#program = program;
  }

  static async up(options: Parameters<typeof PeersBed.up>[0]): Promise<AgentsBed> {
    const bed = await PeersBed.up(options);
    try {
      return new AgentsBed(bed, await bed.startPeers());
    } catch (error) {
      await bed.down();
      throw error;
    }
  }

  get pids(): ManyPeersBed['pids'] {
    return { peers: this.#program.pid };
  }

  async join(count: number): Promise<void> {
    await this.#bed.setPeers(count, true);
    await this.#bed.allReady(count, [this.#program]);
  }

  async down(): Promise<void> {
    await this.#bed.down();
  }
}

export const agentsBench: Bench<ManyPeersParameters> = {
  name: 'agents',
  title: 'role peers at rest with many peers',
  what:
    'One process of role `peers` serves the virtual nodes of many foreign clusters, which one real API server pretends, as for `peers`. No pods run: nothing but renewals of Leases ' +
    'and probes passes. `bare timer` shows what a wake-up costs then. The version before has to know this role.',
  parameters: MANY_PEERS,
  limits: { peers: { most: 128 }, settle: { least: 0 } },
  run: async (given) => {
    const { parameters, nodeFlags, say } = given;
    const up = async (checkout?: string): Promise<AgentsBed> =>
      AgentsBed.up({ peers: parameters.peers, nodeFlags, say, checkout });
    return foundAtRest(await restWithPeers(up, given), 'peers');
  },
};
