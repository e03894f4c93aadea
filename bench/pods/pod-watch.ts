/** Pods of one namespace as a watch shows them, with what measurements look at. */
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { pods } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import type { Bed, ClusterName } from './bed.ts';
import { isReady } from './readiness.ts';

/** A state of a pod; undefined once it is gone. */
export interface SeenPod {
  /** Its own, or that of the home pod for which it was made. */
  readonly homeUid: string;
  readonly ready: boolean;
}

export type PodListener = (key: string, pod: SeenPod | undefined) => void;

export class PodWatch {
  readonly #informer: Informer<Pod>;

  private constructor(informer: Informer<Pod>) {
    this.#informer = informer;
  }

  /** Resolves when it holds all pods; `listener` is told of those, too. Keeps little of each pod. */
  static async start(
    bed: Bed,
    { cluster, namespace }: { cluster: ClusterName; namespace: string },
    listener: PodListener,
  ): Promise<PodWatch> {
    const informer = new Informer<Pod>({
      client: bed.clients[cluster],
      type: pods,
      list: { namespace },
      clock: systemClock,
      log: silentLogger,
      transform: reduced,
    });
    informer.onChange((key, pod) => listener(key, pod === undefined ? undefined : seen(pod)));
    await informer.start(new AbortController().signal);
    return new PodWatch(informer);
  }

  get size(): number {
    return this.#informer.size;
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
  }
}

const reduced = ({ metadata, status }: Pod): Pod => {
  const { name, namespace = '', uid, resourceVersion, creationTimestamp, labels } = metadata;
  const conditions = status?.conditions?.filter(({ type }) => type === 'Ready') ?? [];
  return {
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp, ...(labels && { labels }) },
    status: { conditions },
  };
};

const seen = (pod: Pod): SeenPod => ({
  homeUid: pod.metadata.labels?.[LABEL_HOME_UID] ?? pod.metadata.uid,
  ready: isReady(pod),
});
