import { setTimeout as sleep } from 'node:timers/promises';

import { LABEL_HOME_UID } from '../../src/api/names.ts';
import type { Attack, Counts } from './attack.ts';
import type { AttackBed } from './bed.ts';
import type { Borrower } from './borrower.ts';

const PODS = 1_000;
const WORKERS = 32;
/** Of environment, for a pod of about four KiB as it is stored. */
const FILLING = 'x'.repeat(2_500);

/** No attack: what honest use costs. A peer makes a thousand pods at once in each phase, and ends them. */
export class HonestUse implements Attack {
  readonly name = 'honest';
  readonly what = 'no attack: a guest makes 1,000 pods of 4 KiB at once in each phase, and ends them';
  readonly #counts: Counts = {};
  #cpuMs = (): Record<string, number> => ({});
  #borrower: Borrower | undefined;
  #tenant = '';

  async prepare(bed: AttackBed): Promise<void> {
    // More than it needs: phases follow each other faster than a peer's pods do.
    await bed.policy({ sharePercent: 100, writes: { kibPerMinute: 1_048_576 } });
    this.#cpuMs = () => bed.cpuMs();
    this.#borrower = await bed.borrower('rome');
    this.#tenant = (await this.#borrower.peered())[0] ?? '';
    await bed.until('pods are let in', async () => {
      const answer = await this.#borrower?.client.call('POST', `${this.#path}?dryRun=All`, podOf('probe'));
      return answer?.status === 201;
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { client } = this.#borrower ?? {};
    const [began, before] = [performance.now(), this.#cpuMs()];
    await each(async (pod) => {
      const answer = await client?.call('POST', this.#path, podOf(`p-${pod}`));
      this.#add(answer?.status === 201 ? 'made' : 'refused', 1);
    });
    // Of this phase alone, so that those of two versions can be compared.
    this.#counts['made each second'] = (PODS / (performance.now() - began)) * 1000;
    for (const [program, ms] of Object.entries(this.#cpuMs())) {
      this.#counts[`µs of ${program} a pod`] = ((ms - (before[program] ?? 0)) * 1000) / PODS;
    }
    await each(async (pod) => client?.call('DELETE', `${this.#path}/p-${pod}?gracePeriodSeconds=0`));
    await sleep(1e9, undefined, { signal }).catch(() => undefined);
  }

  counts(): Counts {
    return { ...this.#counts };
  }

  async stop(): Promise<void> {
    await Promise.resolve();
  }

  #add(what: string, number: number): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + number;
  }

  get #path(): string {
    return `/api/v1/namespaces/${this.#tenant}/pods`;
  }
}

async function each(work: (number: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let number = next++; number < PODS; number = next++) await work(number);
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
}

const podOf = (name: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { [LABEL_HOME_UID]: name } },
    spec: {
      nodeSelector: { never: 'there' },
      containers: [{ name: 'main', image: 'example/none:1', env: [{ name: 'LOAD', value: FILLING }] }],
    },
  });
