import type { Advertisement } from '../../api/advertisement.ts';
import { advertisements } from '../../api/advertisement.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { namespaces, secrets } from '../../api/resources.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject, Namespace, Secret } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import { secretName } from './names.ts';

const BY_PROVIDER = 'provider';

/** What borrowing knows of this cluster. */
export class Caches {
  readonly advertisements: Informer<Advertisement>;
  readonly virtualNodes: Informer<VirtualNode>;
  readonly secrets: Informer<Secret>;
  readonly namespaces: Informer<Namespace>;
  readonly #systemNamespace: string;

  constructor(options: { client: KubeClient; clock: Clock; log: Logger; systemNamespace: string }) {
    const { systemNamespace, ...common } = options;
    this.#systemNamespace = systemNamespace;
    this.advertisements = new Informer<Advertisement>({ ...common, type: advertisements, list: {} });
    this.virtualNodes = new Informer<VirtualNode>({
      ...common,
      type: virtualNodes,
      list: {},
      indexes: { [BY_PROVIDER]: (object) => providerOf(object) },
    });
    const list = { namespace: systemNamespace, labelSelector: LABEL_PROVIDER };
    this.secrets = new Informer<Secret>({ ...common, type: secrets, list });
    this.namespaces = new Informer<Namespace>({ ...common, type: namespaces, list: { metadataOnly: true } });
  }

  all(): Component[] {
    return this.#informers();
  }

  /** All is known; before, what is missing is not absent. */
  get synced(): boolean {
    return this.#informers().every(({ synced }) => synced);
  }

  #informers(): (Component & { synced: boolean })[] {
    return [this.advertisements, this.virtualNodes, this.secrets, this.namespaces];
  }

  virtualNodesOf(clusterID: string): readonly VirtualNode[] {
    return this.virtualNodes.byIndex(BY_PROVIDER, clusterID);
  }

  secretOf(clusterID: string): Secret | undefined {
    const secret = this.secrets.get(`${this.#systemNamespace}/${secretName(clusterID)}`);
    return secret !== undefined && providerOf(secret).includes(clusterID) ? secret : undefined;
  }

  /** One that is about to go still counts: its pods over there have to be ended, and the provider keeps them until then. */
  hasNamespace(name: string): boolean {
    return this.namespaces.get(name) !== undefined;
  }

  hasBelongings(clusterID: string): boolean {
    return this.secretOf(clusterID) !== undefined || this.virtualNodes.hasIndexed(BY_PROVIDER, clusterID);
  }

  /** Every provider that something here bears the name of. */
  ids(): Set<string> {
    const marked = [...this.virtualNodes.list(), ...this.secrets.list()].flatMap(providerOf);
    return new Set([...[...this.advertisements.list()].map(({ metadata }) => metadata.name), ...marked]);
  }

  /** Calls back with the provider whose objects changed. */
  onChange(listener: (clusterID: string) => void): void {
    this.advertisements.onChange((name) => listener(name));
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
