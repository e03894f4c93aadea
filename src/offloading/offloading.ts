import type { LabelSelector } from '../api/label-selector.ts';
import { FINALIZER_OFFLOADING } from '../api/names.ts';
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  type OffloadedNamespace,
} from '../api/namespace-offloading.ts';
import { namespaces } from '../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import type { KubeObject, Namespace } from '../api/wire.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import { Controller, type ControllerMetrics } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Clock } from '../lib/clock.ts';
import { deepEqual } from '../lib/equality.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import { Departures } from './departures.ts';
import { NamespacePods, type Remaker } from './pods.ts';
import type { Standing } from './ports.ts';
import { Reconciler } from './reconciler.ts';
import { refusalOf } from './refusal.ts';
import { isSelected, names, providerOf } from './selection.ts';
import { ShortFormKeeper } from './short-form-keeper.ts';
import { clustersIn, namespaceOf, View } from './view.ts';

export interface OffloadingOptions {
  client: KubeClient;
  caches: Caches;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
  events: EventRecorder;
  ownSystemNamespace: string;
  /** Namespaces that are offloaded as if they were labelled one by one. */
  selector?: LabelSelector;
  standing: Standing;
  remaker: Remaker;
  /** How long PodDisruptionBudgets hold up what has to leave, milliseconds. Default 300 000. */
  budgetsForMs?: number;
}

const CONCURRENCY = 4;
const BUDGETS_FOR_MS = 300_000;

/**
 * Which namespaces stretch over which clusters: keeps NamespaceOffloadings and their status, and tells peering, the
 * webhook and the release of pods what is in effect.
 *
 *     made ─▶ finalizer ─▶ in effect: asked for at providers, mapped, pods let out
 *       deleted, or cluster no longer selected ─▶ pods end there ─▶ mapping goes ─▶ entry, finalizer go
 */
export class Offloading {
  readonly offloadings: Cache<NamespaceOffloading>;
  readonly virtualNodes: Cache<VirtualNode>;
  readonly #options: OffloadingOptions;
  readonly #namespaces: Cache<Namespace>;
  readonly #view: View;
  readonly #departures: Departures;
  readonly #controller: Controller;
  readonly #shortForm: Controller;
  readonly #listeners = new Set<() => void>();
  /** Answers of `of` since the last change: it is asked for each namespace of a cluster. */
  readonly #wanted = new Map<string, readonly OffloadedNamespace[]>();

  constructor(options: OffloadingOptions) {
    this.#options = options;
    const { caches: shared, clock, ownSystemNamespace: systemNamespace, standing } = options;
    this.offloadings = shared.of(namespaceOffloadings);
    this.virtualNodes = shared.of(virtualNodes, { name: 'cache of selected virtualnodes' });
    this.#namespaces = shared.of(namespaces);
    this.#departures = new Departures(clock);
    const caches = {
      offloadings: this.offloadings,
      virtualNodes: this.virtualNodes,
      namespaces: this.#namespaces,
    };
    this.#view = new View({ ...caches, systemNamespace, standing });
    this.#controller = this.#makeController();
    this.#shortForm = this.#makeShortForm();
    this.#listen();
  }

