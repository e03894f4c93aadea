import { setTimeout as sleep } from 'node:timers/promises';

import type { Attack, Counts } from './attack.ts';
import type { AttackBed } from './bed.ts';
import type { Borrower } from './borrower.ts';

const STRANGERS = 60;
const NAMESPACES = 64;
/** As often as a link takes documents. */
const PAUSE_MS = 100;

/** Clusters that nobody has let in, each with an identity and a link, that change what they ask for without end. */
export class StrangersAttack implements Attack {
  readonly name = 'strangers';
  readonly what: string = `${STRANGERS} strangers change the ${NAMESPACES} names that they ask for, as often as a link takes them`;
  readonly #counts = { wishes: 0, 'wished MiB': 0 };
  readonly #strangers: Borrower[] = [];

  async prepare(bed: AttackBed): Promise<void> {
    await bed.policy({ approval: 'Manual' });
    for (let one = 0; one < STRANGERS; one++) this.#strangers.push(await bed.borrower(`stranger-${one}`));
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const stranger of this.#strangers) {
        const turn = this.#counts.wishes++;
        const namespaces = Array.from({ length: NAMESPACES }, (_, at) => `${'n'.repeat(40)}-${at}-${turn}`);
        this.#counts['wished MiB'] += JSON.stringify(namespaces).length / 1024 / 1024;
        stranger.say({ request: { clusterName: stranger.name, namespaces } });
      }
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  counts(): Counts {
    return { ...this.#counts };
  }

  async stop(): Promise<void> {
    await Promise.resolve();
  }
}
