import { nodes } from '../../api/resources.ts';
import type { Node, Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { ignoring } from '../../lib/errors.ts';
import type { NodeState } from './decide.ts';

/** Set by a person or a program that has made sure that nothing runs on the node any more (KEP-2268). */
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const UNREACHABLE = 'node.kubernetes.io/unreachable';

/** `undefined`: there is no such Node. A node that is not ready but says so itself ends its pods as any other. */
export function nodeStateOf(node: Node | undefined): NodeState {
  if (node === undefined) return 'Fenced';
  const taints = node.spec?.taints ?? [];
  if (taints.some(({ key }) => key === OUT_OF_SERVICE)) return 'Fenced';
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'Unknown' || taints.some(({ key }) => key === UNREACHABLE)) return 'Silent';
  return 'Answers';
}

/** Live reads, each node once: nodes are asked about while a pod on one of them does not end, and else never. */
export class NodeStates {
  readonly #client: KubeClient;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, NodeState>();

  constructor(client: KubeClient, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  async of(pod: Pod | undefined): Promise<NodeState> {
    const name = pod?.spec?.nodeName ?? '';
    if (name === '' || pod?.metadata.deletionTimestamp === undefined) return 'Answers';
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const options = { signal: this.#signal };
    const state = nodeStateOf(await this.#client.get(nodes, { name }, options).catch(ignoring('NotFound')));
    this.#known.set(name, state);
    return state;
  }
}
