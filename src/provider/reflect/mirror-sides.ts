import { LABEL_MANAGED_BY } from '../../api/names.ts';
import type { ReflectionRule } from '../../api/reflection.ts';
import type { NamespaceMapping } from '../../api/virtual-node.ts';
import type { EndpointSlice, Ingress, KubeObject } from '../../api/wire.ts';
import type { Basics } from '../../lib/basics.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { deepEqual } from '../../lib/equality.ts';
import { endpointSliceKind, serviceOf } from './endpoint-slices.ts';
import { ingressKind, secretsOf, servicesOf } from './ingresses.ts';
import type { MirroredKindName, Sides } from './mirrored-kind.ts';
import { ruledKinds, type BadRule, type RuledKind } from './mirrored-kinds.ts';
import type { GroupResource } from './rules.ts';

export type Side = 'home' | 'remote';

/** Both sides of one offloaded namespace, and how they are reached. */
export interface SidesOptions extends Basics {
  mapping: NamespaceMapping;
  /** Value of the label that marks copies as ours. */
  owner: string;
  home: KubeClient;
  foreign: KubeClient;
  /** Of its caches. */
  awaitsRights?: boolean;
}

export interface MirrorSidesListener {
  /** An object changed; the name is its own on that side. `states`: what it was and what it is, where it existed. */
  changed: (side: Side, kind: MirroredKindName, name: string, states: readonly KubeObject[]) => void;
  /** Both sides of the kind are complete. */
  synced: (kind: MirroredKindName) => void;
  /** One side has lost its API server, is refused by it, or has found it again. */
  contact: (kind: MirroredKindName) => void;
  /** A copy that was awaited does not come. */
  absent: () => void;
}

/** A kind that is open: both sides are cached, or about to be. */
export interface OpenKind extends Readonly<Sides> {
  readonly ruled: RuledKind;
  /** Names over there of copies that may have been made, and that the cache has not shown yet. */
  readonly awaited: ReadonlySet<string>;
}

interface OpenedKind extends OpenKind {
  ruled: RuledKind;
  readonly awaited: Set<string>;
  readonly abort: AbortController;
  running: Promise<void>;
}

const BY_SERVICE = 'service';
const BY_SECRET = 'secret';
/** Indexes for kinds whose objects are looked up from another object. */
const INDEXES: Readonly<Record<MirroredKindName, Record<string, (object: KubeObject) => string[]>>> = {
  [endpointSliceKind.kind]: { [BY_SERVICE]: (slice) => [serviceOf(slice as EndpointSlice) ?? ''] },
  [ingressKind.kind]: {
    [BY_SECRET]: (ingress) => secretsOf(ingress),
    [BY_SERVICE]: (ingress) => servicesOf(ingress),
  },
};

/**
 * Both sides of the kinds that are mirrored, of one offloaded namespace. A kind is open while a rule wants objects of it, and
 * until those of an earlier rule are gone. Kinds that mean nothing without a network are open only while one joins the two
 * clusters: a foreign cluster of an earlier version would not let them be read, and pods must not wait for that.
 */
export class MirrorSides {
  readonly #options: SidesOptions;
  readonly #entries = new Map<MirroredKindName, OpenedKind>();
  /** Kinds of which nothing is wanted over there, and nothing is there. */
  readonly #drained = new Set<MirroredKindName>();
  readonly #closing = new Set<Promise<void>>();
  #rules: readonly ReflectionRule[] | undefined | 'None' = 'None';
  #ruled: ReturnType<typeof ruledKinds> = { kinds: [], bad: [] };
  #listener: MirrorSidesListener | undefined;
  #isStopped = false;

  constructor(options: SidesOptions) {
    this.#options = options;
  }

  listen(listener: MirrorSidesListener): void {
    this.#listener = listener;
  }

