import { nodeLabelsOf, nodeNameOf } from '../../api/node-labels.ts';
import { OFFLOADED_REASONS } from '../../api/names.ts';
import { claimVolumes } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
import type { Pod } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { identityOf } from '../../kube/objects.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { present } from '../../lib/fields.ts';
import { Listeners } from '../../lib/listeners.ts';

interface BoundPodsOptions extends ClusterBasics {
  caches: Caches;
}

/**
 * A pod that waits on a virtual node. Of its spec only the volumes that are claims are kept; where its rules about other pods keep it
 * from its place, these and its annotations as well.
 */
export interface BoundPod {
  pod: Pick<Pod, 'metadata' | 'spec' | 'status'>;
  virtualNode: string;
}

/**
 * Pods on virtual nodes that have not started: one watch for each virtual node, by the name of its Node. Of each pod only
 * what a decision needs is kept, and of a running pod nothing.
 */
export class BoundPods implements Component {
  readonly name = 'pods on virtual nodes';
  readonly #options: BoundPodsOptions;
  readonly #virtualNodes: Cache<VirtualNode>;
  readonly #caches = new Map<string, { nodeName: string; informer: Informer<Pod> }>();
  readonly #ending = new Set<Promise<unknown>>();
  readonly #listeners = new Listeners<[key: string]>();
  /** Calls back with the key of a pod that came, changed or went. */
  readonly onChange: Listeners<[key: string]>['add'] = this.#listeners.add;
  readonly #abort = new AbortController();

  constructor(options: BoundPodsOptions) {
    this.#options = options;
    this.#virtualNodes = options.caches.of(virtualNodes);
    this.#virtualNodes.onChange((name) => this.#follow(name));
  }

  /** Does not wait for the pods: nothing is concluded from the absence of a pod. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#virtualNodes.start(signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#virtualNodes.stop();
    for (const name of this.#caches.keys()) this.#close(name);
    await Promise.allSettled(this.#ending);
  }

  /** @param key of the pod */
  get(key: string): BoundPod | undefined {
    for (const [virtualNode, { informer }] of this.#caches) {
      const pod = informer.get(key);
      if (pod !== undefined) return { pod, virtualNode };
    }
    return undefined;
  }

  /** Of the Node that this VirtualNode makes; undefined: it is not known. */
  labelsOf(virtualNode: string): Readonly<Record<string, string>> | undefined {
    const known = this.#virtualNodes.get(virtualNode);
    return known && nodeLabelsOf(known);
  }

  *keys(): Iterable<string> {
    for (const { informer } of this.#caches.values()) {
      for (const { metadata } of informer.list()) yield `${metadata.namespace}/${metadata.name}`;
    }
  }

  #follow(name: string): void {
    const virtualNode = this.#virtualNodes.get(name);
    const nodeName = virtualNode && nodeNameOf(virtualNode);
    if (this.#caches.get(name)?.nodeName === nodeName) return;
    this.#close(name);
    if (nodeName !== undefined && !this.#abort.signal.aborted) this.#open(name, nodeName);
  }

  #open(name: string, nodeName: string): void {
    const { client, clock, log } = this.#options;
    const informer = new Informer<Pod>({
      client,
      clock,
      log,
      type: pods,
      list: { fieldSelector: `spec.nodeName=${nodeName}` },
      name: `pods on ${nodeName}`,
      transform: waiting,
    });
    informer.onChange((key) => this.#listeners.tell(key));
    this.#caches.set(name, { nodeName, informer });
    // Rejects when it is stopped before its first list.
    informer.start(this.#abort.signal).catch(() => undefined);
  }

  #close(name: string): void {
    const informer = this.#caches.get(name)?.informer;
    this.#caches.delete(name);
    if (informer === undefined) return;
    const ending = informer.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

function waiting(pod: Pod): Pod | undefined {
  const { phase = 'Pending', startTime, conditions = [] } = pod.status ?? {};
  if (startTime !== undefined || phase !== 'Pending') return undefined;
  const { deletionTimestamp, ownerReferences } = pod.metadata;
  const volumes = claimVolumes(pod);
  const rules = rulesOf(pod);
  const spec = { ...(volumes.length > 0 && { volumes }), ...rules?.spec };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    ...(Object.keys(spec).length > 0 && { spec: { containers: [], ...spec } }),
    metadata: {
      ...identityOf(pod.metadata),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(ownerReferences && { ownerReferences }),
      ...rules?.metadata,
    },
    status: { phase, conditions },
  };
}

/** Undefined: it is not they that keep the pod from its place. */
function rulesOf({ metadata, spec, status }: Pod): { metadata: object; spec: object } | undefined {
  const isKept = status?.conditions?.some(({ reason }) => reason === OFFLOADED_REASONS.placementNotPossible);
  if (isKept !== true) return undefined;
  const { affinity, topologySpreadConstraints } = spec ?? {};
  const { annotations } = metadata;
  return { metadata: present({ annotations }), spec: present({ affinity, topologySpreadConstraints }) };
}
