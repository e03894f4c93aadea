/** Two clusters of real containers on two segments, peered and joined by a tunnel; milan has two nodes with a gateway each. */
import { join } from 'node:path';

import type { Program } from '../../lab/demo/program.ts';
import { holdLab } from '../../lab/holder.ts';
import { Lab } from '../../lab/lab.ts';
import { killIn } from '../../lab/node-processes.ts';
import { Underlay } from '../../test/e2e/underlay/support/underlay.ts';
import { ECHO_PORT, type PodPlace } from '../../test/e2e/underlay/support/pod-place.ts';
import { corePath } from '../../test/support/e2e/api.ts';
import { PEERS_LAB } from '../../test/support/e2e/lab.ts';
import { SLEEP } from '../../test/support/e2e/pods.ts';
import { until } from '../../test/support/e2e/until.ts';

const NAMESPACE = 'outage';

/** Counts of numbered datagrams while something was done. */
export interface Disturbed {
  /** Longest time between two answers. */
  readonly gapMs: number;
  readonly lost: number;
}

export class Bed {
  readonly underlay: Underlay;
  /** In rome. */
  readonly home: PodPlace;
  /** A pod of rome in milan, on the node whose gateway is the standby at first. */
  readonly away: PodPlace;
  readonly #programs: Program[] = [];

  private constructor(underlay: Underlay, home: PodPlace, away: PodPlace) {
    this.underlay = underlay;
    this.home = home;
    this.away = away;
  }

  static async up(say: (line: string) => void): Promise<Bed> {
    await holdLab(PEERS_LAB, { progress: say });
    const underlay = await Underlay.open(NAMESPACE);
    const home = await underlay.atHome('home', SLEEP);
    const away = await underlay.offloaded('away', SLEEP, 'milan-1');
    const bed = new Bed(underlay, home, away);
    for (const pod of [home, away]) bed.#programs.push(await pod.echo());
    return bed;
  }

  async down(): Promise<void> {
    await Promise.all(this.#programs.map(async (program) => program.stop()));
    await Lab.down(PEERS_LAB);
  }

  /** Datagrams go from one pod to the other and back, each 10 ms, from before `act` until they are answered again. */
  async disturbed(act: () => Promise<unknown>): Promise<Disturbed> {
    const flow = this.home.send(this.away.address);
    const answered = async (): Promise<unknown> =>
      until('datagrams are answered', async () => (await flow.look()).silentMs < 100, {
        seen: async () => flow.look(),
      });
    try {
      await answered();
      await flow.mark();
      await act();
      await answered();
      const { gapMs, sent, answered: back } = await flow.look();
      return { gapMs, lost: sent - back };
    } finally {
      await flow.stop();
    }
  }

  /** kill -9 of what matches on a node. */
  kill(node: string, commandLine: RegExp): void {
    const count = killIn(this.underlay.node(node).netns, commandLine);
    if (count === 0) throw new Error(`nothing runs as ${commandLine.source} on ${node}`);
  }

  /** Milliseconds from the answer of the API server, which has made a Service of that pod, until the Service answers in rome. */
  async untilServed(pod: string, number: number): Promise<number> {
    const prober = this.home.start(
      [process.execPath, join(import.meta.dirname, 'first-answer.ts'), String(ECHO_PORT)],
      { keepStdin: true },
    );
    const name = `new-${pod}-${number}`;
    const path = corePath(NAMESPACE, 'services');
    try {
      await prober.waitFor(/ready/);
      const spec = { selector: { app: pod }, ports: [{ port: ECHO_PORT, protocol: 'UDP' }] };
      const made = await this.underlay.peers.rome.create(path, { metadata: { name }, spec });
      prober.write(`${String(made.spec?.['clusterIP'])}\n`);
      const [line] = await prober.waitFor(/answered after (\S+) ms/);
      return Number(/[\d.]+/.exec(line)?.[0]);
    } finally {
      await prober.stop();
      await this.underlay.peers.rome.remove(corePath(NAMESPACE, 'services', name));
    }
  }
}
