import { type Advertisement, advertisements } from '../../api/advertisement.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { namespaces, secrets } from '../../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject, Namespace, Secret } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { secretName } from './secret.ts';

const BY_PROVIDER = 'provider';

/** What borrowing knows of this cluster. */
export class BorrowingCaches {
  readonly advertisements: Cache<Advertisement>;
  readonly virtualNodes: Cache<VirtualNode>;
  readonly secrets: Cache<Secret>;
  readonly namespaces: Cache<Namespace>;
  readonly #systemNamespace: string;

  constructor(caches: Caches, systemNamespace: string) {
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

  hasBelongings(clusterID: string): boolean {
    return this.secretOf(clusterID) !== undefined || this.virtualNodes.hasIndexed(BY_PROVIDER, clusterID);
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
