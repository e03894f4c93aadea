/**
 * A virtual node that is full: four pods of a low class take all that was agreed on. The provider's node has no more room either:
 * a pod of the provider's own, of the lowest class of all, takes the rest.
 */
import { LABEL_VIRTUAL_NODE } from '../../../src/api/names.ts';
import {
  deployments,
  namespaces,
  nodes,
  pods,
  priorityClasses,
  resourceQuotas,
} from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import type { Node, Pod, PodCondition, PodSpec } from '../../../src/api/wire.ts';
import { ANNOTATION_PRIORITY_CLASSES } from '../../../src/hosting/annotations.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { eventually } from '../../support/eventually.ts';
import { type AgentLab, NODE } from '../../support/labs/agent-lab.ts';

/** Of all pods of home. Not the default of Kubernetes. */
export const GRACE_SECONDS = 7;
const LOW = { namespace: 'shop', name: 'low' };
const OWN = { namespace: 'default', name: 'own' };
const NAMESPACE = { home: 'shop', foreign: 'tenant' } as const;
const HELD = 'test.example/held';

type Side = 'home' | 'foreign';

export class FullNode {
  readonly #lab: AgentLab;
  readonly #abort = new AbortController();
  readonly #watches: { start: (signal: AbortSignal) => Promise<void>; stop: () => Promise<void> }[] = [];
  /** Pods that were ever told to end since the node was full, and the seconds that they had at first. */
  readonly ended: Record<Side, Map<string, number | undefined>> = { home: new Map(), foreign: new Map() };
  /** All that the Node has shown of CPUs since it was full. */
  readonly shown: Set<string | undefined> = new Set();

  constructor(lab: AgentLab) {
    this.#lab = lab;
  }

