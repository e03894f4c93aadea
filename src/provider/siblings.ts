import { LABEL_HOME_UID, LABEL_MANAGED_BY, LABEL_PROVIDER } from '../api/names.ts';
import { pods } from '../api/resources.ts';
import { type NamespaceMapping, type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ReconcileResult } from '../kube/controller.ts';
import type { Clock } from '../lib/clock.ts';
import { deepEqual } from '../lib/equality.ts';
import { Background, type Component } from '../lib/lifecycle.ts';
import { Listeners } from '../lib/listeners.ts';
import { type GroupResource, ruleFor } from './reflect/rules.ts';

/** Who looks after the copies of one kind in a tenant namespace that a virtual node leaves. */
export type Heir = 'Nobody' | 'Undecided' | 'Others';

/** What of a VirtualNode decides. */
type Sibling = Pick<VirtualNode, 'metadata' | 'status'> & { spec: Pick<VirtualNode['spec'], 'namespaces'> };

/**
 * Others inherit what they are asked to bring there, once their status says so: from then on they remove it when they leave, even
 * if no agent runs at that moment. Who leaves last finds nobody. Pure.
 *
 * @param own name of the virtual node that leaves
 * @param virtualNodes of the foreign cluster, its own among them, in one view: what one of them has not left in it, the others
 *   will still see it leave
 */
export function heirOf(
  { mapping, kind, own }: { mapping: NamespaceMapping; kind: GroupResource; own: string },
  virtualNodes: readonly Sibling[],
): Heir {
  const brings = (one: NamespaceMapping): boolean =>
    isSame(one, mapping) && ruleFor(one.reflection, kind).policy !== 'None';
  // The view lags behind what we know of ourselves.
  const isEarly = virtualNodes.some(
    ({ metadata, spec }) => metadata.name === own && spec.namespaces?.some((one) => isSame(one, mapping)),
  );
  if (isEarly) return 'Undecided';
  const heirs = virtualNodes.filter(
    ({ metadata, spec }) => metadata.name !== own && spec.namespaces?.some(brings),
  );
  if (heirs.length === 0) return 'Nobody';
  return heirs.some(({ status }) => status?.namespaces?.some(brings)) ? 'Others' : 'Undecided';
}

const isSame = (a: NamespaceMapping, b: NamespaceMapping): boolean =>
  a.homeNamespace === b.homeNamespace && a.tenantNamespace === b.tenantNamespace;

interface SiblingsOptions {
  /** Our own, as read at start. */
  virtualNode: VirtualNode;
  /** Of the process, at the home cluster. */
  caches: Caches;
  /** The same, where the process watches all virtual nodes. */
  shared?: Caches | undefined;
  foreign: KubeClient;
  clock: Clock;
}

/** Pods in a tenant namespace are looked at this often at most. */
const FRESH_MS = 10_000;

/** The virtual nodes of one foreign cluster, which share the copies in its tenant namespaces. */
export class Siblings implements Component {
  readonly name = 'siblings';
  readonly #options: SiblingsOptions;
  /** All of the foreign cluster, ours among them; undefined where it can have no others. */
  readonly #virtualNodes: Cache<VirtualNode> | undefined;
  readonly #background = new Background();
  readonly #changed = new Listeners();
  /** Another one has come, gone, or changed which namespaces it has. */
  readonly onChange: Listeners['add'] = this.#changed.add;
  readonly #seen = new Map<string, { atMs: number; owners: Promise<ReadonlySet<string>> }>();

  constructor(options: SiblingsOptions) {
    this.#options = options;
    const clusterID = options.virtualNode.metadata.labels?.[LABEL_PROVIDER];
    if (clusterID === undefined) return;
    const { caches, shared } = options;
    const cache = (this.#virtualNodes =
      shared?.of(virtualNodes, { only: ({ metadata }) => metadata.labels?.[LABEL_PROVIDER] === clusterID }) ??
      caches.of(virtualNodes, { list: { labelSelector: `${LABEL_PROVIDER}=${clusterID}` } }));
    cache.onChange((_key, current, previous) => {
      if (!deepEqual(factsOf(current), factsOf(previous))) this.#change();
    });
    cache.onContact(() => {
      if (!cache.synced) this.#change();
    });
  }

  /** Does not wait: they matter only where a namespace is left. */
  start(): void {
    this.#background.run(async (signal) => this.#virtualNodes?.start(signal).catch(() => undefined));
  }

  async stop(): Promise<void> {
    await this.#background.stop();
    await this.#virtualNodes?.stop();
  }

  /** Of a namespace that we leave. */
  heirOf(mapping: NamespaceMapping, kind: GroupResource): Heir {
    const cache = this.#virtualNodes;
    if (cache === undefined) return 'Nobody';
    if (cache.synced) return heirOf({ mapping, kind, own: this.#own }, [...cache.list()]);
    // An agent that people have set up for one virtual node may read no other.
    return cache.contact.code === 'Forbidden' ? 'Nobody' : 'Undecided';
  }

  /**
   * Whether the copies of a namespace that we leave are not ours to delete: others bring them there, or still have pods there. Undefined:
   * they are. The rest is woken by `onChange`.
   */
  async keep(mapping: NamespaceMapping, kind: GroupResource): Promise<ReconcileResult | undefined> {
    if (this.heirOf(mapping, kind) !== 'Nobody') return {};
    const others = [...(this.#virtualNodes?.list() ?? [])].filter(
      ({ metadata }) => metadata.name !== this.#own,
    );
    if (others.length === 0) return undefined;
    const owners = await this.#ownersOfPods(mapping.tenantNamespace);
    return others.some(({ metadata }) => owners.has(metadata.name))
      ? { requeueAfterMs: FRESH_MS }
      : undefined;
  }

  get #own(): string {
    return this.#options.virtualNode.metadata.name;
  }

  #change(): void {
    // Pods may have been begun until then.
    this.#seen.clear();
    this.#changed.tell();
  }

  async #ownersOfPods(namespace: string): Promise<ReadonlySet<string>> {
    const nowMs = this.#options.clock.monotonic();
    const seen = this.#seen.get(namespace);
    if (seen !== undefined && nowMs - seen.atMs < FRESH_MS) return seen.owners;
    const owners = this.#look(namespace);
    const entry = { atMs: nowMs, owners };
    this.#seen.set(namespace, entry);
    try {
      return await owners;
    } catch (error) {
      if (this.#seen.get(namespace) === entry) this.#seen.delete(namespace);
      throw error;
    }
  }

  async #look(namespace: string): Promise<ReadonlySet<string>> {
    const selection = { namespace, labelSelector: LABEL_HOME_UID, metadataOnly: true };
    const { items } = await this.#options.foreign.list(pods, selection);
    return new Set(items.flatMap(({ metadata }) => metadata.labels?.[LABEL_MANAGED_BY] ?? []));
  }
}

const factsOf = (virtualNode: VirtualNode | undefined): unknown =>
  virtualNode && [virtualNode.spec.namespaces, virtualNode.status?.namespaces];
