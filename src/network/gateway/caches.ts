import { LABEL_HOME_UID, LABEL_PEER, LABEL_PROVIDER } from '../../api/names.ts';
import {
  GATEWAY_CONFIG_MAP,
  NETWORK_CONFIG_MAP,
  PRESHARED_SECRET,
  WIREGUARD_SECRET,
} from '../../api/own-network.ts';
import { configMaps, namespaces, pods, type ResourceType, secrets } from '../../api/resources.ts';
import { type Tunnel, tunnels } from '../../api/tunnel.ts';
import { type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
import type { ConfigMap, KubeObject, Namespace, Pod, Secret } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import type { Component } from '../../lib/lifecycle.ts';

/** Keeps of thousands of pods only what tells whose each address is. */
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

/** The same, and which tokens the pod has. */
export function slimPodWithTokens(pod: Pod): Pod {
  const slim = slimPod(pod);
  const volumes = (pod.spec?.volumes ?? []).flatMap(({ name, projected }) => {
    const sources = (projected?.sources ?? []).filter((source) => source.serviceAccountToken !== undefined);
    return sources.length === 0 ? [] : [{ name, projected: { sources } }];
  });
  return volumes.length === 0 ? slim : ({ ...slim, spec: { ...slim.spec, volumes } } as Pod);
}

/** What the active gateway reads. */
export class GatewayCaches {
  readonly tunnels: Cache<Tunnel>;
  readonly network: Cache<ConfigMap>;
  readonly published: Cache<ConfigMap>;
  readonly privateKey: Cache<Secret>;
  readonly preshared: Cache<Secret>;
  readonly virtualNodes: Cache<VirtualNode>;
  readonly namespaces: Cache<Namespace>;
  /** Pods of peers that run here. */
  readonly hostedPods: Cache<Pod>;
  readonly #namespace: string;

  constructor(caches: Caches, namespace: string) {
    /** A cache of one object by its name, for which a right to that name is enough. */
    const one = <T extends KubeObject>(type: ResourceType<T>, name: string): Cache<T> =>
      caches.of(type, {
        list: { namespace, fieldSelector: `metadata.name=${name}` },
        name: `cache of ${type.plural} ${name}`,
      });
    this.#namespace = namespace;
    this.tunnels = caches.of(tunnels);
    this.network = one(configMaps, NETWORK_CONFIG_MAP);
    this.published = one(configMaps, GATEWAY_CONFIG_MAP);
    this.privateKey = one(secrets, WIREGUARD_SECRET);
    this.preshared = one(secrets, PRESHARED_SECRET);
    this.virtualNodes = caches.of(virtualNodes, { list: { labelSelector: LABEL_PROVIDER } });
    this.namespaces = caches.of(namespaces, { list: { labelSelector: LABEL_PEER, metadataOnly: true } });
    this.hostedPods = caches.of(pods, { list: { labelSelector: LABEL_HOME_UID }, transform: slimPod });
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
      this.hostedPods,
    ];
  }

  /** The one object of such a cache. */
  one<T extends KubeObject>(cache: Cache<T>, name: string): T | undefined {
    return cache.get(`${this.#namespace}/${name}`);
  }

  /** Tunnels that nobody has deleted, in the order of their names. */
  liveTunnels(): Tunnel[] {
    return [...this.tunnels.list()]
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .toSorted(({ metadata: one }, { metadata: other }) => (one.name < other.name ? -1 : 1));
  }
}
