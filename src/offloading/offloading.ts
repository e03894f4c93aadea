import type { Forwarding } from '../api/cluster-mode.ts';
import { FINALIZER_OFFLOADING, LABEL_OFFLOADING_ORIGIN } from '../api/names.ts';
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  type OffloadedNamespace,
  type PodStrategy,
} from '../api/namespace-offloading.ts';
import { namespaces } from '../api/resources.ts';
import { isTainted, type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import type { KubeObject, Namespace, Pod } from '../api/wire.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import { Controller } from '../kube/controller.ts';
import type { MakeAnew } from '../kube/drain.ts';
import { deepEqual } from '../lib/equality.ts';
import { present } from '../lib/fields.ts';
import { type Component, subscribing } from '../lib/lifecycle.ts';
import { Listeners } from '../lib/listeners.ts';
import { nodeFacts } from './admission/node-facts.ts';
import { PodsAtHome } from './at-home/pods-at-home.ts';
import { Drains, isMadeAnew } from './drain.ts';
import { ForwardedPods } from './forwarded/forwarded-pods.ts';
import { NamespacePods } from './pods.ts';
import { Reconciler } from './reconciler.ts';
import type { OffloadingParts, Remake } from './release/remake.ts';
import { type SelectedNamespaces, shortFormOf, ShortFormReconciler } from './short-form.ts';
import {
  clustersIn,
  isOfTether,
  isSelected,
  looksAfter,
  namespaceOf,
  providerOf,
  whyNotOffloadable,
  type PeerNamespaces,
  View,
} from './view.ts';
import { WaitingPods } from './waiting/waiting-pods.ts';

interface OffloadingOptions extends OffloadingParts {
  caches: Caches;
  ownSystemNamespace: string;
  /** Namespaces that are offloaded as if they were labelled one by one. */
  selected?: SelectedNamespaces;
  peerNamespaces: PeerNamespaces;
  /** What the mode of this cluster means for pods of users. Default: nothing. */
  tether?: () => Forwarding | undefined;
  remake: Remake;
  /** How long PodDisruptionBudgets may hold up a drain, milliseconds. Default 300 000. */
  budgetsForMs?: number;
}

const CONCURRENCY = 4;
const BUDGETS_FOR_MS = 300_000;

/**
 * Which namespaces are offloaded to which clusters: maintains NamespaceOffloadings and their status, and tells peering,
 * the webhook and the release of pods what is in effect.
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
  readonly #drains: Drains;
  readonly #pods: NamespacePods;
  readonly #controller: Controller;
  readonly #shortForm: Controller;
  readonly #forwarded: ForwardedPods;
  readonly #listeners = new Listeners();
  readonly onChange: Listeners['add'] = this.#listeners.add;
  /** Answers of `of` since the last change; it is called once for each namespace of a cluster. */
  readonly #wanted = new Map<string, readonly OffloadedNamespace[]>();

  constructor(options: OffloadingOptions) {
    this.#options = options;
    const { caches: shared, clock, ownSystemNamespace: systemNamespace, peerNamespaces } = options;
    this.offloadings = shared.of(namespaceOffloadings);
    this.virtualNodes = shared.of(virtualNodes, { name: 'cache of selected virtualnodes' });
    this.#namespaces = shared.of(namespaces);
    this.#drains = new Drains(clock);
    this.#pods = new NamespacePods(options);
    const caches = {
      offloadings: this.offloadings,
      virtualNodes: this.virtualNodes,
      namespaces: this.#namespaces,
    };
    this.#view = new View({ ...caches, systemNamespace, peerNamespaces });
    this.#controller = this.#makeController();
    this.#shortForm = this.#makeShortForm();
    this.#forwarded = new ForwardedPods({
      ...options,
      virtualNodes: () => this.virtualNodes.list(),
      forwarding: () => this.tether(),
      offloadingOf: (namespace) => {
        const offloading = this.offloadingOf(namespace);
        return offloading?.metadata.labels?.[LABEL_OFFLOADING_ORIGIN] === 'tether' ? offloading : undefined;
      },
    });
    this.#listen();
  }

  caches(): Component[] {
    return [this.#namespaces, this.virtualNodes, this.offloadings];
  }

  actors(): Component[] {
    return [this.#peerAnswers(), this.#shortForm, this.#controller, this.#forwarded.component()];
  }

  /** Whether the caches are complete, so that what `of` does not name is not wanted. */
  get synced(): boolean {
    return this.offloadings.synced && this.virtualNodes.synced && this.#namespaces.synced;
  }

  /** What is to be mapped to that provider. It stays mapped while pods end there. */
  of(clusterID: string): readonly OffloadedNamespace[] {
    const known = this.#wanted.get(clusterID);
    if (known !== undefined) return known;
    const own = [...this.virtualNodes.list()].filter((one) => providerOf(one) === clusterID);
    const wanted = [...this.offloadings.list()].flatMap((offloading) =>
      this.#wantedAt(offloading, clusterID, own),
    );
    this.#wanted.set(clusterID, wanted);
    return wanted;
  }

  /** Whether that pod is ours to end when its node goes, and to make anew. Bound. */
  readonly bringsHome = (pod: Pod): boolean => this.#view.bringsHome(pod);

  /** A pod of a peering that ends comes home as if its namespace left that cluster. Bound. */
  readonly makeAnew: MakeAnew = async (pod, terms) => {
    const offloading = this.offloadingOf(pod.metadata.namespace ?? '');
    if (offloading === undefined || offloading.spec.onRemoval === 'End' || !isMadeAnew(pod))
      return { mayEnd: true };
    const from = this.#view.virtualNodeOf(pod.spec?.nodeName ?? '');
    const { clusterSelector } = offloading.spec;
    return this.#pods.endWithPeering(pod, { from, ...present({ clusterSelector }), ...terms });
  };

  /** In effect only: undefined also where it is being deleted, or where the namespace never leaves the cluster. */
  offloadingOf(namespace: string): NamespaceOffloading | undefined {
    const offloading = this.#view.offloading(namespace);
    return offloading !== undefined && this.#view.isInEffect(offloading) ? offloading : undefined;
  }

  /**
   * What a label or the operator's selector stands for, from the first moment of the namespace: its object may not be there
   * yet, nor the namespace in our cache. An object that is there says more; one that is being deleted lets nothing out.
   */
  offloadingByShortForm(namespace: string, podStrategy: PodStrategy): NamespaceOffloading | undefined {
    if (this.#view.whyNotOffloadable(namespace) !== undefined) return undefined;
    const offloading = this.#view.offloading(namespace);
    if (offloading === undefined) return shortFormOf(namespace, podStrategy);
    return offloading.metadata.deletionTimestamp === undefined ? offloading : undefined;
  }

  /** What the mode of this cluster means for pods of users, in all namespaces but those of the cluster and of peers. */
  tether(): Forwarding | undefined {
    return this.#options.tether?.();
  }

  /** To be called when `tether` answers something else. */
  tetherChanged(): void {
    for (const { metadata } of this.#namespaces.list()) this.#shortForm.add(metadata.name);
    this.#forwarded.look();
    this.#changed();
  }

  /** Whether forwarded pods are being brought home at this moment. */
  get isBringingBack(): boolean {
    return this.#forwarded.isBusy;
  }

  /** Whether a tether forwards pods, or they are on their way home. */
  get hasForwarded(): boolean {
    return [...this.offloadings.list()].some(isOfTether);
  }

  /** Those that are in effect. */
  all(): NamespaceOffloading[] {
    return [...this.offloadings.list()].filter((offloading) => this.#view.isInEffect(offloading));
  }

  /** UID of the namespace of that name; undefined: there is none. */
  namespaceUid(name: string): string | undefined {
    return this.#namespaces.get(name)?.metadata.uid;
  }

  /** Whether the taint of some virtual node lets in pods that do not tolerate it: people have chosen another effect. */
  isOpen(): boolean {
    return [...this.virtualNodes.list()].some((virtualNode) => !isTainted(virtualNode));
  }

  /** Virtual nodes that the namespace may use. */
  selectedBy(offloading: NamespaceOffloading): VirtualNode[] {
    return this.#view.selectedBy(offloading);
  }

  #wantedAt(
    offloading: NamespaceOffloading,
    clusterID: string,
    own: readonly VirtualNode[],
  ): OffloadedNamespace[] {
    const { uid, finalizers = [] } = offloading.metadata;
    if (this.#view.isInEffect(offloading) && own.some((one) => isSelected(offloading, one))) {
      return [wantedOf(offloading)];
    }
    // Being drained: the mapping stays until the pods have ended, and is not made again where it is already gone.
    const isLeaving =
      finalizers.includes(FINALIZER_OFFLOADING) &&
      clustersIn(offloading).includes(clusterID) &&
      !this.#drains.isEmpty(uid, clusterID) &&
      own.some(({ spec }) => looksAfter({ spec }, namespaceOf(offloading)));
    return isLeaving ? [{ ...wantedOf(offloading), leaving: true }] : [];
  }

  #makeController(): Controller {
    const { client, clock, log, events, remake, budgetsForMs = BUDGETS_FOR_MS } = this.#options;
    const reconciler = new Reconciler({
      client,
      clock,
      log: log.named('offloading'),
      events,
      view: this.#view,
      pods: this.#pods,
      atHome: new PodsAtHome({
        client,
        clock,
        events,
        virtualNodes: (offloading) => this.#view.virtualNodeNames(offloading),
      }),
      waiting: new WaitingPods({
        client,
        clock,
        events,
        remake,
        facts: (offloading) => ({
          offloading,
          ...nodeFacts(offloading, this.selectedBy(offloading), clock.now()),
        }),
      }),
      budgetsForMs,
      drains: this.#drains,
      changed: () => this.#changed(),
    });
    return this.#controllerOf('offloading', reconciler);
  }

  #makeShortForm(): Controller {
    const { client, events, selected } = this.#options;
    const tether = (): Forwarding | undefined => this.tether();
    const reconciler = new ShortFormReconciler({ client, events, view: this.#view, selected, tether });
    this.#namespaces.onChange((_name, current, previous) => {
      if (previous !== undefined && current?.metadata.uid !== previous.metadata.uid) {
        reconciler.forget(previous.metadata.uid);
      }
    });
    return this.#controllerOf('offloading-short-form', reconciler);
  }

  #controllerOf(name: string, reconciler: Reconciler | ShortFormReconciler): Controller {
    const { clock, log, metrics } = this.#options;
    return new Controller({
      name,
      concurrency: CONCURRENCY,
      reconcile: async (namespace, { signal }) => reconciler.reconcile(namespace, signal),
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
      if (!deepEqual(actedOn(current), actedOn(previous))) this.#changed();
    });
    this.virtualNodes.onChange((_key, current, previous) => {
      if (deepEqual(factsOf(current), factsOf(previous))) return;
      this.#addAll();
      this.#changed();
    });
    this.#namespaces.onChange((name, current, previous) => {
      this.#shortForm.add(name);
      const { ownSystemNamespace } = this.#options;
      const relevant = (one?: KubeObject): unknown =>
        one && [one.metadata.uid, one.metadata.deletionTimestamp, whyNotOffloadable(one, ownSystemNamespace)];
      if (deepEqual(relevant(current), relevant(previous))) return;
      this.#controller.add(name);
      if (this.#view.offloading(name) !== undefined) this.#changed();
    });
  }

  /** Follows what peering says. A component, since peering may be made after this. */
  #peerAnswers(): Component {
    return subscribing('offloading: answers of providers', () => {
      const end = this.#options.peerNamespaces.onChange(() => this.#addAll());
      this.#addAll();
      return [end];
    });
  }

  #addAll(): void {
    for (const offloading of this.offloadings.list()) this.#controller.add(namespaceOf(offloading));
  }

  #changed(): void {
    this.#wanted.clear();
    this.#listeners.tell();
  }
}

function wantedOf(offloading: NamespaceOffloading): OffloadedNamespace {
  const { naming, remoteName, reflection = [] } = offloading.spec;
  const homeNamespace = namespaceOf(offloading);
  const name = naming === 'Same' ? homeNamespace : naming === 'Selected' ? remoteName : undefined;
  return { homeNamespace, ...(name !== undefined && { remoteName: name }), reflection };
}

/** The fields that others act on; the rest of the status is for people. */
const actedOn = (offloading: NamespaceOffloading | undefined): unknown =>
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
    virtualNode.spec.taintEffect,
    virtualNode.spec.nodeSizes,
    virtualNode.spec.namespaces,
    virtualNode.status?.namespaces,
    virtualNode.status?.conditions,
    virtualNode.status?.stricterPolicies,
  ];
