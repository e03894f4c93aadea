import { nodes } from '../../api/resources.ts';
import {
  type NamespaceMapping,
  type StricterPolicy,
  VIRTUAL_NODE_REASONS,
  type VirtualNode,
  virtualNodes,
} from '../../api/virtual-node.ts';
import type { Node } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Informer } from '../../kube/informer.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { Pace } from '../../lib/pace.ts';
import { homePace } from '../home-paces.ts';
import { forgeNode, forgeNodeStatus, type NodeInputs } from './forge.ts';
import { isShown, type StatusInputs, writeVirtualNodeStatus } from './status.ts';

interface NodeReconcilerOptions {
  clock: Clock;
  home: KubeClient;
  /** Name of the VirtualNode. */
  virtualNode: string;
  virtualNodes: Cache<VirtualNode>;
  /** Holds the one Node. */
  nodes: Informer<Node>;
  nodeName: string;
  /** Undefined while the VirtualNode does not exist. */
  inputs: () => NodeInputs | undefined;
  /** After how many milliseconds what is shown changes by itself; Infinity: not at all. */
  changesMs: () => number;
  /** The namespaces that the VirtualNode's status is to name. */
  mappings: () => NamespaceMapping[];
  /** See VirtualNodeStatus. */
  stricterPolicies: () => readonly StricterPolicy[];
}

/** Conditions get a new heartbeat this often, as from the kubelet (nodeStatusReportFrequency); the Lease says alive. */
const HEARTBEAT_MS = 5 * 60_000;
const AT_END_MS = 3_000;
const HEARTBEAT_TYPES = new Set(['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']);

/** Keeps the Node as the VirtualNode and the foreign cluster's state want it, and then the VirtualNode's status. */
export class NodeReconciler {
  readonly #options: NodeReconcilerOptions;
  readonly #nodePace: Pace;
  readonly #virtualNodePace: Pace;

  constructor(options: NodeReconcilerOptions) {
    this.#options = options;
    this.#nodePace = homePace('nodeStatus', options.clock);
    this.#virtualNodePace = homePace('virtualNodeStatus', options.clock);
  }

  async reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    const inputs = this.#options.inputs();
    if (inputs === undefined) {
      await this.#removeNode(signal);
      return {};
    }
    let result: ReconcileResult;
    try {
      result = await this.#writeNode(inputs, signal);
    } catch (error) {
      if (hasCode(error, 'Invalid', 'Forbidden')) {
        const notReady = { reason: VIRTUAL_NODE_REASONS.nodeRefused, message: errorMessage(error) };
        await this.#writeStatus({ ...inputs, notReady }, signal);
      }
      throw error;
    }
    const waitMs = await this.#writeStatus(inputs, signal);
    return waitMs > 0 ? { requeueAfterMs: Math.min(waitMs, result.requeueAfterMs ?? Infinity) } : result;
  }

  /** At most one write a run. */
  async #writeNode(inputs: NodeInputs, signal: AbortSignal): Promise<ReconcileResult> {
    const { home, nodes: cache, nodeName } = this.#options;
    const { virtualNode, now } = inputs;
    const current = cache.get(nodeName);
    const isEnding = [virtualNode, current].some(
      (object) => object?.metadata.deletionTimestamp !== undefined,
    );
    if (isEnding) return {};
    const node = forgeNode(current, virtualNode);
    if (current === undefined) {
      // Created with its status empty: NotReady until the status write below has happened.
      await home.create(nodes, node, { signal });
      return {};
    }
    if (!deepEqual(node, { apiVersion: 'v1', kind: 'Node', ...current })) {
      await home.replace(nodes, node, { signal });
      return {};
    }
    const status = forgeNodeStatus(current, inputs);
    const isDue = heartbeatAgeMs(current, now) >= HEARTBEAT_MS;
    if (!deepEqual(status, current.status ?? {}) || isDue) {
      const waitMs = this.#nodePace.turn(nodeName);
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      const conditions = (status.conditions ?? []).map((condition) =>
        HEARTBEAT_TYPES.has(condition.type) ? { ...condition, lastHeartbeatTime: now } : condition,
      );
      const written = { ...current, status: { ...status, conditions } };
      await home.replace(nodes, written, { subresource: 'status', signal });
    }
    return { requeueAfterMs: Math.min(HEARTBEAT_MS, this.#options.changesMs()) };
  }

  /** Returns how long it has to wait, in milliseconds, where it changes too often. */
  async #writeStatus(inputs: NodeInputs, signal: AbortSignal): Promise<number> {
    const { home, nodeName } = this.#options;
    const wanted = this.#statusInputs(inputs);
    if (isShown(wanted)) return 0;
    const waitMs = this.#virtualNodePace.turn(nodeName);
    if (waitMs === 0) await writeVirtualNodeStatus(home, wanted, signal);
    return waitMs;
  }

  #statusInputs(inputs: NodeInputs): StatusInputs {
    const { mappings, stricterPolicies } = this.#options;
    return { ...inputs, namespaces: mappings(), stricterPolicies: stricterPolicies() };
  }

  /**
   * The last write of a process; it is bounded, and that the VirtualNode is gone is no error. What it shows stays until another
   * agent comes, so it is written over whatever others have written meanwhile, and waits for no turn.
   */
  async reconcileAtEnd(): Promise<void> {
    const { clock } = this.#options;
    const limit = new AbortController();
    const cancel = clock.after(AT_END_MS, () => limit.abort(new Error('took too long')));
    try {
      for (let isDone = false; !isDone;) isDone = await this.#showEnd(limit.signal);
    } catch (error) {
      // It was deleted, and that is why this program stops; or another agent acts.
      if (!hasCode(error, 'NotFound') && !(hasCode(error, 'Aborted') && !limit.signal.aborted)) throw error;
    } finally {
      cancel();
    }
  }

  /** Reads live, since the last writes of this process may not have come back by its watches. False: somebody else was faster. */
  async #showEnd(signal: AbortSignal): Promise<boolean> {
    const { home, virtualNode: name, nodeName } = this.#options;
    const inputs = this.#options.inputs();
    if (inputs === undefined) {
      await this.#removeNode(signal);
      return true;
    }
    try {
      const node = await home.get(nodes, { name: nodeName }, { signal });
      const status = forgeNodeStatus(node, inputs);
      await replaceStatusIfDiffers(home, nodes, node, { status, signal });
      const virtualNode = await home.get(virtualNodes, { name }, { signal });
      await writeVirtualNodeStatus(home, this.#statusInputs({ ...inputs, virtualNode }), signal);
      return true;
    } catch (error) {
      if (hasCode(error, 'Conflict')) return false;
      throw error;
    }
  }

  /** The VirtualNode is gone: its Node goes, too, after a live read has shown that the cache is right. */
  async #removeNode(signal: AbortSignal): Promise<void> {
    const { home, virtualNode: name, virtualNodes: cache, nodeName } = this.#options;
    const live = await home.get(virtualNodes, { name }, { signal }).catch(ignoring('NotFound'));
    if (live !== undefined) {
      cache.relist('a VirtualNode exists that the cache has lost');
      return;
    }
    const node = this.#options.nodes.get(nodeName);
    if (node === undefined) return;
    await home.delete(nodes, { name: nodeName }, { uid: node.metadata.uid, signal });
  }
}

function heartbeatAgeMs(node: Node, now: string): number {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const last = Date.parse(ready?.lastHeartbeatTime ?? '');
  return Number.isNaN(last) ? Infinity : Date.parse(now) - last;
}
