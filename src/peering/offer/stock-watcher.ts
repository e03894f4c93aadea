import { formatAmounts } from '../../api/amounts.ts';
import type { StorageClassOffer } from '../../api/offer.ts';
import { type CountedPod, podRequests } from '../../api/pod-requests.ts';
import { isFinished } from '../../api/pod.ts';
import {
  namespaced,
  ingressClasses,
  namespaces,
  nodes,
  priorityClasses,
  type ResourceType,
  storageClasses,
} from '../../api/resources.ts';
import { slimNode } from '../../api/slim-node.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import type { KubeObject, Namespace, Node, ObjectMeta, Pod, ResourceList } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { identityOf } from '../../kube/objects.ts';
import type { Clock } from '../../lib/clock.ts';
import { Debounce } from '../../lib/debounce.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present } from '../../lib/fields.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { type PriorityClass, stockPriority } from './priority-classes.ts';
import { type Stock, takeStock } from './stock.ts';

interface StockWatcherOptions {
  caches: Caches;
  clock: Clock;
}

/** Changes are told at most this often: a rollout is hundreds of events, and one new offer. */
const TELL_INTERVAL_MS = 250;
/** A cluster may have no such API, or we no right to it; then there are no classes to offer, and no reason to wait. */
const OPTIONAL_PATIENCE_MS = 2000;

type StorageClass = NonNullable<(typeof storageClasses)['__object']>;
type IngressClass = NonNullable<(typeof ingressClasses)['__object']>;

/** Knows at any time what this cluster could lend and what its peers use; from caches. */
export class StockWatcher implements Component {
  readonly name = 'stock';
  /** Of the whole cluster; it has very many, so they are kept once. */
  readonly pods: Cache<CountedPod>;
  readonly #options: StockWatcherOptions;
  readonly #nodes: Cache<Node>;
  readonly #tenants: Cache<Namespace>;
  readonly #storage: Cache<StorageClass>;
  readonly #ingress: Cache<IngressClass>;
  readonly #priorities: Cache<PriorityClass>;
  readonly #listeners = new Listeners();
  /** Calls back when anything that counts has changed: at once, then at most every 250 ms. */
  readonly onChange: Listeners['add'] = this.#listeners.add;
  readonly #changes: Debounce;
  #stock: Stock | undefined;

  constructor(options: StockWatcherOptions) {
    this.#options = options;
    this.#changes = new Debounce(
      { clock: options.clock, intervalMs: TELL_INTERVAL_MS, callsAtOnce: true },
      () => this.#listeners.tell(),
    );
    const { caches } = options;
    this.#nodes = this.#follow(caches.of(nodes, { transform: slimNode }));
    const live = { list: { fieldSelector: LIVE_PODS }, transform: keepPod, name: 'cache of live pods' };
    this.pods = this.#follow(caches.of(livePods, live), (pod) => (pod.node === '' ? undefined : pod));
    this.#tenants = this.#follow(
      caches.of(namespaces, {
        only: ({ metadata }) => metadata.labels?.[LABEL_PEER] !== undefined,
        name: 'cache of tenant namespaces',
      }),
      bareOf,
    );
    this.#storage = this.#follow(caches.of(storageClasses));
    this.#ingress = this.#follow(caches.of(ingressClasses));
    this.#priorities = this.#follow(caches.of(priorityClasses));
  }

  /** Resolves when nodes, pods and tenants are known. */
  async start(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#nodes.start(signal),
      this.pods.start(signal),
      this.#tenants.start(signal),
      this.#startOptional(this.#storage, signal),
      this.#startOptional(this.#ingress, signal),
      this.#startOptional(this.#priorities, signal),
    ]);
  }

  async stop(): Promise<void> {
    this.#changes.stop();
    const classes = [this.#storage, this.#ingress, this.#priorities];
    const caches = [this.#nodes, this.pods, this.#tenants, ...classes];
    await Promise.all(caches.map(async (cache) => cache.stop()));
  }

  /** The same object until something changes. */
  stock(): Stock {
    this.#stock ??= takeStock({
      nodes: this.#nodes.list(),
      pods: this.pods.list(),
      peerOf: (namespace) => this.#tenants.get(namespace)?.metadata.labels?.[LABEL_PEER],
      storageClasses: [...this.#storage.list()].map(storageClassOffer),
      ingressClasses: [...this.#ingress.list()].map(({ metadata }) => metadata.name),
      priorityClasses: [...this.#priorities.list()].map(stockPriority),
    });
    return this.#stock;
  }

  /** Requests of that peer's bound pods over all its tenant namespaces, and how many they are. */
  usage(clusterID: string): ResourceList {
    return formatAmounts(this.stock().used.get(clusterID) ?? new Map([['pods', 0n]]));
  }

  /** `part`: what of an object moves the stock; undefined: nothing. */
  #follow<T extends KubeObject>(
    cache: Cache<T>,
    part: (object: T) => KubeObject | undefined = (object) => object,
  ): Cache<T> {
    cache.onChange((_key, current, previous) => {
      const [now, before] = [current && part(current), previous && part(previous)];
      if ((now ?? before) !== undefined && hasChanged(now, before)) this.#changed();
    });
    return cache;
  }

  #changed(): void {
    this.#stock = undefined;
    this.#changes.trigger();
  }

  /** Waits for the first list or the first failure, and no longer than a while; it goes on behind. */
  async #startOptional<T extends KubeObject>(cache: Cache<T>, signal: AbortSignal): Promise<void> {
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(OPTIONAL_PATIENCE_MS, resolve);
    const forget = cache.onContact(() => {
      if (cache.contact.failingSince !== undefined) resolve();
    });
    cache.start(signal).then(resolve, resolve);
    await enough;
    cancel();
    forget();
    signal.throwIfAborted();
  }
}

