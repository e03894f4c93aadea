import { LABEL_HOME_UID, LABEL_MANAGED_BY } from '../api/names.ts';
import { configMaps, pods, secrets } from '../api/resources.ts';
import type { NamespaceMapping } from '../api/virtual-node.ts';
import type { KubeObject, Pod } from '../api/wire.ts';
import { Informer } from '../kube/informer.ts';
import { deepEqual } from '../lib/equality.ts';
import { Background } from '../lib/lifecycle.ts';
import { remember } from '../lib/remember.ts';
import { RemoteEvents } from './events/remote-events.ts';
import type { ReferenceKind } from './forge/references.ts';
import { FreedRoom } from './pods/freed-room.ts';
import {
  MirrorSides,
  type MirrorSidesListener,
  type Side,
  type SidesOptions,
} from './reflect/mirror-sides.ts';
import type { Sides } from './reflect/mirrored-kind.ts';
import type { GroupResource } from './reflect/rules.ts';
import { RESOURCES } from './reflect/travel.ts';
import { ClaimSides } from './storage/claim-sides.ts';

/** Deleted pods whose last state is kept until home has shown it. */
const MAX_LAST_STATES = 1_000;

/** `owner`: of the copies; see ReflectorOptions. */
interface TenantOptions extends SidesOptions {
  virtualNode: string;
}

/**
 * The caches of one offloaded namespace: everything of ours in its tenant namespace over there, and the metadata of ConfigMaps
 * and Secrets at home.
 */
export class Tenant {
  #mapping: NamespaceMapping;
  readonly virtualNode: string;
  readonly pods: Informer<Pod>;
  /** By metadata only: no Secret's data is cached. */
  readonly caches: Readonly<Record<ReferenceKind, Sides>>;
  /** Services, Ingresses and other kinds that rules name; each kind is opened separately. */
  readonly mirror: MirrorSides;
  /** Events over there; opened separately, and no part of `synced`. */
  readonly events: RemoteEvents;
  /** Opened separately, where volumes are used. */
  readonly claims: ClaimSides;
  /** Of remote pods that have just ended. */
  readonly freed: FreedRoom;
  readonly #background = new Background();
  /** By name, pods that were deleted over there, as the deletion showed them. */
  readonly #lastStates = new Map<string, Pod>();

  constructor(options: TenantOptions) {
    const { mapping, virtualNode, owner, home, foreign, clock, log } = options;
    this.#mapping = mapping;
    this.virtualNode = virtualNode;
    const ours = {
      namespace: mapping.tenantNamespace,
      labelSelector: `${LABEL_MANAGED_BY}=${virtualNode}`,
    };
    // Tokens' Secrets are each virtual node's own.
    const shared =
      owner === virtualNode
        ? ours
        : { ...ours, labelSelector: `${LABEL_MANAGED_BY} in (${virtualNode},${owner})` };
    // Of a new namespace, both clusters grant the rights while this begins.
    const awaitsRights = true;
    const common = { clock, log: log.named('tenant', { tenant: mapping.tenantNamespace }), awaitsRights };
    this.pods = new Informer({ ...common, client: foreign, type: pods, list: ours, packs: true });
    this.freed = new FreedRoom(clock);
    this.pods.onChange((_key, current, previous) => {
      this.freed.changed(current, previous);
      if (current !== undefined) this.#lastStates.delete(current.metadata.name);
      else if (previous !== undefined)
        remember(this.#lastStates, previous.metadata.name, previous, MAX_LAST_STATES);
    });
    const caches = (type: typeof configMaps | typeof secrets): Sides => ({
      home: new Informer<KubeObject>({
        ...common,
        client: home,
        type,
        list: { namespace: mapping.homeNamespace, metadataOnly: true },
      }),
      remote: new Informer<KubeObject>({
        ...common,
        client: foreign,
        type,
        list: { ...shared, metadataOnly: true },
      }),
    });
    this.caches = { ConfigMap: caches(configMaps), Secret: caches(secrets) };
    const sides = { ...options, ...common };
    this.mirror = new MirrorSides(sides);
    this.events = new RemoteEvents(sides);
    this.claims = new ClaimSides(sides);
  }

  get mapping(): NamespaceMapping {
    return this.#mapping;
  }

  /** The same namespaces with other rules. */
  update(mapping: NamespaceMapping): void {
    this.#mapping = mapping;
  }

  get #informers(): (Informer<Pod> | Informer<KubeObject>)[] {
    const { ConfigMap, Secret } = this.caches;
    return [this.pods, ConfigMap.home, ConfigMap.remote, Secret.home, Secret.remote];
  }

