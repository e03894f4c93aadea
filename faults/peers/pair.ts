/** Rome, which uses, and milan, which lends: what people do with them, and when it has come to what they want. */
import { difference, inventory } from '../../lab/inventory.ts';
import type { KubeObject } from '../../lab/kube-api.ts';
import { until } from '../until.ts';
import { type City, VERSION } from './city.ts';

/** In this order each finds what it needs, and the last one leaves things as the first one found them. */
export const OPERATIONS = [
  'peer',
  'offload',
  'release',
  'drain',
  'peer-again',
  'unpeer',
  'tether',
  'untether',
] as const;
export type Operation = (typeof OPERATIONS)[number];

const DONE_MS = 120_000;
const SHOP = '/api/v1/namespaces/shop';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/shop/deployments';
const OFFLOADING = `/apis/${VERSION}/namespaces/shop/namespaceoffloadings/offloading`;
const CLUSTER_MODE = `/apis/${VERSION}/clustermodes/cluster`;

interface PodObject extends KubeObject {
  metadata: { name: string; labels?: Record<string, string>; deletionTimestamp?: string };
  spec?: { nodeName?: string };
  status?: { phase?: string };
}
interface Conditioned extends KubeObject {
  status?: { phase?: string; conditions?: { type: string; status: string; reason?: string }[] };
}

export class Pair {
  readonly rome: City;
  readonly milan: City;
  /** What is there when nobody wants anything, by city. */
  readonly #bare = new Map<string, readonly string[]>();

  constructor(rome: City, milan: City) {
    this.rome = rome;
    this.milan = milan;
  }

  get cities(): readonly City[] {
    return [this.rome, this.milan];
  }

  /** Starts both, makes them known to each other, and remembers what is there. */
  async furnish(): Promise<void> {
    await Promise.all(this.cities.map(async (city) => city.run()));
    const { rome, milan } = this;
    await milan.api.apply(
      object('SharingPolicy', 'all', { peers: { anyone: true }, approval: 'Automatic', tethering: 'Allow' }),
    );
    await rome.api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await rome.api.apply(
      object('ForeignCluster', 'milan', {
        clusterID: milan.id,
        endpoint: milan.endpoint,
        outgoing: 'Disabled',
        incoming: 'Auto',
      }),
    );
    await until('they are linked', async () => {
      const { link } = (await rome.foreign(milan.id))?.status ?? {};
      return link?.connected === true ? true : JSON.stringify(link);
    });
    await until('shop is furnished', async () =>
      (await rome.api.get(`${SHOP}/configmaps/kube-root-ca.crt`)) === undefined ? 'not yet' : true,
    );
    await this.#settled();
    for (const city of this.cities) this.#bare.set(city.name, await objects(city));
  }

  async begin(operation: Operation): Promise<void> {
    const { rome, milan } = this;
    switch (operation) {
      case 'peer':
      case 'peer-again':
        await this.#want({ outgoing: 'Enabled', incoming: 'Auto', namespaces: ['shop'] });
        return;
      case 'offload':
        await rome.api.apply(offloading(), deployment('web', 2, { 'tributary.dev/virtual-node': 'milan' }));
        return;
      case 'release':
        await cordon(milan, true);
        await cordon(rome, true);
        await rome.api.apply(deployment('late', 1, {}));
        await until(
          'the pod is bound to the virtual node',
          async () => {
            const [pod] = await this.#podsOf('late');
            return pod?.spec?.nodeName === 'milan' ? true : JSON.stringify(pod?.spec?.nodeName);
          },
          DONE_MS,
        );
        await cordon(rome, false);
        return;
      case 'drain':
      case 'unpeer':
        await this.#want({ outgoing: 'Disabled' });
        return;
      case 'tether':
        // A wish not to peer stands against it.
        await this.#want({ outgoing: 'Auto' });
        await rome.patch(CLUSTER_MODE, { spec: { tether: { cluster: 'milan', keepForSeconds: 0 } } });
        return;
      case 'untether':
        await rome.patch(CLUSTER_MODE, { spec: { tether: null } });
        return;
    }
  }

  /** Resolves when it has come to what was asked for. */
  async done(operation: Operation): Promise<void> {
    await until(
      `${operation} is done`,
      async () => {
        const wrong = await this.#wrong(operation);
        return wrong.length === 0 ? true : wrong.join('; ');
      },
      DONE_MS,
    );
  }

