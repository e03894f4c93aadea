import type { EventReason } from '../../api/reasons/events.ts';
import type { Forwarding } from '../../api/cluster-mode.ts';
import type { NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { ANNOTATION_HOME_NAMESPACE, LABEL_HOME_UID } from '../../api/names.ts';
import { nodeNameOf } from '../../api/node-labels.ts';
import { WAITING_FOR_NODE } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { Pod } from '../../api/wire.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { aboutPod } from '../../kube/events.ts';
import { deleteByUid } from '../../kube/write.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { errorMessage, ignoring } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { NO_NODE } from '../release/journal.ts';
import type { OffloadingParts, Remake } from '../release/remake.ts';
import { admittedForAnother, comingHome } from './decide.ts';

interface ForwardedPodsOptions extends OffloadingParts {
  remake: Pick<Remake, 'begin'>;
  virtualNodes: () => Iterable<VirtualNode>;
  /** What the mode of this cluster means for pods; undefined: nothing. */
  forwarding: () => Forwarding | undefined;
  /** What says where pods of that namespace go; undefined where the mode does not decide it. */
  offloadingOf: (namespace: string) => NamespaceOffloading | undefined;
}

const KEY = 'forwarded';
const LOOK_MS = 5000;
/** For so long after a change of the mode, API servers may not ask the webhook by the new one yet. */
const SETTLE_MS = 20_000;
const PAGE = 500;
const AT_ONCE = 8;
const STEPS = { event: 'RunsLocally', kept: 'NotRunLocally' } as const;

/**
 * Brings pods home that were forwarded to a cluster which has stopped them and is away: its agent cannot say that they have
 * ended, so they are removed at once, by UID, and made anew here. A pod that was placed back runs here already, and stays.
 * After each change of the mode, pods without a node that were admitted before it are made anew, too.
 */
export class ForwardedPods {
  readonly #options: ForwardedPodsOptions;
  readonly #controller: Controller;
  #isBusy = false;
  /** UIDs of pods about which the event was made. */
  readonly #told = new Set<string>();
  /** What the mode said last, and since when; monotonic. */
  #last: { strategy: string; sinceMs: number } | undefined;

  constructor(options: ForwardedPodsOptions) {
    const { clock, log, metrics } = options;
    this.#options = { ...options, log: log.named('forwarded') };
    this.#controller = new Controller({
      name: 'forwarded-pods',
      concurrency: 1,
      reconcile: async (_key, { signal }) => this.#reconcile(signal),
      clock,
      log: this.#options.log,
      ...(metrics && { metrics }),
    });
  }

  component(): Controller {
    return this.#controller;
  }

  /** To be called when `stoppedNodes` may answer otherwise. */
  look(): void {
    this.#controller.add(KEY);
  }

  /** Whether pods are being removed at this moment: the other cluster must not be told yet that it may run them. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  async #reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    const forwarding = this.#options.forwarding();
    const isSettling = this.#isSettling(forwarding);
    if (forwarding === undefined) {
      this.#told.clear();
      return {};
    }
    this.#isBusy = true;
    try {
      if (isSettling) await this.#freeWaiting(forwarding, signal);
      if (forwarding.comesHome) {
        const bodies = await this.#bodies(signal);
        for (const node of forwarding.nodes) await this.#bringHome(node, bodies, signal);
      }
    } finally {
      this.#isBusy = false;
    }
    return isSettling || forwarding.comesHome ? { requeueAfterMs: LOOK_MS } : {};
  }

  #isSettling(forwarding: Forwarding | undefined): boolean {
    const strategy = forwarding === undefined ? '' : `${forwarding.podStrategy} ${forwarding.comesHome}`;
    const now = this.#options.clock.monotonic();
    if (this.#last?.strategy !== strategy) this.#last = { strategy, sinceMs: now };
    return now - this.#last.sinceMs < SETTLE_MS;
  }

  async #freeWaiting(forwarding: Forwarding, signal: AbortSignal): Promise<void> {
    const { client, offloadingOf } = this.#options;
    const list = { fieldSelector: WAITING_FOR_NODE, limit: PAGE, signal };
    for await (const { items } of client.pages(pods, list)) {
      for (const pod of items.filter(({ metadata }) => offloadingOf(metadata.namespace ?? ''))) {
        const action = admittedForAnother(pod, forwarding);
        if (action === 'Stay' || action === 'Kept') continue;
        this.#tell(pod, 'MadeAnew', 'was admitted before this cluster changed its mode; it is made anew');
        const { uid, resourceVersion } = pod.metadata;
        // With the version: one that has got a node since is left alone.
        if (action === 'Remake') await this.#remake(pod, { from: NO_NODE, unlessStarted: true, signal });
        else
          await client
            .delete(pods, pod.metadata, { uid, resourceVersion, signal })
            .catch(ignoring('NotFound', 'Conflict'));
      }
    }
  }

  async #bringHome(node: string, bodies: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const list = { fieldSelector: `spec.nodeName=${node}`, limit: PAGE, signal };
    const tenantOf = this.#tenantsOf(node);
    for await (const { items } of this.#options.client.pages(pods, list)) {
      await eachAtOnce(items, AT_ONCE, async (pod) => {
        const { name, namespace = '' } = pod.metadata;
        const hasBodyHere = bodies.has(`${tenantOf.get(namespace)}/${name}`);
        await this.#tryOne(pod, { node, hasBodyHere, signal });
      });
    }
  }

  /** A pod that cannot be removed must not hold up the others: it is tried again at the next look. */
  async #tryOne(pod: Pod, where: { node: string; hasBodyHere: boolean; signal: AbortSignal }): Promise<void> {
    const { signal, node, hasBodyHere } = where;
    // Contact may be back since the pods were listed.
    const { comesHome = false, nodes = [] } = this.#options.forwarding() ?? {};
    if (!comesHome || !nodes.includes(node)) return;
    try {
      await this.#one(pod, { node, hasBodyHere, signal });
    } catch (error) {
      if (signal.aborted) throw error;
      this.#options.log.warn('a forwarded pod cannot be brought home, and is tried again', {
        pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
        error: errorMessage(error),
      });
    }
  }

  async #one(
    pod: Pod,
    { node, hasBodyHere, signal }: { node: string; hasBodyHere: boolean; signal: AbortSignal },
  ): Promise<void> {
    const { client } = this.#options;
    const action = comingHome(pod, hasBodyHere);
    if (action === 'Stay') return;
    if (action === 'Kept') {
      this.#tell(pod, STEPS.kept, 'stays away while contact is lost: its volumes are in the other cluster');
      return;
    }
    this.#tell(pod, STEPS.event, 'the other cluster is away and has stopped this pod; it is made anew here');
    if (action === 'Remake') await this.#remake(pod, { from: node, unlessStarted: false, signal });
    else await deleteByUid(client, pods, pod, { gracePeriodSeconds: 0, signal });
  }

  /** Without what the webhook has added for another place. */
  async #remake(pod: Pod, how: { from: string; unlessStarted: boolean; signal: AbortSignal }): Promise<void> {
    const { remake, offloadingOf } = this.#options;
    const { clusterSelector } = offloadingOf(pod.metadata.namespace ?? '')?.spec ?? {};
    await remake.begin(pod, { ...how, ...present({ clusterSelector }) });
  }

  #tell(pod: Pod, reason: EventReason, message: string): void {
    if (this.#told.has(pod.metadata.uid)) return;
    this.#told.add(pod.metadata.uid);
    this.#options.events.event(aboutPod(pod), reason === STEPS.kept ? 'Warning' : 'Normal', reason, message);
  }

  /** By home namespace: the namespace over there. A pod keeps its name on its whole way. */
  #tenantsOf(node: string): Map<string, string> {
    const mappings = [...this.#options.virtualNodes()]
      .filter((virtualNode) => nodeNameOf(virtualNode) === node)
      .flatMap(({ spec, status }) => [...(status?.namespaces ?? []), ...(spec.namespaces ?? [])]);
    return new Map(mappings.map(({ homeNamespace, tenantNamespace }) => [homeNamespace, tenantNamespace]));
  }

  /** Pods of others here that have not finished, as `namespace/name` over there. */
  async #bodies(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const list = { labelSelector: LABEL_HOME_UID, limit: PAGE, signal };
    const found = new Set<string>();
    for await (const { items } of this.#options.client.pages(pods, list)) {
      for (const { metadata, status } of items) {
        if (status?.phase === 'Succeeded' || status?.phase === 'Failed') continue;
        found.add(`${metadata.annotations?.[ANNOTATION_HOME_NAMESPACE]}/${metadata.name}`);
      }
    }
    return found;
  }
}