/** Whether more than the version of an object has changed. */
export function hasChanged(current: KubeObject | undefined, previous: KubeObject | undefined): boolean {
  if (current === undefined || previous === undefined) return true;
  return !deepEqual(withoutVersion(current), withoutVersion(previous));
}

function withoutVersion(object: KubeObject): object {
  const { resourceVersion: _version, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Objects as the stock keeps them: what counts, and nothing else, since a cluster has very many pods. */

/** Not ended, by the API server's choice. */
const LIVE_PODS = 'status.phase!=Succeeded,status.phase!=Failed';

const livePods: ResourceType<CountedPod> = namespaced('/v1', 'Pod');

/** Reads the pod that the wire brought; undefined for one that has ended. */
export function keepPod(object: CountedPod): CountedPod | undefined {
  const pod = object as unknown as Pod;
  if (isFinished(pod)) return undefined;
  const overdueMs = overdueOf(pod.metadata);
  return {
    metadata: keepMeta(pod.metadata),
    node: pod.spec?.nodeName ?? '',
    requests: [...podRequests(pod)],
    ...(overdueMs !== undefined && { overdueMs }),
  };
}

/** From then on a ResourceQuota does not count it (QuotaV1Pod in pkg/quota/v1/evaluator/core/pods.go). */
function overdueOf({ deletionTimestamp, deletionGracePeriodSeconds }: ObjectMeta): number | undefined {
  const due = Date.parse(deletionTimestamp ?? '');
  if (Number.isNaN(due) || deletionGracePeriodSeconds === undefined) return undefined;
  return due + deletionGracePeriodSeconds * 1000;
}

/** Where only the name, namespace and labels count. */
const bareOf = ({ metadata }: KubeObject): KubeObject => ({
  metadata: { ...keepMeta(metadata), labels: metadata.labels ?? {} },
});

function keepMeta(metadata: ObjectMeta): ObjectMeta {
  const { deletionTimestamp } = metadata;
  return { ...identityOf(metadata), ...(deletionTimestamp !== undefined && { deletionTimestamp }) };
}

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

function storageClassOffer({
  metadata,
  provisioner,
  volumeBindingMode,
  allowVolumeExpansion,
}: StorageClass): StorageClassOffer {
  return {
    name: metadata.name,
    provisioner,
    ...(metadata.annotations?.[DEFAULT_CLASS] === 'true' && { isDefault: true }),
    ...present({ volumeBindingMode, allowVolumeExpansion }),
  };
}
