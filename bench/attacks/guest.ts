import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { LABEL_MANAGED_BY } from '../../src/api/names.ts';
import type { Attack, Counts } from './attack.ts';
import type { AttackBed } from './bed.ts';
import type { Borrower } from './borrower.ts';

const NAMESPACES = 4;
const WORKERS = 12;
/** In KiB. It takes the largest that is let in. */
const SIZES = [511, 255, 127, 63, 31];
const NO_ANSWER_MS = 50;

interface GuestOptions {
  readonly peers: number;
  /** Whether it waits as long as it is told to; then it gets as much as can be had. */
  readonly isPatient: boolean;
}

/** A peer with a contract, or several, that rewrite ConfigMaps by turns in all of their namespaces. */
export class GuestAttack implements Attack {
  readonly name: string;
  readonly what: string;
  readonly #options: GuestOptions;
  readonly #counts = { requests: 0, stored: 0, refused: 0, 'no answer': 0, 'stored MiB': 0 };
  readonly #statuses = new Map<number, number>();
  readonly #peers: { borrower: Borrower; tenants: string[] }[] = [];
  #kib = 0;
  #turn = 0;

  constructor(name: string, what: string, options: GuestOptions) {
    this.name = name;
    this.what = what;
    this.#options = options;
  }

  async prepare(bed: AttackBed): Promise<void> {
    await bed.policy();
    for (let peer = 0; peer < this.#options.peers; peer++) {
      const borrower = await bed.borrower(`rome-${peer}`);
      const namespaces = Array.from({ length: NAMESPACES }, (_, index) => `shop-${index}`);
      this.#peers.push({ borrower, tenants: await borrower.peered({ namespaces }) });
    }
    const [first] = this.#peers;
    // Policies take effect a moment after they are applied.
    await bed.until('a ConfigMap is let in', async () => {
      for (const kib of SIZES) {
        const path = `${pathIn(first?.tenants[0] ?? '')}?dryRun=All`;
        const answer = await first?.borrower.client.call('POST', path, bodyOf('probe', kib, 0));
        if (answer?.status !== 201) continue;
        this.#kib = kib;
        return true;
      }
      return false;
    });
    process.stdout.write(`${this.name}: the largest ConfigMap that is let in has ${this.#kib} KiB\n`);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: WORKERS }, async (_, worker) => this.#work(worker, signal)));
  }

  counts(): Counts {
    const statuses = [...this.#statuses].toSorted(([a], [b]) => a - b);
    return {
      ...this.#counts,
      ...Object.fromEntries(statuses.map(([status, count]) => [`answered ${status}`, count])),
    };
  }

  async stop(): Promise<void> {
    await Promise.resolve();
  }

  async #work(worker: number, signal: AbortSignal): Promise<void> {
    const { borrower, tenants } = this.#peers[worker % this.#peers.length] ?? {};
    if (borrower === undefined || tenants === undefined) return;
    const name = `load-${worker}`;
    for (let turn = 0; !signal.aborted; turn++) {
      const tenant = tenants[(worker + turn) % tenants.length] ?? '';
      const text = bodyOf(name, this.#kib, ++this.#turn);
      let answer = await borrower.client.call('PUT', `${pathIn(tenant)}/${name}`, text);
      if (answer.status === 404) answer = await borrower.client.call('POST', pathIn(tenant), text);
      this.#count(answer.status, text.length);
      if (answer.status === 0) await sleep(NO_ANSWER_MS);
      const { retryAfterSeconds } = answer;
      if (!this.#options.isPatient || retryAfterSeconds === undefined) continue;
      await sleep(retryAfterSeconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  }

  #count(status: number, bytes: number): void {
    const counts = this.#counts;
    counts.requests += 1;
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    if (status === 200 || status === 201) {
      counts.stored += 1;
      counts['stored MiB'] += bytes / 1024 / 1024;
    } else if (status === 0) counts['no answer'] += 1;
    else counts.refused += 1;
  }
}

const pathIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;

const FILLING = randomBytes(SIZES[0] ?? 0)
  .toString('hex')
  .repeat(1024);

/** Different at each turn: an update that changes nothing is not stored. */
const bodyOf = (name: string, kib: number, turn: number): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels: { [LABEL_MANAGED_BY]: 'rome' } },
    data: { turn: String(turn), load: FILLING.slice(0, kib * 1024 - 64) },
  });
