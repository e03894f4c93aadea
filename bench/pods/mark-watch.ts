import type { KubeObject } from '../../src/api/wire.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import type { Bed, ClusterName } from './bed.ts';
import type { SingleKind } from './single-objects.ts';

const TIMEOUT_MS = 60_000;

/** Tells when a watch shows an object of one kind and namespace with a mark. */
export class MarkWatch {
  readonly #bed: Bed;
  readonly #kind: SingleKind;
  readonly #informer: Informer<KubeObject>;
  readonly #waiting = new Map<string, () => void>();

  private constructor(bed: Bed, kind: SingleKind, informer: Informer<KubeObject>) {
    this.#bed = bed;
    this.#kind = kind;
    this.#informer = informer;
    informer.onChange((_key, object) => this.#see(object));
  }

  static async start(
    bed: Bed,
    kind: SingleKind,
    { cluster, namespace }: { cluster: ClusterName; namespace: string },
  ): Promise<MarkWatch> {
    const informer = new Informer<KubeObject>({
      client: bed.clients[cluster],
      type: kind.type,
      list: { namespace },
      clock: systemClock,
      log: silentLogger,
    });
    const watch = new MarkWatch(bed, kind, informer);
    await informer.start(new AbortController().signal);
    return watch;
  }

  /** Milliseconds from before the call until the watch shows the object of that name with that mark. */
  async timed(name: string, mark: number, write: () => Promise<unknown>): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const what = `${this.#kind.name} ${name} is not seen with mark ${mark} within ${TIMEOUT_MS / 1000} s`;
    const cancel = systemClock.after(TIMEOUT_MS, () => reject(new Error(what)));
    const began = performance.now();
    this.#waiting.set(`${name}/${mark}`, () => resolve(performance.now() - began));
    try {
      await write();
      return await promise;
    } finally {
      cancel();
      this.#waiting.delete(`${name}/${mark}`);
    }
  }

  /** Resolves when the watch has shown that there is no object of that name. */
  async gone(name: string): Promise<void> {
    const isHere = (): boolean =>
      Array.from(this.#informer.list()).some(({ metadata }) => metadata.name === name);
    await this.#bed.until(`${this.#kind.name} ${name} is gone`, TIMEOUT_MS, () => !isHere());
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
  }

  #see(object: KubeObject | undefined): void {
    if (object === undefined) return;
    this.#waiting.get(`${object.metadata.name}/${this.#kind.markOf(object)}`)?.();
  }
}
