import { LABEL_NODE_TYPE, NODE_TYPE_VIRTUAL, ANNOTATION_WHEN_AWAY } from '../../api/names.ts';
import type { NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { DEFAULT_STAY_SECONDS, withStay } from '../../api/node-life.ts';
import { nodeNameOf } from '../../api/node-labels.ts';
import { nodes, pods } from '../../api/resources.ts';
import { slimNode } from '../../api/slim-node.ts';
import { VIRTUAL_NODE_CONDITIONS, type VirtualNode } from '../../api/virtual-node.ts';
import type { Node, Pod } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { aboutPod } from '../../kube/events.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Offloading } from '../offloading.ts';
import type { OffloadingParts } from '../release/remake.ts';
import { subjectOf } from '../status.ts';
import { writeHeldOff } from '../write-held-off.ts';
import { type AwayAction, decideAway, moveAfterMs, staysMessage } from './decide.ts';
import { decideHold } from './hold.ts';

interface AwayPodsOptions extends OffloadingParts {
  caches: Caches;
  offloadings: Pick<Offloading, 'offloadingOf' | 'all' | 'selectedBy' | 'onChange'> & {
    virtualNodes: Pick<Cache<VirtualNode>, 'list'>;
  };
  /** A virtual node that is not Ready for less than this is left alone, milliseconds. Default 30 000. */
  settleMs?: number;
}

/** What one look at a virtual node goes by. */
interface Look {
  node: string;
  awayMs: number;
  signal: AbortSignal;
}

/** An agent that is started anew makes no work. Far less than the 300 s after which Kubernetes moves pods. */
const SETTLE_MS = 30_000;
const AGAIN_MS = 30_000;
const SOON_MS = 2_000;
/** After new pods are kept home, before others move: every webhook knows of it by then. */
const HOLD_SETTLE_MS = 1_000;
const PAGE = 500;
const AT_ONCE = 8;

/**
 * Does with the pods of a virtual node that is not Ready as their namespaces say. In normal life it writes nothing and reads nothing
 * but Nodes: Kubernetes lets pods stay for 300 s, and within that time each pod that stays longer gets tolerations that say so.
 * Those that move are deleted here: Kubernetes would not see a stay that was made shorter once it has begun to count.
 */
export class AwayPods {
  readonly #options: AwayPodsOptions;
  readonly #nodes: Cache<Node>;
  readonly #controller: Controller;
  /** Since when a Node is not Ready, monotonic milliseconds. */
  readonly #since = new Map<string, number>();

  constructor(options: AwayPodsOptions) {
    const { caches, clock, log, metrics, offloadings } = options;
    this.#options = options;
    this.#nodes = caches.of(nodes, { transform: slimNode, only: isVirtual, name: 'cache of virtual Nodes' });
    this.#controller = new Controller({
      name: 'away-pods',
      concurrency: 2,
      reconcile: async (node, { signal }) => this.#reconcile(node, signal),
      clock,
      log: log.named('away'),
      ...(metrics && { metrics }),
    });
    this.#nodes.onChange((name, current, previous) => {
      if (isReady(current) !== isReady(previous)) this.#controller.add(name);
    });
    offloadings.onChange(() => {
      for (const name of this.#since.keys()) this.#controller.add(name);
    });
  }

  components(): Component[] {
    return [this.#nodes, this.#controller];
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const node = this.#nodes.get(name);
    if (node === undefined || isReady(node)) {
      this.#since.delete(name);
      return {};
    }
    const { settleMs = SETTLE_MS } = this.#options;
    const awayMs = this.#awayMs(name);
    const concerned = this.#concerned(name);
    const firstMs = Math.min(settleMs, ...concerned.flatMap((one) => moveAfterMs(one) ?? []));
    if (awayMs < firstMs) return { requeueAfterMs: firstMs - awayMs };
    const look = { node: name, awayMs, signal };
    const held = await this.#hold(concerned, look);
    if (held.isNew) return { requeueAfterMs: HOLD_SETTLE_MS };
    const nextMs = await this.#look(look);
    return { requeueAfterMs: Math.max(1, Math.min(AGAIN_MS, held.afterMs, nextMs)) };
  }

  /** Counts by a clock that nobody sets. What was before this process ran is known from the VirtualNode, by the wall clock. */
  #awayMs(name: string): number {
    const { clock } = this.#options;
    const known = this.#since.get(name);
    if (known !== undefined) return clock.monotonic() - known;
    const ready = this.#virtualNode(name)?.status?.conditions?.find(
      ({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready,
    );
    const beganMs = ready?.status === 'False' ? Date.parse(ready.lastTransitionTime) : Number.NaN;
    const beforeMs = Number.isNaN(beganMs) ? 0 : Math.max(0, clock.now() - beganMs);
    this.#since.set(name, clock.monotonic() - beforeMs);
    return beforeMs;
  }

  #virtualNode(node: string): VirtualNode | undefined {
    return [...this.#options.offloadings.virtualNodes.list()].find((one) => nodeNameOf(one) === node);
  }

  /** Those whose pods may be on that Node. */
  #concerned(node: string): NamespaceOffloading[] {
    const { offloadings } = this.#options;
    return offloadings
      .all()
      .filter((one) => offloadings.selectedBy(one).some((virtualNode) => nodeNameOf(virtualNode) === node));
  }

  async #hold(
    concerned: readonly NamespaceOffloading[],
    { node, awayMs, signal }: Look,
  ): Promise<{ isNew: boolean; afterMs: number }> {
    const { client, clock, events } = this.#options;
    const virtualNode = this.#virtualNode(node)?.metadata.name ?? node;
    const found = { isNew: false, afterMs: AGAIN_MS };
    for (const offloading of concerned) {
      const hold = decideHold(offloading, { virtualNode, awayMs, nowMs: clock.now() });
      if (hold === undefined) continue;
      found.afterMs = Math.min(found.afterMs, hold.afterMs);
      if (hold.heldOff === undefined) continue;
      await writeHeldOff(client, offloading, hold.heldOff, signal);
      if (hold.isNew === true)
        events.event(subjectOf(offloading), 'Normal', 'KeptHome', keptMessage(virtualNode));
      found.isNew = true;
    }
    return found;
  }

  /** Returns after how many milliseconds it is to be done once more. */
  async #look({ node, awayMs, signal }: Look): Promise<number> {
    const { client, offloadings } = this.#options;
    const list = { fieldSelector: `spec.nodeName=${node}`, limit: PAGE, signal };
    let nextMs = AGAIN_MS;
    for await (const { items } of client.pages(pods, list)) {
      const waits = await eachAtOnce(items, AT_ONCE, async (pod) => {
        const offloading = offloadings.offloadingOf(pod.metadata.namespace ?? '');
        const action = decideAway(pod, { offloading, awayMs });
        return this.#act(pod, action, { node, signal });
      });
      nextMs = Math.min(nextMs, ...waits);
    }
    return nextMs;
  }

  /** Each write names the UID and the version that it was decided for. Returns when to look again, milliseconds. */
  async #act(
    pod: Pod,
    action: AwayAction,
    { node, signal }: { node: string; signal: AbortSignal },
  ): Promise<number> {
    if (action.do === 'nothing') return AGAIN_MS;
    if (action.do === 'wait') return action.ms;
    const { client, events } = this.#options;
    const { uid, resourceVersion } = pod.metadata;
    try {
      if (action.do === 'move') {
        await client.delete(pods, pod.metadata, { uid, resourceVersion, signal });
        const message = `virtual node "${node}" is away for longer than whenAway of the namespace lets its pods stay; what still runs over there ends when contact is back`;
        events.event(aboutPod(pod), 'Warning', 'MovedWhileAway', message);
        return AGAIN_MS;
      }
      const body = {
        metadata: { uid, resourceVersion, annotations: marks(action) },
        spec: spec(pod, action),
      };
      await client.patch(pods, pod.metadata, { type: 'merge', body }, { signal });
      if (action.why !== undefined) {
        events.event(aboutPod(pod), 'Warning', 'StaysWhileAway', staysMessage(node, action.why));
      }
    } catch (error) {
      // It has changed, or it is gone.
      if (!hasCode(error, 'Conflict', 'NotFound')) throw error;
    }
    return SOON_MS;
  }
}

type Stay = Extract<AwayAction, { do: 'stay' }>;

const marks = ({ until }: Stay): object => ({ [ANNOTATION_WHEN_AWAY]: until === 'Contact' ? 'Stay' : null });

const spec = (pod: Pod, { until }: Stay): object => ({
  tolerations: withStay(pod, until === 'Contact' ? undefined : DEFAULT_STAY_SECONDS),
});

const keptMessage = (virtualNode: string): string =>
  `virtual node "${virtualNode}" is away: new pods without claims are kept on real nodes, as whenAway says, until the time in ` +
  'status.heldOff. They stay there; to send them away again after that, restart their owner';

const isVirtual = ({ metadata }: Node): boolean => metadata.labels?.[LABEL_NODE_TYPE] === NODE_TYPE_VIRTUAL;

/** One that is not there says nothing. */
const isReady = (node: Node | undefined): boolean | undefined =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
