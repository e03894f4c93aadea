import type { NamespaceMapping } from '../../api/virtual-node.ts';
import { VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { NodeInputs } from './forge.ts';
import { NodeReconciler, type NodeReconcilerOptions } from './reconciler.ts';
import { removeNode, type RemovalOptions } from './removal.ts';
import { writeVirtualNodeStatus } from './status.ts';

export interface NodeKeeperOptions extends NodeReconcilerOptions, RemovalOptions {
  /** Name of the VirtualNode. */
  virtualNode: string;
  /** What the status is to say. */
  mappings: () => NamespaceMapping[];
}

/** The Node and the VirtualNode's status, which tells how it fares. */
export class NodeKeeper {
  readonly #options: NodeKeeperOptions;
  readonly #reconciler: NodeReconciler;

  constructor(options: NodeKeeperOptions) {
    this.#options = options;
    this.#reconciler = new NodeReconciler(options);
  }

  async reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    const { virtualNode, inputs: given } = this.#options;
    const inputs = given();
    if (inputs === undefined) {
      await removeNode(this.#options, virtualNode, signal);
      return {};
    }
    let result: ReconcileResult;
    try {
      result = await this.#reconciler.reconcile(signal);
    } catch (error) {
      if (hasCode(error, 'Invalid', 'Forbidden')) {
        const notReady = { reason: VIRTUAL_NODE_REASONS.nodeRefused, message: errorMessage(error) };
        await this.#writeStatus({ ...inputs, notReady }, signal);
      }
      throw error;
    }
    await this.#writeStatus(inputs, signal);
    return result;
  }

  async #writeStatus(inputs: NodeInputs, signal: AbortSignal): Promise<void> {
    const { home, mappings } = this.#options;
    await writeVirtualNodeStatus(home, { ...inputs, namespaces: mappings() }, signal);
  }
}
