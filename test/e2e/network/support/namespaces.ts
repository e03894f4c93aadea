/** Objects that tests put into stretched namespaces, and questions about them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { NamespaceOffloading, OffloadedCluster } from '../../../../src/api/namespace-offloading.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { podPath } from '../../../support/e2e/api.ts';
import { OneNetwork, type City } from './network.ts';
import { BUSYBOX, aDeploymentOf } from '../../../support/e2e/pods.ts';
import { until } from '../../../support/e2e/until.ts';

const GROUP = '/apis/tributary.dev/v1alpha1';
export const DONGLE = 'example.com/dongle';
/** Three clusters and the program itself share two cores. */
const PATIENCE = 90;

/** The pod prefers to run in a foreign cluster. */
export const ABROAD: object = {
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        preference: {
          matchExpressions: [{ key: 'tributary.dev/node-type', operator: 'In', values: ['virtual-node'] }],
        },
      },
    ],
  },
};

/** One pod on each node, as plain Kubernetes says it. */
export const spread = (labels: Record<string, string>): object[] => [
  {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'DoNotSchedule',
    nodeTaintsPolicy: 'Honor',
    labelSelector: { matchLabels: labels },
  },
];

export const container = (script: string, more: object = {}): object => ({
  name: 'main',
  image: BUSYBOX,
  command: ['sh', '-c', script],
  resources: { requests: { cpu: '5m', memory: '8Mi' }, limits: { memory: '64Mi' } },
  ...more,
});

export const labels = (app: string): Record<string, string> => ({ app });

/** Its pods end at once. */
export const deployment = (name: string, replicas: number, pod: object): object =>
  aDeploymentOf(name, replicas, { terminationGracePeriodSeconds: 1, ...pod });

/** Answers with its host's name. */
export const SERVE =
  'mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www';

export class Stretched {
  readonly network: OneNetwork;

  private constructor(network: OneNetwork) {
    this.network = network;
  }

  static async open(): Promise<Stretched> {
    const sharing = {
      sharePercent: 100,
      namespaceNames: ['stretch', 'taken'],
      reflectableKinds: [{ group: 'times.example.com', resource: 'timetables' }],
      services: [{ namespace: 'default', selector: { matchLabels: { lent: 'yes' } } }],
    };
    const stretched = new Stretched(await OneNetwork.open({ namespaces: [], sharing }));
    await stretched.#oneNodeOfRome(true);
    return stretched;
  }

  /** Leaves the lab to the next file. */
  async close(): Promise<void> {
    await this.#oneNodeOfRome(false);
    await this.network.close();
  }

  /** Home has place for one pod. */
  async #oneNodeOfRome(isOne: boolean): Promise<void> {
    const taints = isOne ? [{ key: 'test.example.com/unused', effect: 'NoSchedule' }] : null;
    await this.network.api('rome').patch('/api/v1/nodes/rome-2', { spec: { taints } });
  }

  async ask(command: string, seconds: number = PATIENCE): Promise<string> {
    return this.network.ask(command, { timeoutMs: seconds * 1000 });
  }

  async apply(city: City, namespace: string, items: readonly object[]): Promise<void> {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    await this.network.ask(`kubectl --context ${city} -n ${namespace} apply -f -`, { stdin });
  }

  /** One of the demonstration's files. */
  async applyFile(city: City, namespace: string, file: string): Promise<void> {
    const stdin = readFileSync(join(import.meta.dirname, '../../../../lab/demo/namespaces', file));
    await this.network.ask(`kubectl --context ${city} -n ${namespace} apply -f -`, { stdin });
  }

  /** A namespace of rome with that offloading. */
  async stretch(namespace: string, spec: object = {}): Promise<void> {
    await this.ask(`kubectl create namespace ${namespace} --dry-run=client -o yaml | kubectl apply -f -`);
    await this.apply('rome', namespace, [
      {
        apiVersion: 'tributary.dev/v1alpha1',
        kind: 'NamespaceOffloading',
        metadata: { name: 'offloading' },
        spec,
      },
    ]);
  }

  async offloading(namespace: string): Promise<NamespaceOffloading | undefined> {
    return this.network
      .api('rome')
      .get<NamespaceOffloading>(`${GROUP}/namespaces/${namespace}/namespaceoffloadings/offloading`);
  }

  async cluster(namespace: string, city: City): Promise<OffloadedCluster | undefined> {
    const clusters = (await this.offloading(namespace))?.status?.clusters ?? [];
    return clusters.find(({ cluster }) => cluster === this.network.id[city]);
  }

  async untilReady(namespace: string): Promise<void> {
    await until(
      `namespace ${namespace} is in all clusters`,
      async () => {
        const conditions = (await this.offloading(namespace))?.status?.conditions ?? [];
        return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
      },
      { seconds: PATIENCE, seen: async () => (await this.offloading(namespace))?.status },
    );
  }

  async pods(namespace: string, selector = ''): Promise<Pod[]> {
    const query = selector === '' ? '' : `?labelSelector=${encodeURIComponent(selector)}`;
    return this.network.api('rome').list<Pod>(`/api/v1/namespaces/${namespace}/pods${query}`);
  }

  /** Names of the nodes that run its pods, sorted. */
  async places(namespace: string, selector: string): Promise<string[]> {
    const running = (await this.pods(namespace, selector)).filter(
      ({ metadata, status }) => status?.phase === 'Running' && metadata.deletionTimestamp === undefined,
    );
    return running.map(({ spec }) => spec?.nodeName ?? '').toSorted();
  }

  async untilPod(namespace: string, name: string, what: string, is: (pod: Pod) => boolean): Promise<Pod> {
    const look = async (): Promise<Pod | undefined> =>
      this.network.api('rome').get<Pod>(podPath(namespace, name));
    return until(
      `pod ${name} ${what}`,
      async () => {
        const pod = await look();
        return pod !== undefined && is(pod) && pod;
      },
      { seconds: PATIENCE, seen: async () => (await look())?.status },
    );
  }

  /** Until all these pods, and no others, have answered that pod under the name of a Service, or at an address and port. */
  async untilAllAnswer(
    namespace: string,
    from: string,
    host: string,
    names: readonly string[],
  ): Promise<void> {
    const loop = `for i in $(seq 25); do timeout 3 wget -qO- http://${host}/; done | sort -u`;
    let heard: string[] = [];
    await until(
      `each of ${names.join()} has answered ${from}`,
      async () => {
        const said = await this.ask(`kubectl -n ${namespace} exec ${from} -- sh -c '${loop}'`);
        heard = said.trim().split('\n').toSorted();
        return heard.join() === names.toSorted().join();
      },
      { seconds: PATIENCE, seen: async () => Promise.resolve(heard) },
    );
  }

  async exists(city: City, path: string): Promise<boolean> {
    return (await this.network.api(city).get(path)) !== undefined;
  }
}
