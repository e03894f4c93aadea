/** P13: how soon a cluster on the LAN answers, beside avahi on the same link. */
import { join } from 'node:path';

import { LanLab, lanLabProblem, type LanHost } from '../../test/support/network/lan-lab.ts';
import type { Bench } from '../frame/bench.ts';
import { ratios } from '../frame/goals.ts';
import { percentile } from '../frame/statistics.ts';

const CLUSTER = { clusterID: 'rome'.padEnd(26, 'b'), clusterName: 'Rome', port: 7444, protocols: [1] };
const TXT = [`id=${CLUSTER.clusterID}`, 'name=Rome', 'v=1'];
/** What an answer that never came counts as. */
const LOST_MS = 3_000;

export const lanBench: Bench<{ questions: number }> = {
  name: 'lan',
  title: 'an answer on the LAN',
  what:
    'A host asks for clusters over multicast DNS, and another one answers: our discovery, and avahi with the same service, each on a link of ' +
    'its own. RFC 6762 has shared records wait 20 to 120 ms by chance, so half of all answers cannot come before 70 ms or so.',
  parameters: { questions: 30 },
  problem: lanLabProblem,
  run: async ({ parameters: { questions }, rounds, signal }) => {
    const lab = await LanLab.up(2);
    try {
      const ours = { asks: await lab.host('a', [0]), answers: await lab.host('b', [0]), segment: 0 };
      const theirs = { asks: await lab.host('c', [1]), answers: await lab.host('d', [1]), segment: 1 };
      await ours.answers.tributary({ announcement: CLUSTER });
      await (await theirs.answers.avahi('rome')).publish('rome', CLUSTER.port, TXT);
      const found = { agent: new Times(), avahi: new Times() };
      for (let round = 0; round < rounds; round++) {
        // At the same time, since nearly all of it is waiting.
        const [one, other] = await Promise.all(
          [ours, theirs].map(async ({ asks, segment }) =>
            ask(asks, asks.address(segment), { questions, signal }),
          ),
        );
        found.agent.add(one ?? []);
        found.avahi.add(other ?? []);
      }
      const { agent, avahi } = found;
      return {
        measured: Object.entries(found).flatMap(([contender, { p50, p99, lost }]) => [
          { contender, figure: 'ms until the answer, p50', values: p50 },
          { contender, figure: 'ms until the answer, p99', values: p99 },
          { contender, figure: 'questions without an answer', values: lost, digits: 0 },
        ]),
        goals: [
          {
            id: 'P13',
            what: 'time until an answer (p50), of avahi’s',
            values: ratios(agent.p50, avahi.p50),
            atMost: 1.1,
          },
          { id: 'P13-p99', what: 'ms until an answer (p99)', values: agent.p99, atMost: 250, digits: 0 },
        ],
      };
    } finally {
      await lab.down();
    }
  },
};

/** By round. */
class Times {
  readonly p50: number[] = [];
  readonly p99: number[] = [];
  readonly lost: number[] = [];

  add(answers: readonly (number | null)[]): void {
    const all = answers.map((ms) => ms ?? LOST_MS);
    this.p50.push(percentile(all, 0.5));
    this.p99.push(percentile(all, 0.99));
    this.lost.push(answers.filter((ms) => ms === null).length);
  }
}

async function ask(
  host: LanHost,
  address: string,
  { questions, signal }: { questions: number; signal: AbortSignal },
): Promise<(number | null)[]> {
  const script = join(import.meta.dirname, 'ask.ts');
  const printed = await host.run([process.execPath, script, address, String(questions)], undefined, {
    timeoutMs: (questions + 1) * 5_000,
    signal,
  });
  return JSON.parse(printed) as (number | null)[];
}