  caches(): Component[] {
    return [this.#namespaces, this.virtualNodes, this.offloadings];
  }

  actors(): Component[] {
    return [this.#standings(), this.#shortForm, this.#controller];
  }

  /** Whether what `of` does not name is known not to be wanted. */
  get synced(): boolean {
    return this.offloadings.synced && this.virtualNodes.synced && this.#namespaces.synced;
  }

  /** What is to be mapped to that provider; while pods end there, that stays as it is. */
  of(clusterID: string): readonly OffloadedNamespace[] {
    const known = this.#wanted.get(clusterID);
    if (known !== undefined) return known;
    const own = [...this.virtualNodes.list()].filter((one) => providerOf(one) === clusterID);
    const wanted = [...this.offloadings.list()]
      .filter((offloading) => this.#isWanted(offloading, clusterID, own))
      .map(wantedOf);
    this.#wanted.set(clusterID, wanted);
    return wanted;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** In effect: undefined also where it is being deleted, or where the namespace never leaves the cluster. */
  offloadingOf(namespace: string): NamespaceOffloading | undefined {
    const offloading = this.#view.offloading(namespace);
    return offloading !== undefined && this.#view.isInEffect(offloading) ? offloading : undefined;
  }

  /** Those in effect. */
  all(): NamespaceOffloading[] {
    return [...this.offloadings.list()].filter((offloading) => this.#view.isInEffect(offloading));
  }

  /** UID of the namespace of that name; undefined: there is none. */
  namespaceUid(name: string): string | undefined {
    return this.#namespaces.get(name)?.metadata.uid;
  }

  /** Virtual nodes that the namespace may use. */
  selectedBy(offloading: NamespaceOffloading): VirtualNode[] {
    return this.#view.selectedBy(offloading);
  }

  #isWanted(offloading: NamespaceOffloading, clusterID: string, own: readonly VirtualNode[]): boolean {
    const { uid, finalizers = [] } = offloading.metadata;
    if (this.#view.isInEffect(offloading) && own.some((one) => isSelected(offloading, one))) return true;
    // Being left: kept until its pods have ended, and not brought back where it has gone already.
    return (
      finalizers.includes(FINALIZER_OFFLOADING) &&
      clustersIn(offloading).includes(clusterID) &&
      !this.#departures.isEmpty(uid, clusterID) &&
      own.some(({ spec }) => names({ spec }, namespaceOf(offloading)))
    );
  }

  #makeController(): Controller {
    const { client, clock, log, events, metrics, remaker, budgetsForMs = BUDGETS_FOR_MS } = this.#options;
    const reconciler = new Reconciler({
      client,
      clock,
      log: log.named('offloading'),
      events,
      view: this.#view,
      pods: new NamespacePods({ client, clock, events, remaker }),
      budgetsForMs,
      departures: this.#departures,
      changed: () => this.#changed(),
    });
    return new Controller({
      name: 'offloading',
      concurrency: CONCURRENCY,
      reconcile: async (namespace, { signal }) => reconciler.reconcile(namespace, signal),
      clock,
      log,
      ...(metrics && { metrics }),
    });
  }

  #makeShortForm(): Controller {
    const { client, clock, log, events, metrics, selector } = this.#options;
    const keeper = new ShortFormKeeper({ client, events, view: this.#view, selector });
    this.#namespaces.onChange((_name, current, previous) => {
      if (previous !== undefined && current?.metadata.uid !== previous.metadata.uid) {
        keeper.forget(previous.metadata.uid);
      }
    });
    return new Controller({
      name: 'offloading-short-form',
      concurrency: CONCURRENCY,
      reconcile: async (namespace, { signal }) => keeper.reconcile(namespace, signal),
      clock,
      log,
      ...(metrics && { metrics }),
    });
  }

  #listen(): void {
    this.offloadings.onChange((_key, current, previous) => {
      const namespace = namespaceOf((current ?? previous) as NamespaceOffloading);
      this.#controller.add(namespace);
      this.#shortForm.add(namespace);
      if (!deepEqual(wishOf(current), wishOf(previous))) this.#changed();
    });
    this.virtualNodes.onChange((_key, current, previous) => {
      if (deepEqual(factsOf(current), factsOf(previous))) return;
      this.#addAll();
      this.#changed();
    });
    this.#namespaces.onChange((name, current, previous) => {
      this.#shortForm.add(name);
      const { ownSystemNamespace } = this.#options;
      const standing = (one?: KubeObject): unknown =>
        one && [one.metadata.uid, one.metadata.deletionTimestamp, refusalOf(one, ownSystemNamespace)];
      if (deepEqual(standing(current), standing(previous))) return;
      this.#controller.add(name);
      if (this.#view.offloading(name) !== undefined) this.#changed();
    });
  }

  /** Peering's answers; it may be made after us. */
  #standings(): Component {
    let end: (() => void) | undefined;
    return {
      name: 'offloading: answers of providers',
      start: async () => {
        end = this.#options.standing.onChange(() => this.#addAll());
        this.#addAll();
        await Promise.resolve();
      },
      stop: async () => {
        end?.();
        await Promise.resolve();
      },
    };
  }

  #addAll(): void {
    for (const offloading of this.offloadings.list()) this.#controller.add(namespaceOf(offloading));
  }

  #changed(): void {
    this.#wanted.clear();
    for (const listener of this.#listeners) listener();
  }
}

function wantedOf(offloading: NamespaceOffloading): OffloadedNamespace {
  const { naming, remoteName, reflection = [] } = offloading.spec;
  const homeNamespace = namespaceOf(offloading);
  const name = naming === 'Same' ? homeNamespace : naming === 'Selected' ? remoteName : undefined;
  return { homeNamespace, ...(name !== undefined && { remoteName: name }), reflection };
}

/** What others act on; the rest of the status is for people. */
const wishOf = (offloading: NamespaceOffloading | undefined): unknown =>
  offloading && [
    offloading.metadata.uid,
    offloading.metadata.deletionTimestamp,
    offloading.metadata.finalizers,
    offloading.spec,
    offloading.status?.clusters?.map(({ cluster, phase, virtualNodes: on }) => [cluster, phase, on]),
  ];

const factsOf = (virtualNode: VirtualNode | undefined): unknown =>
  virtualNode && [
    virtualNode.metadata.labels,
    virtualNode.metadata.deletionTimestamp,
    virtualNode.spec.nodeName,
    virtualNode.spec.labels,
    virtualNode.spec.namespaces,
    virtualNode.status?.namespaces,
    virtualNode.status?.conditions,
  ];
