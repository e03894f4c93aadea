import { LABEL_VIRTUAL_NODE } from '../../../../../src/api/names.ts';
import { leases, nodes } from '../../../../../src/api/resources.ts';
import type { VirtualNode } from '../../../../../src/api/virtual-node.ts';
import { TributaryError } from '../../../../../src/lib/errors.ts';
import type { AgentLauncher, WantedAgent } from '../../../../../src/peering/ports.ts';
import type { FakeApi } from '../../../../support/fake-api/fake-api.ts';
import type { AnyObject } from '../../../../support/fake-api/storage.ts';

export const VIRTUAL_NODES = 'virtualnodes.tributary.dev';
export const LEASES = 'leases.coordination.k8s.io';
const READY = {
  type: 'Ready',
  status: 'True',
  reason: 'AsExpected',
  message: 'the foreign cluster takes pods',
};

/** Agents as they look from home: a Node for each VirtualNode, pods that end when they are told to. */
export class FakeAgents {
  readonly #home: FakeApi;
  readonly running: Map<string, WantedAgent> = new Map();
  ensured = 0;
  /** They are there, and do nothing. */
  dead = false;
  /** Pods do not end by themselves. */
  stubborn = false;
  #busy = false;

  constructor(home: FakeApi) {
    this.#home = home;
    home.storage.subscribe(({ resource }) => {
      if ([VIRTUAL_NODES, 'pods', 'nodes'].includes(resource)) queueMicrotask(() => this.work());
    });
  }

  /** As one process of the consumer sees the launcher, until it is killed. */
  launcher(isAlive: () => boolean): AgentLauncher {
    const check = (): void => {
      if (!isAlive()) throw new TributaryError('Unreachable', 'killed');
    };
    return {
      ensure: async (agent) => {
        check();
        this.ensured++;
        this.running.set(agent.clusterID, agent);
        this.work();
        await Promise.resolve();
      },
      remove: async (clusterID) => {
        check();
        this.running.delete(clusterID);
        await Promise.resolve();
      },
    };
  }

  work(): void {
    if (this.dead || this.#busy) return;
    this.#busy = true;
    try {
      for (const agent of this.running.values()) for (const { name } of agent.virtualNodes) this.#serve(name);
    } finally {
      this.#busy = false;
    }
  }

  #serve(name: string): void {
    const { storage } = this.#home;
    const object = this.#virtualNode(name);
    if (object === undefined) {
      if (storage.get('nodes', name) !== undefined) storage.remove('nodes', name);
      return;
    }
    const { spec } = object as unknown as VirtualNode;
    const labels = { ...spec.labels, [LABEL_VIRTUAL_NODE]: name };
    const taints = spec.taints ?? [];
    const node = storage.get('nodes', name);
    if (node === undefined) {
      this.#home.seed(nodes, { metadata: { name, labels }, spec: { taints } });
      const lease = { metadata: { name, namespace: 'kube-node-lease' }, spec: {} };
      if (storage.get(LEASES, `kube-node-lease/${name}`) === undefined) this.#home.seed(leases, lease);
    } else {
      storage.update('nodes', {
        ...node,
        metadata: { ...node.metadata, labels },
        spec: { ...node.spec, taints },
      });
    }
    this.#say(object);
    if (!this.stubborn) this.#endPods(name);
  }

  #say(object: AnyObject): void {
    const conditions = [{ ...READY, lastTransitionTime: object.metadata.creationTimestamp }];
    const { storage } = this.#home;
    storage.update(VIRTUAL_NODES, { ...object, status: { nodeName: object.metadata.name, conditions } });
  }

  #endPods(node: string): void {
    const { storage } = this.#home;
    for (const pod of storage.list('pods')) {
      const { name, namespace, deletionTimestamp } = pod.metadata;
      if (pod.spec?.['nodeName'] === node && deletionTimestamp !== undefined) {
        storage.remove('pods', `${namespace}/${name}`);
      }
    }
  }

  #virtualNode(name: string): AnyObject | undefined {
    const { storage } = this.#home;
    return storage.get(VIRTUAL_NODES, name);
  }
}