  /** Opens and closes what the rules say; returns at once. Doing it twice does nothing the second time. */
  set({ rules, hasNetwork }: { rules: readonly ReflectionRule[] | undefined; hasNetwork: boolean }): void {
    if (this.#isStopped) return;
    if (this.#rules === 'None' || !deepEqual(this.#rules, rules)) this.#ruled = ruledKinds(rules);
    this.#rules = rules;
    const named = new Map(this.#ruled.kinds.map((ruled) => [ruled.kind.kind, ruled]));
    for (const [name, entry] of this.#entries) {
      const ruled = named.get(name) ?? withNone(entry.ruled);
      // With another version the objects look different.
      if (ruled.kind.type.version === entry.ruled.kind.type.version) entry.ruled = ruled;
      else this.#close(name, entry);
    }
    for (const [name, ruled] of named) {
      if (ruled.rule.policy !== 'None') this.#drained.delete(name);
      const isDue = !this.#drained.has(name) && (hasNetwork || !ruled.kind.needsNetwork);
      if (isDue && !this.#entries.has(name)) this.#open(name, ruled);
    }
    this.settle();
  }

  /** Closes what is no longer wanted and of which nothing is left over there. Returns whether it has closed something. */
  settle(): boolean {
    let hasClosed = false;
    for (const [name, entry] of this.#entries) {
      if (entry.ruled.rule.policy !== 'None' || holdsCopies(entry)) continue;
      this.#drained.add(name);
      this.#close(name, entry);
      hasClosed = true;
    }
    return hasClosed;
  }

  of(kind: MirroredKindName): OpenKind | undefined {
    return this.#entries.get(kind);
  }

  /** To be called before a copy is made: the kind stays open until the cache has shown it, or `absent` says that it is not there. */
  awaits(kind: MirroredKindName, remoteName: string): void {
    this.#entries.get(kind)?.awaited.add(remoteName);
  }

  isAwaited(kind: MirroredKindName, remoteName: string): boolean {
    return this.#entries.get(kind)?.awaited.has(remoteName) ?? false;
  }

  absent(kind: MirroredKindName, remoteName: string): void {
    if (this.#entries.get(kind)?.awaited.delete(remoteName) === true) this.#listener?.absent();
  }

  /** In this order: kinds that follow another come after it. */
  open(): readonly OpenKind[] {
    return [...this.#entries.values()];
  }

  /** Rules that can have no effect. */
  get bad(): readonly BadRule[] {
    return this.#ruled.bad;
  }

  /** Whether nothing of that kind is wanted over there, and nothing is there. */
  isDrained(kind: MirroredKindName): boolean {
    return this.#drained.has(kind);
  }

  /** EndpointSlices of one Service at home. */
  slicesOf(service: string): readonly EndpointSlice[] {
    const slices = this.#entries.get(endpointSliceKind.kind)?.home.byIndex(BY_SERVICE, service);
    return (slices ?? []) as readonly EndpointSlice[];
  }

  /** At home, whether they travel or not. */
  ingressesWith(secret: string): readonly Ingress[] {
    return this.#entries.get(ingressKind.kind)?.home.byIndex(BY_SECRET, secret) ?? [];
  }

  /** At home, whether they travel or not. */
  ingressesTo(service: string): readonly Ingress[] {
    return this.#entries.get(ingressKind.kind)?.home.byIndex(BY_SERVICE, service) ?? [];
  }

  /** Whether anything of ours may be over there, of the kinds that are meant. Default: all. */
  holdsCopies(isMeant: (kind: GroupResource) => boolean = () => true): boolean {
    return [...this.#entries.values()].some(
      (entry) => holdsCopies(entry) && isMeant(entry.ruled.kind.ruledBy),
    );
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const [name, entry] of this.#entries) this.#close(name, entry);
    await Promise.all(this.#closing);
  }

  #open(name: MirroredKindName, ruled: RuledKind): void {
    const { mapping, owner, home, foreign, clock, log, awaitsRights = false } = this.#options;
    const { type, copyType = type } = ruled.kind;
    const labelSelector = `${LABEL_MANAGED_BY}=${owner}`;
    const sides: Sides = {
      home: new Informer({
        client: home,
        type,
        list: { namespace: mapping.homeNamespace },
        clock,
        log,
        awaitsRights,
        indexes: INDEXES[name] ?? {},
      }),
      remote: new Informer({
        client: foreign,
        type: copyType,
        list: { namespace: mapping.tenantNamespace, labelSelector },
        clock,
        log,
        awaitsRights,
      }),
    };
    const abort = new AbortController();
    const entry: OpenedKind = {
      ...sides,
      ruled,
      awaited: new Set(),
      abort,
      running: Promise.resolve(),
    };
    this.#entries.set(name, entry);
    for (const side of ['home', 'remote'] as const) {
      sides[side].onChange((key, ...states) => {
        const known = states.filter((state) => state !== undefined);
        const objectName = key.slice(key.indexOf('/') + 1);
        if (side === 'remote') entry.awaited.delete(objectName);
        this.#listener?.changed(side, name, objectName, known);
      });
      sides[side].onContact(() => this.#listener?.contact(name));
    }
    entry.running = this.#run(name, entry);
  }

  async #run(name: MirroredKindName, { home, remote, abort: { signal } }: OpenedKind): Promise<void> {
    await Promise.allSettled(
      [home, remote].map(async (informer) => {
        await informer.start(signal);
        // For a kind that is no longer wanted, one side alone matters.
        if (!signal.aborted) this.#listener?.synced(name);
      }),
    );
  }

  #close(name: MirroredKindName, { home, remote, abort, running }: OpenedKind): void {
    this.#entries.delete(name);
    abort.abort(new Error('closed'));
    const closing = (async (): Promise<void> => {
      await running;
      await Promise.all([home.stop(), remote.stop()]);
    })().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

const withNone = (ruled: RuledKind): RuledKind => ({ ...ruled, rule: { ...ruled.rule, policy: 'None' } });

/** A foreign cluster that does not know the kind has no such objects; where we may no longer read it, nothing is known. */
function holdsCopies({ remote, awaited }: OpenedKind): boolean {
  const { status } = remote.contact;
  if (status === 404 || status === 403) return false;
  return !remote.synced || remote.size > 0 || awaited.size > 0;
}
