/** Plays what the agent and the kubelets of two clusters do: pods at home, their bodies, and the status of both. */
import type { KubeApi } from '../../../lab/kube-api.ts';

type SideName = 'home' | 'foreign';
type Phase = 'Pending' | 'Running' | 'Succeeded';

/** Nobody else plays it. */
const NODE = 'played';
const NAMESPACES = { home: 'shop', foreign: 'tenant' } as const;

interface Read {
  metadata: { uid: string };
}

export class PlayedPods {
  readonly #apis: Readonly<Record<SideName, KubeApi>>;

  constructor(home: KubeApi, foreign: KubeApi) {
    this.#apis = { home, foreign };
  }

  /** Namespaces, and a node in each cluster. */
  async furnish(): Promise<void> {
    for (const side of ['home', 'foreign'] as const) {
      const api = this.#apis[side];
      await api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACES[side] } });
      await api.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
      const account = { name: 'default', namespace: NAMESPACES[side] };
      await api.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
    }
  }

  async #do(side: SideName, method: string, path: string, body?: object): Promise<string> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : undefined;
    const whole = `/api/v1/namespaces/${NAMESPACES[side]}/${path}`;
    const answer = await this.#apis[side].call(method, whole, body, type);
    if (answer.status >= 300) throw new Error(`${method} ${whole}: ${answer.status} ${answer.body}`);
    return answer.body;
  }

  async #make(side: SideName, name: string, labels: object): Promise<string> {
    const spec = { nodeName: NODE, containers: [{ name: 'main', image: 'web:1' }] };
    const body = await this.#do(side, 'POST', 'pods', { metadata: { name, labels }, spec });
    return (JSON.parse(body) as Read).metadata.uid;
  }

  /** A home pod on the virtual node, with a body that has not begun. */
  async bind(name: string): Promise<{ home: string; remote: string }> {
    const home = await this.#make('home', name, {});
    return { home, remote: await this.put(name, home) };
  }

  /** A body; returns its UID. */
  async put(name: string, homeUid: string): Promise<string> {
    return this.#make('foreign', name, { 'tributary.dev/home-uid': homeUid });
  }

  /** A home pod whose body runs, as home shows. */
  async run(name: string): Promise<{ home: string; remote: string }> {
    const uids = await this.bind(name);
    await this.set('foreign', name, 'Running');
    await this.set('home', name, 'Running');
    return uids;
  }

  async set(side: SideName, name: string, phase: Phase, restartCount = 0): Promise<void> {
    const isRunning = phase === 'Running';
    const status = { phase, conditions: [{ type: 'Ready', status: isRunning ? 'True' : 'False' }] };
    const state = isRunning ? { running: {} } : { waiting: {} };
    const container = { name: 'main', image: 'web:1', imageID: '', ready: isRunning, restartCount, state };
    const statuses = phase === 'Succeeded' ? [] : [container];
    const body = { status: { ...status, containerStatuses: statuses } };
    await this.#do(side, 'PATCH', `pods/${name}/status`, body);
  }

  /** The home pod is deleted, and then its body. */
  async end(name: string): Promise<void> {
    await this.remove('home', name);
    await this.remove('foreign', name);
  }

  async remove(side: SideName, name: string): Promise<void> {
    await this.#do(side, 'DELETE', `pods/${name}?gracePeriodSeconds=0`);
  }

  async uid(side: SideName, name: string): Promise<string> {
    return (JSON.parse(await this.#do(side, 'GET', `pods/${name}`)) as Read).metadata.uid;
  }

  /** Writes something that changes nothing that anybody sees. */
  async touch(side: SideName, name: string): Promise<void> {
    const body = { metadata: { annotations: { touched: String(performance.now()) } } };
    await this.#do(side, 'PATCH', `pods/${name}`, body);
  }

  /** A ConfigMap at home, and its copy, which has another value. */
  async copy(name: string, value: string): Promise<void> {
    await this.#do('home', 'POST', 'configmaps', { metadata: { name }, data: { value: `not ${value}` } });
    const labels = { 'tributary.dev/managed-by': NODE };
    await this.#do('foreign', 'POST', 'configmaps', { metadata: { name, labels }, data: { value } });
  }

  /** An event at home. */
  async tell(name: string, message: string): Promise<void> {
    const involvedObject = { kind: 'Pod', namespace: NAMESPACES.home, name: 'honest' };
    const body = { metadata: { name }, involvedObject, reason: 'Told', message, type: 'Normal' };
    await this.#do('home', 'POST', 'events', body);
  }
}
