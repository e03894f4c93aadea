import { setTimeout as sleep } from 'node:timers/promises';

export interface EtcdSize {
  readonly atSeconds: number;
  /** Of the file, and of what in it is in use; MiB. */
  readonly total: number;
  readonly inUse: number;
}

const EVERY_MS = 1_000;
const MIB = 1024 * 1024;

/** Reads the size of an etcd's file until the signal fires. */
export class EtcdWatch {
  readonly sizes: EtcdSize[] = [];
  readonly #url: string;
  readonly #began = performance.now();

  /** `url`: of the client port. */
  constructor(url: string) {
    this.#url = url;
  }

  async read(): Promise<EtcdSize> {
    const text = await (await fetch(`${this.#url}/metrics`)).text();
    const valueOf = (name: string): number =>
      Number(new RegExp(`^${name} (\\S+)$`, 'mu').exec(text)?.[1] ?? Number.NaN) / MIB;
    const size: EtcdSize = {
      atSeconds: (performance.now() - this.#began) / 1000,
      total: valueOf('etcd_mvcc_db_total_size_in_bytes'),
      inUse: valueOf('etcd_mvcc_db_total_size_in_use_in_bytes'),
    };
    this.sizes.push(size);
    return size;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // A server with too much to do may answer later.
      await this.read().catch(() => undefined);
      await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  get most(): number {
    return Math.max(...this.sizes.map(({ total }) => total));
  }
}
