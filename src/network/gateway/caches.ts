import { LABEL_HOME_UID, LABEL_PEER, LABEL_PROVIDER } from '../../api/names.ts';
import {
  GATEWAY_CONFIG_MAP,
  NETWORK_CONFIG_MAP,
  PRESHARED_SECRET,
  WIREGUARD_SECRET,
} from '../../api/own-network.ts';
import { configMaps, namespaces, pods, secrets } from '../../api/resources.ts';
import type { ResourceType } from '../../api/resources.ts';
import { tunnels } from '../../api/tunnel.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { ConfigMap, KubeObject, Namespace, Pod, Secret } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { InformerOptions } from '../../kube/informer.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';

export interface CacheParts {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  namespace: string;
}

/** One object by its name; a right to that name is enough for it. */
export function singleInformer<T extends KubeObject>(
  { client, clock, log, namespace }: CacheParts,
  type: ResourceType<T>,
  name: string,
): Informer<T> {
  const list = { namespace, fieldSelector: `metadata.name=${name}` };
  return new Informer<T>({ client, type, list, clock, log, name: `informer ${type.plural} ${name}` });
}

/** Of thousands of pods only what says which addresses are whose. */
export function slimPod({ metadata, spec, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const slim = {
    metadata: {
      name,
      uid,
      resourceVersion,
      creationTimestamp,
      ...(namespace !== undefined && { namespace }),
    },
    spec: { nodeName: spec?.nodeName, hostNetwork: spec?.hostNetwork },
    status: { phase: status?.phase, podIPs: status?.podIPs },
  };
  return slim as Pod;
}

/** What the active gateway goes by. */
export class GatewayCaches {
  readonly tunnels: Informer<Tunnel>;
  readonly network: Informer<ConfigMap>;
  readonly published: Informer<ConfigMap>;
  readonly privateKey: Informer<Secret>;
  readonly preshared: Informer<Secret>;
  readonly virtualNodes: Informer<VirtualNode>;
  readonly namespaces: Informer<Namespace>;
  /** Pods of peers that run here. */
  readonly remotePods: Informer<Pod>;
  readonly #namespace: string;

  constructor(parts: CacheParts) {
    const { client, clock, log, namespace } = parts;
    const all = <T extends KubeObject>(
      type: ResourceType<T>,
      list: InformerOptions<T>['list'],
      transform?: (object: T) => T,
    ): Informer<T> => new Informer<T>({ client, type, list, clock, log, ...(transform && { transform }) });
    this.#namespace = namespace;
    this.tunnels = all(tunnels, {});
    this.network = singleInformer(parts, configMaps, NETWORK_CONFIG_MAP);
    this.published = singleInformer(parts, configMaps, GATEWAY_CONFIG_MAP);
    this.privateKey = singleInformer(parts, secrets, WIREGUARD_SECRET);
    this.preshared = singleInformer(parts, secrets, PRESHARED_SECRET);
    this.virtualNodes = all(virtualNodes, { labelSelector: LABEL_PROVIDER });
    this.namespaces = all(namespaces, { labelSelector: LABEL_PEER, metadataOnly: true });
    this.remotePods = all(pods, { labelSelector: LABEL_HOME_UID }, slimPod);
  }

  components(): Component[] {
    const { tunnels: ours, network, published, privateKey, preshared } = this;
    return [
      ours,
      network,
      published,
      privateKey,
      preshared,
      this.virtualNodes,
      this.namespaces,
      this.remotePods,
    ];
  }

  /** The single object of one of the caches by name. */
  one<T extends KubeObject>(cache: Informer<T>, name: string): T | undefined {
    return cache.get(`${this.#namespace}/${name}`);
  }

  /** Those that are to last, in the order of their names. */
  liveTunnels(): Tunnel[] {
    return [...this.tunnels.list()]
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .toSorted(({ metadata: one }, { metadata: other }) => (one.name < other.name ? -1 : 1));
  }
}
