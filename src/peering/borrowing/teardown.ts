import { LABEL_PROVIDER, LABEL_VIRTUAL_NODE } from '../../api/names.ts';
import { isFinished, isOfDaemonSet } from '../../api/pod.ts';
import { leases, nodes, pods, type ResourceType } from '../../api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject, Node, Pod } from '../../api/wire.ts';
import type { ClusterBasics, DeleteOptions, KubeClient } from '../../kube/client.ts';
import { type DrainLimits, drainText } from '../../kube/drain-stage.ts';
import { type MakeAnew, NodeDrain } from '../../kube/drain.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { replaceIfDiffers } from '../../kube/write.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { ignoring } from '../../lib/errors.ts';
import { closedVirtualNode, endingSince, endingVirtualNode, isClosed, isOf } from './virtual-node.ts';

interface TeardownOptions extends ClusterBasics {
  events: EventRecorder;
  limits: DrainLimits;
}

const LEASE_NAMESPACE = 'kube-node-lease';
/** The agent closes its Node within this time; a dead agent never does. */
const CLOSING_MS = 3000;
const CLOSING_POLL_MS = 100;
const POLL_MS = 500;
const AT_ONCE = 16;
/** Interval of looks at pods that nobody ends: they may run for long. */
const VACANCY_POLL_MS = 5000;

/** Milliseconds after which to look again, and what people are told of it, where there is something to tell. */
export interface Draining {
  waitMs: number;
  message?: string;
}

export interface Haste {
  /** Nobody over there ends pods any more, or a person does not want to wait. */
  hasty: boolean;
  /** Pods that are made anew by others, who end them. */
  spares?: ((pod: Pod) => boolean) | undefined;
  makeAnew?: MakeAnew | undefined;
  /** When the provider ends them by force, milliseconds since 1970: they are to have ended by themselves before. */
  untilMs?: number;
}

/** Ends the pods on virtual nodes, and removes what is left of the nodes. Every step may be repeated. */
export class Teardown {
  readonly #options: TeardownOptions;
  readonly #drain: NodeDrain;

  constructor(options: TeardownOptions) {
    this.#options = options;
    this.#drain = new NodeDrain(options);
  }

  /**
   * Ends the pods on these nodes: first no new ones are placed, then pods are ended as their budgets allow, then in spite
   * of budgets, and by force once the time is over (kube/drain-stage.ts). This is one look, which does not wait. Undefined
   * when all is done.
   */
  async drain(
    ours: readonly VirtualNode[],
    haste: Haste,
    signal: AbortSignal,
  ): Promise<Draining | undefined> {
    const all = await eachAtOnce(ours, AT_ONCE, async (one) => this.#drainOne(one, haste, signal));
    const left = all.filter((one) => one !== undefined);
    if (left.length === 0) return undefined;
    const messages = left.flatMap(({ message }) => message ?? []);
    return {
      waitMs: Math.min(...left.map(({ waitMs }) => waitMs)),
      ...(messages.length > 0 && { message: messages.join('; ') }),
    };
  }

  /**
   * Closes the node to new pods, and leaves those that run there alone. Undefined once it is empty, otherwise the
   * milliseconds after which to look again. `why`: for people.
   */
  async vacate(current: VirtualNode, why: string, signal: AbortSignal): Promise<number | undefined> {
    if (current.metadata.deletionTimestamp !== undefined) return undefined;
    const { client } = this.#options;
    const { name } = await replaceOrGone(client, current, closedVirtualNode(current, why), signal);
    const node = await readOrGone(client, nodes, { name }, signal);
    if (node === undefined || !isNodeOf(node, current)) return undefined;
    // Its agent closes the Node; pods that are placed there until then must be seen.
    if (!isClosed(node.spec?.taints ?? [])) return POLL_MS;
    const { items } = await client.list(pods, { fieldSelector: `spec.nodeName=${name}`, signal });
    return items.some((pod) => !isOfDaemonSet(pod) && !isFinished(pod)) ? VACANCY_POLL_MS : undefined;
  }

  async #drainOne(current: VirtualNode, haste: Haste, signal: AbortSignal): Promise<Draining | undefined> {
    if (current.metadata.deletionTimestamp !== undefined) return undefined;
    const { client, clock } = this.#options;
    const now = clock.now();
    const desired = endingVirtualNode(current, new Date(now).toISOString());
    const { name } = await replaceOrGone(client, current, desired, signal);
    const sinceMs = endingSince(desired) ?? now;
    const node = await readOrGone(client, nodes, { name }, signal);
    // A Node that is not ours has taken the name: its pods are left alone.
    if (node !== undefined && !isNodeOf(node, current)) return undefined;
    const isOpen = node !== undefined && !isClosed(node.spec?.taints ?? []);
    if (isOpen && Math.abs(now - sinceMs) < CLOSING_MS) return { waitMs: CLOSING_POLL_MS };
    const drained = { nodeName: name, node, sinceMs, ...haste, why: 'the peering ends' };
    const state = await this.#drain.look(drained, signal);
    return state && { waitMs: state.waitMs, message: `${name}: ${drainText(state)}` };
  }

  async removeVirtualNode({ metadata }: VirtualNode, signal: AbortSignal): Promise<void> {
    const { name, uid } = metadata;
    if (metadata.deletionTimestamp === undefined) await this.#delete(virtualNodes, { name }, { uid, signal });
  }

  /** Removes what a dead agent leaves behind: pods, Node, Lease. Does nothing where the Node is somebody else's. */
  async removeNode(name: string, provider: string, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const node = await readOrGone(client, nodes, { name }, signal);
    if (node !== undefined && node.metadata.labels?.[LABEL_PROVIDER] !== provider) return;
    if (node !== undefined) await this.#delete(nodes, { name }, { uid: node.metadata.uid, signal });
    const { items } = await client.list(pods, { fieldSelector: `spec.nodeName=${name}`, signal });
    await this.#drain.force(name, items, signal);
    await this.#delete(leases, { name, namespace: LEASE_NAMESPACE }, { signal });
  }

  /** If it is gone, or another object by now, nothing is left to delete. */
  async #delete<T extends KubeObject>(
    type: ResourceType<T>,
    { name, namespace }: { name: string; namespace?: string },
    options: DeleteOptions,
  ): Promise<void> {
    const ref = { name, ...(namespace !== undefined && { namespace }) };
    const gone = options.uid === undefined ? ignoring('NotFound') : ignoring('NotFound', 'Conflict');
    await this.#options.client.delete(type, ref, options).catch(gone);
  }
}

async function replaceOrGone(
  client: KubeClient,
  current: VirtualNode,
  desired: VirtualNode,
  signal: AbortSignal,
): Promise<{ name: string }> {
  const { name } = current.metadata;
  await replaceIfDiffers(client, virtualNodes, current, { desired, signal }).catch(ignoring('NotFound'));
  return { name };
}

async function readOrGone<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  ref: { name: string },
  signal: AbortSignal,
): Promise<T | undefined> {
  return client.get(type, ref, { signal }).catch(ignoring('NotFound'));
}

const isNodeOf = ({ metadata }: Node, { metadata: of }: VirtualNode): boolean =>
  metadata.labels?.[LABEL_VIRTUAL_NODE] === of.name || isOf({ metadata }, of.labels?.[LABEL_PROVIDER] ?? '');