  /** Whether all caches are complete: before that, absence means nothing. */
  get synced(): boolean {
    return this.#informers.every((informer) => informer.synced);
  }

  /** Whether the first list of its pods is on its way: when it has come, or cannot come, all pods of the namespace are looked at. */
  get isFilling(): boolean {
    return !this.pods.synced && this.pods.contact.error === undefined;
  }

  /**
   * Whether its home side may not even be read. When a home namespace is deleted, our rights in it go, too, and a program that
   * starts after that never completes its caches.
   */
  get isHomeForbidden(): boolean {
    const { ConfigMap, Secret } = this.caches;
    return [ConfigMap.home, Secret.home].every(
      ({ synced, contact }) => !synced && contact.code === 'Forbidden',
    );
  }

  /** Whether something is over there that no other virtual node looks after: pods and their tokens. */
  get holdsOwn(): boolean {
    return this.pods.size > 0 || [...this.caches.Secret.remote.list()].some((secret) => this.#isOwn(secret));
  }

  /** Whether copies of such kinds are over there, whoever made them. */
  holdsCopies(isMeant: (kind: GroupResource) => boolean): boolean {
    const kinds: readonly ReferenceKind[] = ['ConfigMap', 'Secret'];
    const isHeld = kinds.some(
      (kind) => this.caches[kind].remote.size > 0 && isMeant({ group: '', resource: RESOURCES[kind] }),
    );
    return isHeld || this.mirror.holdsCopies(isMeant);
  }

  #isOwn({ metadata }: KubeObject): boolean {
    return metadata.labels?.[LABEL_MANAGED_BY] === this.virtualNode;
  }

  /** The error of the first cache that has one. */
  get problem(): string | undefined {
    return this.#informers.map(({ contact }) => contact.error).find((error) => error !== undefined);
  }

  /**
   * Returns at once: the foreign cluster may be away for long. `onPods`: the remote pods are all known, which is enough to let
   * pods go.
   */
  start({ onPods, onSynced, onContact }: Record<'onPods' | 'onSynced' | 'onContact', () => void>): void {
    for (const informer of this.#informers) informer.onContact(onContact);
    this.#background.run(async (signal) => {
      const starts = this.#informers.map(async (informer) => {
        await informer.start(signal);
        if (informer === this.pods && !signal.aborted) onPods();
      });
      await Promise.allSettled(starts);
      if (!signal.aborted) onSynced();
    });
  }

  async stop(): Promise<void> {
    await this.#background.stop();
    await Promise.all(
      [...this.#informers, this.mirror, this.events, this.claims].map(async (part) => part.stop()),
    );
  }

  /** The remote pod that stands for the home pod of this name, whatever its UID. */
  remotePod(name: string): Pod | undefined {
    return this.pods.get(`${this.mapping.tenantNamespace}/${name}`);
  }

  /** The last state of the deleted remote pod of this home pod: its deletion may have overtaken how it ended. */
  lastState({ metadata: { name, uid } }: Pod): Pod | undefined {
    const last = this.#lastStates.get(name);
    return last?.metadata.labels?.[LABEL_HOME_UID] === uid ? last : undefined;
  }

  forgetLastState(name: string): void {
    this.#lastStates.delete(name);
  }
}