  /** After an operation that was judged: removes what nobody needs any more, and waits for what has to be gone. */
  async tidy(operation: Operation): Promise<void> {
    if (operation === 'release') {
      await cordon(this.milan, false);
      await this.rome.remove(`${DEPLOYMENTS}/late`);
      await until('the pod is gone', async () =>
        (await this.#podsOf('late')).length === 0 ? true : 'it is there',
      );
    }
    if (operation === 'drain') {
      await this.rome.remove(`${DEPLOYMENTS}/web`);
      await this.rome.remove(OFFLOADING);
      await this.#want({ namespaces: [] });
    }
    if (!['drain', 'unpeer', 'untether'].includes(operation)) return;
    if (operation === 'untether') await this.#want({ outgoing: 'Disabled' });
    await until(
      `after ${operation} all is as it was`,
      async () => {
        const more = await Promise.all(
          this.cities.map(async (city) => difference(this.#bare.get(city.name) ?? [], await objects(city))),
        );
        return more.flat().length === 0 ? true : more.flat().join(', ');
      },
      DONE_MS,
    );
  }

  async #want(spec: object): Promise<void> {
    await this.rome.patch(`/apis/${VERSION}/foreignclusters/milan`, { spec });
  }

  async #podsOf(app: string): Promise<PodObject[]> {
    return this.rome.list<PodObject>(`${SHOP}/pods?labelSelector=app%3D${app}`);
  }

  async #wrong(operation: Operation): Promise<string[]> {
    switch (operation) {
      case 'peer':
      case 'peer-again':
        return [...(await this.#phases('Established')), ...(await this.#nodeReady(this.rome, 'milan'))];
      case 'offload':
        return this.#running('web', 2, (node) => node === 'milan');
      case 'release':
        return this.#running('late', 1, (node) => node !== 'milan');
      case 'drain':
      case 'unpeer':
        return this.#phases('None');
      case 'tether':
        return [
          ...(await this.#mode('Tethered')),
          ...(await this.#phases('Established')),
          ...(await this.#nodeReady(this.rome, 'milan')),
          ...(await this.#nodeReady(this.milan, 'rome')),
        ];
      default:
        return [...(await this.#mode('Autonomous')), ...(await this.#phases('None'))];
    }
  }

  async #phases(wanted: string): Promise<string[]> {
    const here = (await this.rome.foreign(this.milan.id))?.status?.outgoing?.phase ?? 'None';
    const there = (await this.milan.foreign(this.rome.id))?.status?.incoming?.phase ?? 'None';
    return here === wanted && there === wanted
      ? []
      : [`rome says ${here}, milan says ${there}, not ${wanted}`];
  }

  async #nodeReady(city: City, name: string): Promise<string[]> {
    const node = await city.api.get<Conditioned>(`/apis/${VERSION}/virtualnodes/${name}`);
    const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
    return ready?.status === 'True' ? [] : [`the node ${name} of ${city.name} is ${JSON.stringify(ready)}`];
  }

  async #mode(wanted: string): Promise<string[]> {
    const mode = await this.rome.api.get<Conditioned>(CLUSTER_MODE);
    return mode?.status?.phase === wanted ? [] : [`the mode is ${JSON.stringify(mode?.status)}`];
  }

  async #running(app: string, count: number, isPlace: (node: string) => boolean): Promise<string[]> {
    const all = await this.#podsOf(app);
    const right = all.filter(
      ({ metadata, spec, status }) =>
        metadata.deletionTimestamp === undefined &&
        status?.phase === 'Running' &&
        isPlace(spec?.nodeName ?? ''),
    );
    if (right.length === count && all.length === count) return [];
    const seen = all.map(({ spec, status }) => `${spec?.nodeName} ${status?.phase}`);
    return [`pods of ${app}: ${seen.join(', ')}`];
  }

  /** Nothing new comes any more. */
  async #settled(): Promise<void> {
    let before: readonly string[] = [];
    await until('nothing new comes', async () => {
      const now = (await Promise.all(this.cities.map(objects))).flat();
      const changed = difference(before, now);
      before = now;
      return changed.length === 0 ? true : changed.join(', ');
    });
  }
}

/** What people made is no part of a peering, nor is what a cluster knows of another one. */
const objects = async ({ api }: City): Promise<string[]> =>
  (await inventory(api)).filter((line) => !/^(foreignclusters|replicasets|pods|deployments) /.test(line));

const object = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: VERSION,
  kind,
  metadata: { name },
  spec,
});

const offloading = (): KubeObject => ({
  apiVersion: VERSION,
  kind: 'NamespaceOffloading',
  metadata: { namespace: 'shop', name: 'offloading' },
  spec: { podStrategy: 'LocalAndRemote', releaseAfterSeconds: 3 },
});

const deployment = (name: string, replicas: number, nodeSelector: Record<string, string>): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace: 'shop', name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        nodeSelector,
        // The webhook adds it, but leaves pods as they are while its program does not run.
        tolerations: [{ key: 'tributary.dev/virtual-node', operator: 'Exists' }],
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: `${name}:1` }],
      },
    },
  },
});

/** All nodes that are pretended, or none. */
async function cordon(city: City, unschedulable: boolean): Promise<void> {
  for (const { metadata } of await city.list<KubeObject>('/api/v1/nodes')) {
    const isVirtual = metadata.labels?.['tributary.dev/node-type'] !== undefined;
    if (!isVirtual) await city.patch(`/api/v1/nodes/${metadata.name}`, { spec: { unschedulable } });
  }
}
