/** What people do at home, and kubelets and administrators at the provider, while faults happen; and when it is done. */
import type { KubeApi } from '../../lab/kube-api.ts';
import { until } from '../until.ts';
import type { Lane } from './lane.ts';

/** In this order each finds what it needs. */
export const OPERATIONS = [
  'create',
  'update',
  'scale',
  'configure',
  'finish',
  'lose',
  'rename',
  'force',
  'delete',
] as const;
export type Operation = (typeof OPERATIONS)[number];

export function operationOf(name: string): Operation {
  const found = OPERATIONS.find((operation) => operation === name);
  if (found === undefined) throw new Error(`there is no operation ${name} of pods: ${OPERATIONS.join(', ')}`);
  return found;
}

/** What must be there before. */
export const NEEDS: Readonly<Record<Operation, 'nothing' | 'pods'>> = {
  create: 'nothing',
  update: 'pods',
  delete: 'pods',
  scale: 'pods',
  configure: 'pods',
  finish: 'pods',
  lose: 'pods',
  rename: 'pods',
  force: 'pods',
};

/** Pods that are no part of the Deployment. */
const EXTRAS: readonly string[] = ['once', 'named', 'forced'];
const REPLICAS = 3;
const MORE = 5;
/** A status that is written no more for so long is no longer written by kwok. */
const KUBELET_MS = 700;

interface PodObject {
  metadata: {
    name: string;
    uid: string;
    resourceVersion: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    ownerReferences?: { kind: string }[];
  };
  spec?: { containers?: { image?: string }[] };
  status?: { phase?: string; conditions?: { type: string; status: string }[] };
}

/** One lane's objects. Its numbers only grow, so that what an earlier run has left is never taken for the new. */
export class Workload {
  readonly #lane: Lane;
  #version = 0;
  #settings = 0;
  #replicas = REPLICAS;
  #hasPods = false;
  /** The pod whose body was lost last. */
  #lost = '';

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  get state(): 'nothing' | 'pods' {
    return this.#hasPods ? 'pods' : 'nothing';
  }

  /** What it asks for is written when this resolves. */
  async begin(operation: Operation): Promise<void> {
    switch (operation) {
      case 'create':
        this.#replicas = REPLICAS;
        this.#hasPods = true;
        await this.#home.apply(this.#configMap(), this.#secret());
        await this.#deploy();
        return;
      case 'update':
        await this.#deploy();
        return;
      case 'delete':
        this.#hasPods = false;
        await this.#remove(this.#home, `/apis/apps/v1/namespaces/${this.#lane.namespace}/deployments/web`);
        return;
      case 'scale':
        this.#replicas = this.#replicas === MORE ? REPLICAS : MORE;
        await this.#deploy('as it is');
        return;
      case 'configure':
        this.#settings++;
        await this.#home.apply(this.#configMap());
        return;
      case 'finish':
        await this.#runOnce();
        return;
      case 'lose':
        await this.#loseOne();
        return;
      case 'rename':
        await this.#replaceBare();
        return;
      case 'force':
        await this.#force();
        return;
    }
  }

  /** Resolves when it has come to what was asked for. */
  async done(operation: Operation): Promise<void> {
    await until(
      `${operation} in ${this.#lane.namespace} is done`,
      async () => {
        const wrong = [...(await this.#wrongPods()), ...(await this.#wrongExtras(operation))];
        return wrong.length === 0 ? true : wrong.join('; ');
      },
      this.#patienceMs,
    );
  }

  /** Without any fault. */
  async bring(state: 'nothing' | 'pods'): Promise<void> {
    if (state === this.state) return;
    const operation = state === 'pods' ? 'create' : 'delete';
    await this.begin(operation);
    await this.done(operation);
  }

  get #patienceMs(): number {
    return this.#lane.bed.bounds.settleSeconds * 1000;
  }

  get #home(): KubeApi {
    return this.#lane.bed.home.api;
  }