export interface TenantListener {
  /** The remote pods of the namespace are all known. */
  pods: (homeNamespace: string) => void;
  /** All caches of the namespace are complete. */
  synced: (homeNamespace: string) => void;
  /** A cache of the namespace has lost its API server, or found it again. */
  contact: (homeNamespace: string) => void;
  /** A remote pod changed; the key is the home pod's. */
  pod: (homeKey: string) => void;
  /** A ConfigMap or Secret changed on either side; names are the object's own on that side. */
  reference: (side: Side, kind: ReferenceKind, homeNamespace: string, name: string) => void;
  /** The namespace has been opened: its caches fill. */
  opened: (tenant: Tenant) => void;
  /** Its rules have changed. */
  ruled: (tenant: Tenant) => void;
  /** Makes the listener for the kinds that are mirrored. */
  mirror: (tenant: Tenant) => MirrorSidesListener;
}

const nameOf = (key: string): string => key.slice(key.indexOf('/') + 1);

/** The offloaded namespaces of one virtual node, set by value. */
export class Tenants {
  readonly #create: (mapping: NamespaceMapping) => Tenant;
  readonly #byHome = new Map<string, Tenant>();
  readonly #closing = new Set<Promise<void>>();
  #listener: TenantListener | undefined;
  #isOpen = false;

  constructor(create: (mapping: NamespaceMapping) => Tenant) {
    this.#create = create;
  }

  listen(listener: TenantListener): void {
    this.#listener = listener;
  }

  of(homeNamespace: string): Tenant | undefined {
    return this.#byHome.get(homeNamespace);
  }

  all(): Iterable<Tenant> {
    return this.#byHome.values();
  }

  /** Of the namespaces, at home and over there. */
  names(): (readonly [home: string, tenant: string])[] {
    return Array.from(this.#byHome.values(), ({ mapping }) => [
      mapping.homeNamespace,
      mapping.tenantNamespace,
    ]);
  }

  get synced(): boolean {
    return this.#byHome.values().every((tenant) => tenant.synced);
  }

  /** Why the first incomplete namespace is not complete; undefined when all are. */
  get missing(): string | undefined {
    const tenant = this.#byHome.values().find((one) => !one.synced);
    if (tenant === undefined) return undefined;
    const what = `tenant namespace "${tenant.mapping.tenantNamespace}" has not been read completely`;
    return tenant.problem === undefined ? what : `${what}: ${tenant.problem}`;
  }

  /** `set` takes effect only from now until `stop`: nothing may be opened that nobody would close. */
  open(): void {
    this.#isOpen = true;
  }

  /** Opens new namespaces and closes those that are no longer named. A second call does nothing. */
  set(mappings: readonly NamespaceMapping[]): void {
    if (this.#isOpen) this.#set(mappings);
  }

  async stop(): Promise<void> {
    this.#isOpen = false;
    this.#set([]);
    await Promise.all(this.#closing);
  }

  #set(mappings: readonly NamespaceMapping[]): void {
    const wanted = new Map(mappings.map((mapping) => [mapping.homeNamespace, mapping]));
    for (const [home, tenant] of this.#byHome) {
      if (wanted.get(home)?.tenantNamespace === tenant.mapping.tenantNamespace) continue;
      this.#byHome.delete(home);
      const closing = tenant.stop().finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
    }
    for (const [home, mapping] of wanted) {
      const known = this.#byHome.get(home);
      if (known !== undefined) {
        if (deepEqual(known.mapping, mapping)) continue;
        known.update(mapping);
        this.#listener?.ruled(known);
        continue;
      }
      const tenant = this.#create(mapping);
      this.#byHome.set(home, tenant);
      this.#connect(tenant);
      tenant.start({
        onPods: () => this.#listener?.pods(home),
        onSynced: () => this.#listener?.synced(home),
        onContact: () => this.#listener?.contact(home),
      });
      this.#listener?.opened(tenant);
    }
  }

  #connect(tenant: Tenant): void {
    const home = tenant.mapping.homeNamespace;
    tenant.pods.onChange((key) => this.#listener?.pod(`${home}/${nameOf(key)}`));
    for (const kind of ['ConfigMap', 'Secret'] as const) {
      for (const side of ['home', 'remote'] as const) {
        tenant.caches[kind][side].onChange((key) => this.#listener?.reference(side, kind, home, nameOf(key)));
      }
    }
    if (this.#listener !== undefined) tenant.mirror.listen(this.#listener.mirror(tenant));
  }
}
