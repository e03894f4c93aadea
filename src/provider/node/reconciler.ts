import { nodes } from '../../api/resources.ts';
import type { Node } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { NodeInputs } from './forge.ts';
import { forgeNode, forgeNodeStatus } from './forge.ts';

export interface NodeReconcilerOptions {
  home: KubeClient;
  /** Holds the one Node. */
  nodes: Informer<Node>;
  nodeName: string;
  /** Undefined while the VirtualNode does not exist. */
  inputs: () => NodeInputs | undefined;
}

/** Conditions get a new heartbeat this often, as the kubelet does (nodeStatusReportFrequency); the Lease says alive. */
const HEARTBEAT_MS = 5 * 60_000;

/** Keeps the Node as the VirtualNode and the foreign cluster's state want it; one write a run. */
export class NodeReconciler {
  readonly #options: NodeReconcilerOptions;

  constructor(options: NodeReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    const { home, nodes: cache, nodeName, inputs } = this.#options;
    const given = inputs();
    if (given === undefined || given.virtualNode.metadata.deletionTimestamp !== undefined) return {};
    const current = cache.get(nodeName);
    if (current?.metadata.deletionTimestamp !== undefined) return {};
    const node = forgeNode(current, given.virtualNode);
    if (current === undefined) {
      // Created with its status empty: NotReady until the status write below has happened.
      await home.create(nodes, node, { signal });
      return {};
    }
    if (!deepEqual(node, { apiVersion: 'v1', kind: 'Node', ...current })) {
      await home.replace(nodes, node, { signal });
      return {};
    }
    const status = forgeNodeStatus(current, given);
    const isDue = heartbeatAgeMs(current, given.now) >= HEARTBEAT_MS;
    if (!deepEqual(status, current.status ?? {}) || isDue) {
      const conditions = (status.conditions ?? []).map((condition) =>
        HEARTBEAT_TYPES.has(condition.type) ? { ...condition, lastHeartbeatTime: given.now } : condition,
      );
      await home.replace(
        nodes,
        { ...current, status: { ...status, conditions } },
        { subresource: 'status', signal },
      );
    }
    return { requeueAfterMs: HEARTBEAT_MS };
  }
}

const HEARTBEAT_TYPES = new Set(['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']);

function heartbeatAgeMs(node: Node, now: string): number {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const last = Date.parse(ready?.lastHeartbeatTime ?? '');
  return Number.isNaN(last) ? Infinity : Date.parse(now) - last;
}
