import type { NamespaceMapping } from '../api/virtual-node.ts';
import { deepEqual } from '../lib/equality.ts';
import type { MirrorSidesListener } from './reflect/mirror-sides.ts';
import type { Tenant } from './tenant.ts';

export interface TenantListener {
  /** All caches of the namespace are complete. */
  synced: (homeNamespace: string) => void;
  /** A cache of the namespace has lost its API server, or found it again. */
  contact: () => void;
  /** A remote pod changed; the key is the home pod's. */
  pod: (homeKey: string) => void;
  /** A ConfigMap or Secret changed on either side; names are the object's own on that side. */
  reference: (
    side: 'home' | 'remote',
    kind: 'ConfigMap' | 'Secret',
    homeNamespace: string,
    name: string,
  ) => void;
  /** The namespace has been opened: its caches fill. */
  opened: (tenant: Tenant) => void;
  /** Its rules have changed. */
  ruled: (tenant: Tenant) => void;
  /** Who hears of the kinds that are mirrored. */
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

  get synced(): boolean {
    return this.#byHome.values().every((tenant) => tenant.synced);
  }

  /** Why the first of the namespaces that are not complete is not; undefined when all are. */
  get missing(): string | undefined {
    const tenant = this.#byHome.values().find((one) => !one.synced);
    if (tenant === undefined) return undefined;
    const what = `tenant namespace "${tenant.mapping.tenantNamespace}" has not been read completely`;
    return tenant.problem === undefined ? what : `${what}: ${tenant.problem}`;
  }

  /** From now on until `stop`, `set` takes effect: nothing may be opened that nobody would close. */
  open(): void {
    this.#isOpen = true;
  }

  /** Opens what is new, closes what is no longer named. Doing it twice does nothing the second time. */
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
        onSynced: () => this.#listener?.synced(home),
        onContact: () => this.#listener?.contact(),
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
