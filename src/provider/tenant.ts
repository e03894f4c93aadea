import { LABEL_MANAGED_BY } from '../api/names.ts';
import { configMaps, pods, secrets } from '../api/resources.ts';
import type { NamespaceMapping } from '../api/virtual-node.ts';
import type { KubeObject, Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { ReferenceKind } from './forge/references.ts';

export interface TenantOptions {
  mapping: NamespaceMapping;
  virtualNode: string;
  /** Of the copies; see ReflectorOptions. */
  copyOwner: string;
  home: KubeClient;
  foreign: KubeClient;
  clock: Clock;
  log: Logger;
}

/** The objects of one kind on both sides, by metadata only: no Secret's data is cached. */
export interface ReflectedCaches {
  home: Informer<KubeObject>;
  remote: Informer<KubeObject>;
}

/**
 * What is seen of one offloaded namespace: everything of ours in its tenant namespace over there, and the metadata
 * of ConfigMaps and Secrets at home.
 */
export class Tenant {
  readonly mapping: NamespaceMapping;
  readonly virtualNode: string;
  readonly pods: Informer<Pod>;
  readonly caches: Readonly<Record<ReferenceKind, ReflectedCaches>>;
  readonly #abort = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: TenantOptions) {
    const { mapping, virtualNode, copyOwner, home, foreign, clock, log } = options;
    this.mapping = mapping;
    this.virtualNode = virtualNode;
    const ours = {
      namespace: mapping.tenantNamespace,
      labelSelector: `${LABEL_MANAGED_BY}=${virtualNode}`,
    };
    // Tokens' Secrets are each virtual node's own.
    const shared =
      copyOwner === virtualNode
        ? ours
        : { ...ours, labelSelector: `${LABEL_MANAGED_BY} in (${virtualNode},${copyOwner})` };
    const common = { clock, log: log.named('tenant', { tenant: mapping.tenantNamespace }) };
    this.pods = new Informer({ ...common, client: foreign, type: pods, list: ours });
    const caches = (type: typeof configMaps | typeof secrets): ReflectedCaches => ({
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
  }

  get #informers(): (Informer<Pod> | Informer<KubeObject>)[] {
    const { ConfigMap, Secret } = this.caches;
    return [this.pods, ConfigMap.home, ConfigMap.remote, Secret.home, Secret.remote];
  }

  /** Whether all caches are complete: until then absence means nothing. */
  get synced(): boolean {
    return this.#informers.every((informer) => informer.synced);
  }

  /** What the first of the caches in trouble says. */
  get problem(): string | undefined {
    return this.#informers.map(({ contact }) => contact.error).find((error) => error !== undefined);
  }

  /** Returns at once: the foreign cluster may be away for long. */
  start({ onSynced, onContact }: { onSynced: () => void; onContact: () => void }): void {
    const { signal } = this.#abort;
    for (const informer of this.#informers) informer.onContact(onContact);
    const syncs = this.#informers.map(async (informer) => informer.start(signal));
    this.#running = Promise.allSettled(syncs).then(() => {
      if (!signal.aborted) onSynced();
    });
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('tenant closed'));
    await this.#running;
    await Promise.all(this.#informers.map(async (informer) => informer.stop()));
  }

  /** The remote pod that stands for the home pod of this name, whatever its UID. */
  remotePod(name: string): Pod | undefined {
    return this.pods.get(`${this.mapping.tenantNamespace}/${name}`);
  }
}
