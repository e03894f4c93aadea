import { type Advertisement, advertisements } from '../../api/advertisement.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { namespaces, secrets } from '../../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject, Namespace, Secret } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Ages } from '../../lib/ages.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { secretName } from './secret.ts';

const BY_PROVIDER = 'provider';
/** What has not gone so long after its deletion is held by a finalizer of somebody else, and may be so for ever. */
export const HELD_AFTER_MS = 60_000;

/** An object that is there because of a provider. */
interface Belonging {
  object: KubeObject;
  /** Since its deletion, in milliseconds; undefined: it is not deleted. */
  endingMs: number | undefined;
}

/** What borrowing knows of this cluster. */
export class BorrowingCaches {
  readonly advertisements: Cache<Advertisement>;
  readonly virtualNodes: Cache<VirtualNode>;
  readonly secrets: Cache<Secret>;
  readonly namespaces: Cache<Namespace>;
  readonly #systemNamespace: string;
  readonly #ages: Ages;

  constructor(caches: Caches, systemNamespace: string, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#ages = new Ages(clock);
    this.#systemNamespace = systemNamespace;
    this.advertisements = caches.of(advertisements);
    this.virtualNodes = caches.of(virtualNodes, {
      indexes: { [BY_PROVIDER]: providerOf },
    });
    this.secrets = caches.of(secrets, {
      list: { namespace: systemNamespace, labelSelector: LABEL_PROVIDER },
    });
    this.namespaces = caches.of(namespaces);
  }

  /** Whether all is known. Before, what is missing is not absent. */
  get synced(): boolean {
    return this.all().every(({ synced }) => synced);
  }

  all(): (Component & { synced: boolean })[] {
    return [this.advertisements, this.virtualNodes, this.secrets, this.namespaces];
  }

  virtualNodesOf(clusterID: string): readonly VirtualNode[] {
    return this.virtualNodes.byIndex(BY_PROVIDER, clusterID);
  }

  secretOf(clusterID: string): Secret | undefined {
    const secret = this.secrets.get(`${this.#systemNamespace}/${secretName(clusterID)}`);
    return secret !== undefined && providerOf(secret).includes(clusterID) ? secret : undefined;
  }

  /** One that is being deleted still counts: its pods over there have to be ended first. */
  hasNamespace(name: string): boolean {
    return this.namespaces.get(name) !== undefined;
  }

  /** All that is left of a provider here. */
  belongingsOf(clusterID: string): Belonging[] {
    const secret = this.secretOf(clusterID);
    const left = [...this.virtualNodesOf(clusterID), ...(secret === undefined ? [] : [secret])];
    return left.map((object) => {
      const { uid, deletionTimestamp } = object.metadata;
      const isDeleted = deletionTimestamp !== undefined;
      return {
        object,
        endingMs: isDeleted ? this.#ages.ageMs(uid, Date.parse(deletionTimestamp)) : undefined,
      };
    });
  }

  /** What somebody holds after its deletion does not count: a peering has to end. */
  hasBelongings(clusterID: string): boolean {
    return this.belongingsOf(clusterID).some(({ endingMs = 0 }) => endingMs < HELD_AFTER_MS);
  }

  /** Every provider that an object here belongs to. */
  ids(): Set<string> {
    const marked = [...this.virtualNodes.list(), ...this.secrets.list()].flatMap(providerOf);
    return new Set([...[...this.advertisements.list()].map(({ metadata }) => metadata.name), ...marked]);
  }

  /** Calls back with the provider whose objects changed. */
  onChange(listener: (clusterID: string) => void): void {
    this.advertisements.onChange(listener);
    const tell = (_key: string, ...objects: (KubeObject | undefined)[]): void => {
      const ids = objects.flatMap((object) => (object === undefined ? [] : providerOf(object)));
      for (const id of new Set(ids)) listener(id);
    };
    this.virtualNodes.onChange(tell);
    this.secrets.onChange(tell);
  }
}

function providerOf({ metadata }: KubeObject): string[] {
  const id = metadata.labels?.[LABEL_PROVIDER];
  return id === undefined ? [] : [id];
}