  get #provider(): KubeApi {
    return this.#lane.bed.provider.api;
  }

  async #deploy(image: 'another' | 'as it is' = 'another'): Promise<void> {
    if (image === 'another') this.#version++;
    await this.#home.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: this.#lane.namespace },
      spec: {
        replicas: this.#replicas,
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: this.#podSpec() },
      },
    });
  }

  #podSpec(): object {
    return {
      nodeSelector: { 'kubernetes.io/hostname': this.#lane.node },
      tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: `web:${this.#version}`,
          envFrom: [{ configMapRef: { name: 'settings' } }],
          volumeMounts: [{ name: 'secret', mountPath: '/secret' }],
        },
      ],
      volumes: [{ name: 'secret', secret: { secretName: 'canary' } }],
    };
  }

  #configMap(): { apiVersion: string; kind: string; metadata: { name: string; namespace: string } } {
    const metadata = { name: 'settings', namespace: this.#lane.namespace };
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
    return Object.assign(object, { data: { value: String(this.#settings) } });
  }

  #secret(): { apiVersion: string; kind: string; metadata: { name: string; namespace: string } } {
    const metadata = { name: 'canary', namespace: this.#lane.namespace };
    return Object.assign(
      { apiVersion: 'v1', kind: 'Secret', metadata },
      { stringData: { word: this.#lane.canary } },
    );
  }

  /** A pod that runs once; the kubelet over there says that it has succeeded. */
  async #runOnce(): Promise<void> {
    await this.#bare('once');
    const path = `/api/v1/namespaces/${this.#lane.tenant}/pods/once`;
    // kwok may say a second time that it runs.
    let seen = '';
    let since = performance.now();
    await until(
      'the body of the pod runs',
      async () => {
        const body = await this.#provider.get<PodObject>(path);
        if (body?.status?.phase === 'Succeeded') return true;
        if (body?.status?.phase !== 'Running') return String(body?.status?.phase);
        if (body.metadata.resourceVersion !== seen) {
          seen = body.metadata.resourceVersion;
          since = performance.now();
        }
        if (performance.now() - since < KUBELET_MS) return 'it has just begun to run';
        const status = {
          phase: 'Succeeded',
          conditions: [{ type: 'Ready', status: 'False', reason: 'PodCompleted' }],
          containerStatuses: [
            {
              name: 'main',
              image: 'once:1',
              imageID: '',
              restartCount: 0,
              ready: false,
              state: { terminated: { exitCode: 0, reason: 'Completed' } },
            },
          ],
        };
        const { status: code } = await this.#provider.call(
          'PATCH',
          `${path}/status`,
          { status },
          'application/strategic-merge-patch+json',
        );
        return code === 200 ? true : String(code);
      },
      this.#patienceMs,
    );
  }

  async #bare(name: string): Promise<void> {
    const { namespace } = this.#lane;
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const spec = {
      ...this.#podSpec(),
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: `${name}:1` }],
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec };
    await until(`the pod ${name} is made`, async () => {
      const { status, body } = await this.#home.call('POST', path, pod);
      return status === 201 ? true : `${status} ${body}`;
    });
  }

  /** An administrator of the provider deletes one pod there. */
  async #loseOne(): Promise<void> {
    const body = (await this.#pods('provider')).find(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    );
    if (body === undefined) throw new Error(`there is no pod in ${this.#lane.tenant}`);
    this.#lost = body.metadata.name;
    await this.#lane.auditor.lost('provider', body.metadata.uid);
    await this.#remove(this.#provider, `/api/v1/namespaces/${this.#lane.tenant}/pods/${body.metadata.name}`);
  }

  /** A pod goes, and another one takes its name at once. */
  async #replaceBare(): Promise<void> {
    await this.#bare('named');
    const path = `/api/v1/namespaces/${this.#lane.namespace}/pods/named`;
    await this.#home.call('DELETE', path, { gracePeriodSeconds: 0 });
    await this.#bare('named');
  }

  /** A pod that runs over there is removed at home by force, so that nobody waits for its end. */
  async #force(): Promise<void> {
    await this.#bare('forced');
    const { namespace, tenant } = this.#lane;
    await until(
      'the body of the pod runs',
      async () => {
        const body = await this.#provider.get<PodObject>(`/api/v1/namespaces/${tenant}/pods/forced`);
        return body?.status?.phase === 'Running' ? true : String(body?.status?.phase);
      },
      this.#patienceMs,
    );
    await this.#home.call('DELETE', `/api/v1/namespaces/${namespace}/pods/forced`, { gracePeriodSeconds: 0 });
  }

  async #remove(api: KubeApi, path: string): Promise<void> {
    const { status, body } = await api.call('DELETE', path);
    if (status >= 300 && status !== 404) throw new Error(`DELETE ${path}: ${status} ${body}`);
  }

  async #pods(side: 'home' | 'provider'): Promise<PodObject[]> {
    const [api, namespace] =
      side === 'home' ? [this.#home, this.#lane.namespace] : [this.#provider, this.#lane.tenant];
    return (await api.get<{ items: PodObject[] }>(`/api/v1/namespaces/${namespace}/pods`))?.items ?? [];
  }

  async #wrongPods(): Promise<string[]> {
    const wanted = this.#hasPods ? this.#replicas : 0;
    const isOwned = ({ metadata }: PodObject): boolean =>
      metadata.ownerReferences?.some(({ kind }) => kind === 'ReplicaSet') === true;
    const here = (await this.#pods('home')).filter((pod) => isOwned(pod) && pod.status?.phase !== 'Failed');
    const right = here.filter(
      ({ metadata, spec, status }) =>
        metadata.deletionTimestamp === undefined &&
        spec?.containers?.[0]?.image === `web:${this.#version}` &&
        status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    );
    if (here.length === wanted && right.length === wanted) return [];
    return [`${right.length} of ${wanted} pods are right, ${here.length} are there`];
  }

  /** What an operation asks for besides the pods of the Deployment. */
  async #wrongExtras(operation: Operation): Promise<string[]> {
    switch (operation) {
      case 'configure':
        return this.#wrongCopy();
      case 'finish':
        return this.#unless('once', 'Succeeded');
      case 'rename':
        return this.#unless('named', 'Running');
      case 'lose': {
        // Until the loss is known at home, all seems to be right.
        const phase = await this.#phaseOf('home', this.#lost);
        return phase === undefined || phase === 'Failed'
          ? []
          : [`the pod ${this.#lost}, whose body was lost, is ${phase}`];
      }
      case 'force': {
        const phase = await this.#phaseOf('provider', 'forced');
        return phase === undefined ? [] : [`the body of the pod forced is still there, and ${phase}`];
      }
      default:
        return [];
    }
  }

  async #wrongCopy(): Promise<string[]> {
    const path = `/api/v1/namespaces/${this.#lane.tenant}/configmaps/settings`;
    const copy = await this.#provider.get<{ data?: { value?: string } }>(path);
    const value = copy?.data?.value;
    return value === String(this.#settings)
      ? []
      : [`the copy of the ConfigMap says ${value}, not ${this.#settings}`];
  }

  async #unless(name: string, wanted: string): Promise<string[]> {
    const phase = await this.#phaseOf('home', name);
    if (phase === wanted) return [];
    const body = await this.#phaseOf('provider', name);
    return [`the pod ${name} is ${phase}, not ${wanted}, and its body ${body}`];
  }

  /** Undefined: there is no such pod. */
  async #phaseOf(side: 'home' | 'provider', name: string): Promise<string | undefined> {
    const [api, namespace] =
      side === 'home' ? [this.#home, this.#lane.namespace] : [this.#provider, this.#lane.tenant];
    const pod = await api.get<PodObject>(`/api/v1/namespaces/${namespace}/pods/${name}`);
    return pod === undefined ? undefined : (pod.status?.phase ?? 'Pending');
  }

  /** Removes what an operation has made besides. */
  async tidy(): Promise<void> {
    const { namespace } = this.#lane;
    for (const name of EXTRAS) await this.#remove(this.#home, `/api/v1/namespaces/${namespace}/pods/${name}`);
    for (const { metadata, status } of await this.#pods('home')) {
      if (status?.phase !== 'Failed') continue;
      await this.#remove(this.#home, `/api/v1/namespaces/${namespace}/pods/${metadata.name}`);
    }
    await until(`the extra pods of ${namespace} are gone`, async () => {
      const left = (await this.#pods('home')).filter(
        ({ metadata, status }) => EXTRAS.includes(metadata.name) || status?.phase === 'Failed',
      );
      return left.length === 0 ? true : left.map(({ metadata }) => metadata.name).join(', ');
    });
  }
}
