/** What one change of one pod costs, and how soon home shows it: the bench plays the kubelet over there. */
import { pods } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import type { Place, ScaleBed } from './bed.ts';

const TIMEOUT_MS = 60_000;
const RESTARTS = '/status/containerStatuses/0/restartCount';

/** Another status over there, until home shows it; milliseconds. */
export async function timedStatus(bed: ScaleBed, place: Place, restarts: number): Promise<number> {
  const name = place.copies.at(-1) ?? '';
  const watch = await OnePod.watch(bed.home, { namespace: place.name, name });
  try {
    const began = performance.now();
    const body = [{ op: 'replace' as const, path: RESTARTS, value: restarts }];
    const ref = { namespace: place.tenant, name };
    await bed.bed.clients.foreign.patch(pods, ref, { type: 'json', body }, { subresource: 'status' });
    await watch.until((pod) => pod?.status?.containerStatuses?.[0]?.restartCount === restarts);
    return performance.now() - began;
  } finally {
    await watch.stop();
  }
}

/** A pod is deleted at home, until it is gone on both sides; milliseconds. */
export async function timedDeletion(bed: ScaleBed, place: Place): Promise<number> {
  const name = place.copies.pop() ?? '';
  const { foreign } = bed.bed.clients;
  const ref = { namespace: place.tenant, name };
  const [home, body] = await Promise.all([
    OnePod.watch(bed.home, { namespace: place.name, name }),
    OnePod.watch(foreign, ref),
  ]);
  try {
    const began = performance.now();
    await bed.home.delete(pods, { namespace: place.name, name });
    await body.until((pod) => pod?.metadata.deletionTimestamp !== undefined);
    await foreign.delete(pods, ref, { gracePeriodSeconds: 0 });
    await home.until((pod) => pod === undefined);
    return performance.now() - began;
  } finally {
    await Promise.all([home.stop(), body.stop()]);
  }
}

/** One pod, which is there at first. */
class OnePod {
  readonly #informer: Informer<Pod>;
  readonly #key: string;

  private constructor(informer: Informer<Pod>, key: string) {
    this.#informer = informer;
    this.#key = key;
  }

  static async watch(
    client: KubeClient,
    { namespace, name }: { namespace: string; name: string },
  ): Promise<OnePod> {
    const informer = new Informer<Pod>({
      client,
      type: pods,
      list: { namespace, fieldSelector: `metadata.name=${name}` },
      clock: systemClock,
      log: silentLogger,
    });
    await informer.start(new AbortController().signal);
    if (informer.size !== 1) {
      await informer.stop();
      throw new Error(`there is no pod ${namespace}/${name}`);
    }
    return new OnePod(informer, `${namespace}/${name}`);
  }

  /** @param isDone is given undefined when the pod is gone */
  async until(isDone: (pod: Pod | undefined) => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = systemClock.after(TIMEOUT_MS, () =>
      reject(new Error(`pod ${this.#key} is not as it should be after ${TIMEOUT_MS / 1000} s`)),
    );
    const see = (): void => {
      if (isDone([...this.#informer.list()][0])) resolve();
    };
    this.#informer.onChange(see);
    see();
    try {
      await promise;
    } finally {
      cancel();
    }
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
  }
}