  async fill(): Promise<void> {
    const { home, foreign } = this.#lab;
    await eventually('nothing is left', async () => (await this.#lab.pods('foreign')).length === 0);
    await home.create(priorityClasses, { metadata: { name: 'low' }, value: 10 });
    // As by default, it preempts at home.
    await home.create(priorityClasses, { metadata: { name: 'urgent' }, value: 1000 });
    const lent = { metadata: { name: 'urgent' }, value: 1000, preemptionPolicy: 'Never' };
    await foreign.create(priorityClasses, lent);
    await foreign.create(priorityClasses, { metadata: { name: 'spare' }, value: -100 });
    const annotations = { [ANNOTATION_PRIORITY_CLASSES]: 'urgent' };
    const lends = { type: 'merge', body: { metadata: { annotations } } } as const;
    await foreign.patch(namespaces, { name: NAMESPACE.foreign }, lends);
    const borrows = { type: 'merge', body: { spec: { priorityClasses: ['urgent'] } } } as const;
    await home.patch(virtualNodes, { name: NODE }, borrows);
    await this.agree('24');
    const spare = { ...requesting('8'), priorityClassName: 'spare' };
    await foreign.create(pods, { metadata: OWN, spec: spare });
    const selector = { matchLabels: { app: LOW.name } };
    const template = { metadata: { labels: selector.matchLabels }, spec: onNode('low') };
    await home.create(deployments, { metadata: LOW, spec: { replicas: 4, selector, template } });
    await eventually('the node is full', async () => (await this.running('low')).length === 4);
    await this.#watch();
  }

  async #watch(): Promise<void> {
    const common = { clock: systemClock, log: silentLogger };
    for (const side of ['home', 'foreign'] as const) {
      const list = { namespace: NAMESPACE[side] };
      const informer = new Informer<Pod>({ ...common, client: this.#lab[side], type: pods, list });
      const ended = this.ended[side];
      informer.onChange((_key, pod) => {
        const { name = '', deletionTimestamp, deletionGracePeriodSeconds } = pod?.metadata ?? {};
        if (deletionTimestamp !== undefined && !ended.has(name)) ended.set(name, deletionGracePeriodSeconds);
      });
      this.#watches.push(informer);
    }
    const list = { fieldSelector: `metadata.name=${NODE}` };
    const node = new Informer<Node>({ ...common, client: this.#lab.home, type: nodes, list });
    node.onChange((_key, current) => this.shown.add(current?.status?.allocatable?.['cpu']));
    this.#watches.push(node);
    await Promise.all(this.#watches.map(async (watch) => watch.start(this.#abort.signal)));
  }

  /** How many CPUs the virtual node shows, and the quota over there admits. */
  async agree(cpu: string): Promise<void> {
    const { home, foreign } = this.#lab;
    const quota = { namespace: NAMESPACE.foreign, name: 'tributary' };
    const hard = { 'requests.cpu': cpu };
    await foreign.patch(resourceQuotas, quota, { type: 'merge', body: { spec: { hard } } });
    const body = { spec: { resources: { cpu } } };
    await home.patch(virtualNodes, { name: NODE }, { type: 'merge', body });
    await eventually(`${cpu} CPUs are shown and admitted`, async () => {
      const { status: admitted } = await foreign.get(resourceQuotas, quota);
      const { status: shown } = await home.get(nodes, { name: NODE });
      return admitted?.hard?.['requests.cpu'] === cpu && shown?.allocatable?.['cpu'] === cpu;
    });
  }

  /** Names of home pods of a class. */
  async #named(className: string, isSo: (pod: Pod) => boolean): Promise<string[]> {
    const all = await this.#lab.pods('home');
    const found = all.filter((pod) => pod.spec?.priorityClassName === className && isSo(pod));
    return found.map(({ metadata }) => metadata.name).toSorted();
  }

  running = async (className: string): Promise<string[]> =>
    this.#named(
      className,
      ({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running',
    );

  /** Without a node. */
  waiting = async (className: string): Promise<string[]> =>
    this.#named(className, ({ spec }) => spec?.nodeName === undefined);

  async addUrgent(name: string): Promise<void> {
    const metadata = { namespace: NAMESPACE.home, name };
    await this.#lab.home.create(pods, { metadata, spec: onNode('urgent') });
  }

  /** In all. */
  async keepLow(replicas: number): Promise<void> {
    await this.#lab.home.patch(deployments, LOW, { type: 'merge', body: { spec: { replicas } } });
    await eventually(
      `${replicas} are left`,
      async () => (await this.#named('low', () => true)).length === replicas,
    );
  }

  async pod(side: Side, name: string): Promise<Pod | undefined> {
    const ref = { namespace: NAMESPACE[side], name };
    return this.#lab[side].get(pods, ref).catch(ignoring('NotFound'));
  }

  async condition(side: Side, name: string, type: string): Promise<PodCondition | undefined> {
    const pod = await this.pod(side, name);
    return pod?.status?.conditions?.find((one) => one.type === type);
  }

  own = async (): Promise<Pod> => this.#lab.foreign.get(pods, OWN);

  /** As a kubelet over there that still ends the pod. */
  async showEnding(name: string): Promise<void> {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'Ending' }];
    const patch = { type: 'strategic', body: { status: { conditions } } } as const;
    const ref = { namespace: NAMESPACE.foreign, name };
    await this.#lab.foreign.patch(pods, ref, patch, { subresource: 'status' });
  }

  /** From now on, bodies end only when they are let go. */
  hold = async (names: readonly string[]): Promise<void> => this.#finalizers(names, [HELD]);
  letGo = async (names: readonly string[]): Promise<void> => this.#finalizers(names, null);

  async #finalizers(names: readonly string[], finalizers: string[] | null): Promise<void> {
    for (const name of names) {
      const patch = { type: 'merge', body: { metadata: { finalizers } } } as const;
      const ref = { namespace: NAMESPACE.foreign, name };
      await this.#lab.foreign.patch(pods, ref, patch).catch(ignoring('NotFound'));
    }
  }

  async empty(): Promise<void> {
    const { home, foreign } = this.#lab;
    this.#abort.abort(new Error('the node is no longer full'));
    await Promise.all(this.#watches.map(async (watch) => watch.stop()));
    await this.letGo((await this.#lab.pods('foreign')).map(({ metadata }) => metadata.name));
    await home.delete(deployments, LOW);
    for (const name of await this.#named('urgent', () => true)) {
      await home.delete(pods, { namespace: NAMESPACE.home, name });
    }
    await foreign.delete(pods, OWN);
  }
}

const requesting = (cpu: string): PodSpec => ({
  containers: [{ name: 'main', image: 'web:1', resources: { requests: { cpu } } }],
});

/** A fourth of what is agreed on. */
const onNode = (priorityClassName: string): PodSpec => ({
  ...requesting('6'),
  priorityClassName,
  nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
  tolerations: [{ operator: 'Exists' }],
  terminationGracePeriodSeconds: GRACE_SECONDS,
});
