/** One application over three clusters, and pods that milan and turin run for themselves. */
import type { Pod } from '../../../../src/api/wire.ts';
import { PROVIDERS, SHOP, type City, type OneNetwork, type Provider } from './network.ts';
import { Place } from './pods.ts';
import { aPod, isReady, podSpec } from '../../../support/e2e/pods.ts';
import { until } from '../../../support/e2e/until.ts';

/** Web servers in the clusters of their names; `only` and `db-0` in rome and milan. */
export const PODS = ['web-rome', 'web-milan', 'web-turin', 'only', 'db-0'] as const;
export type PodName = (typeof PODS)[number];
/** Where they run. */
const PROVIDER_OF: Partial<Record<PodName, Provider>> = {
  'web-milan': 'milan',
  'web-turin': 'turin',
  'db-0': 'milan',
};

/** Containers that are addressed by the name of their port have different port numbers. */
export const PORT: Readonly<Record<PodName | 'own', number>> = {
  'web-rome': 8080,
  'web-milan': 8080,
  'web-turin': 8081,
  only: 8080,
  'db-0': 8080,
  own: 8080,
};

/** Answers with its name and the source address of the request. */
export const serve = (port: number): string =>
  [
    'mkdir -p /tmp/www/cgi-bin',
    String.raw`printf '#!/bin/sh\necho "Content-type: text/plain"\necho\necho "$HOSTNAME answers $REMOTE_ADDR"\n' >/tmp/www/cgi-bin/who`,
    'chmod +x /tmp/www/cgi-bin/who',
    `exec httpd -f -p ${port} -h /tmp/www`,
  ].join('\n');

type Selector = Record<string, string>;
const onNode = (name: string): Selector => ({ 'kubernetes.io/hostname': name });
const onProvider = (name: Provider): Selector => ({ 'tributary.dev/virtual-node': name });

/** Script and extras of a pod; without a selector it runs in the cluster that it is created in. */
function server(name: PodName | 'own', nodeSelector: Selector = {}): Parameters<typeof podSpec> {
  const port = PORT[name];
  // Without probes, so that only the intended senders send it packets.
  const container = { ports: [{ name: 'http', containerPort: port }] };
  const spec = { terminationGracePeriodSeconds: 1, nodeSelector };
  return [serve(port), { container, spec }];
}

const labelled = (name: PodName | 'own', app: string, nodeSelector: Selector = {}): object => {
  const [script, extras] = server(name, nodeSelector);
  return aPod(name, script, { ...extras, labels: { app } });
};

function objects(): object[] {
  const service = (name: string, spec: object): object => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 'http' }], ...spec },
  });
  const db = { app: 'db' };
  return [
    labelled('web-rome', 'web', onNode('rome-2')),
    labelled('web-milan', 'web', onProvider('milan')),
    labelled('web-turin', 'web', onProvider('turin')),
    labelled('only', 'only', onNode('rome-1')),
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db' },
      spec: {
        serviceName: 'db',
        selector: { matchLabels: db },
        template: { metadata: { labels: db }, spec: podSpec(...server('db-0', onProvider('milan'))) },
      },
    },
    service('web', {}),
    service('sticky', { selector: { app: 'web' }, sessionAffinity: 'ClientIP' }),
    // Not the pod's own name, which is in its /etc/hosts.
    service('stock', { selector: { app: 'only' } }),
    service('db', { clusterIP: 'None' }),
  ];
}

export class App {
  readonly #network: OneNetwork;
  readonly #places: ReadonlyMap<string, Place>;
  readonly #pods: ReadonlyMap<string, Pod>;

  private constructor(network: OneNetwork, found: { places: Map<string, Place>; pods: Map<string, Pod> }) {
    this.#network = network;
    this.#places = found.places;
    this.#pods = found.pods;
  }

  /** Resolves when all pods are Ready, at home, too. */
  static async start(network: OneNetwork): Promise<App> {
    const apply = async (context: City, namespace: string, items: object[]): Promise<void> => {
      const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
      await network.ask(`kubectl --context ${context} -n ${namespace} apply -f -`, { stdin });
    };
    await apply('rome', SHOP, objects());
    for (const provider of PROVIDERS) await apply(provider, 'default', [labelled('own', 'own')]);
    const places = new Map<string, Place>();
    const pods = new Map<string, Pod>();
    for (const name of PODS) {
      pods.set(name, await readyPod(network, 'rome', { namespace: SHOP, name }));
      const where = PROVIDER_OF[name] ?? 'rome';
      const real = await readyPod(network, where, { namespace: SHOP, name });
      places.set(name, await Place.of(network.lab, real));
    }
    for (const provider of PROVIDERS) {
      const own = await readyPod(network, provider, { namespace: 'default', name: 'own' });
      places.set(`own-${provider}`, await Place.of(network.lab, own));
    }
    return new App(network, { places, pods });
  }

  /** Where it really runs. */
  place(name: PodName | `own-${Provider}`): Place {
    const place = this.#places.get(name);
    if (place === undefined) throw new Error(`no pod ${name}`);
    return place;
  }

  /** Its address as rome has it. */
  home(name: PodName): string {
    return this.#pods.get(name)?.status?.podIP ?? '';
  }

  /** Waits until it answers, and returns the answer. */
  async untilAnswers(from: Place, host: string, expected: RegExp): Promise<string> {
    let last = '';
    return until(
      `${from.name} on ${from.node.name} asks http://${host} and hears ${expected}`,
      async () => {
        last = await from.fetch(host);
        return expected.test(last) && last;
      },
      { seen: async () => Promise.resolve(`heard ${JSON.stringify(last)}`) },
    );
  }

  /** Names of the pods that answer a number of requests. */
  async answering(from: Place, host: string, times: number): Promise<Set<string>> {
    const { stdout } = await from.run(
      `for i in $(seq ${times}); do timeout 3 wget -qO- http://${host}/cgi-bin/who; done`,
      times * 3_500,
    );
    return new Set([...stdout.matchAll(/^(\S+) answers/gm)].map(([, name]) => name ?? ''));
  }

  /** Waits until exactly those answer. */
  async untilAnswering(from: Place, host: string, names: readonly PodName[]): Promise<void> {
    let seen = new Set<string>();
    await until(
      `${from.name} on ${from.node.name} hears ${names.join(', ')} behind ${host}`,
      async () => {
        seen = await this.answering(from, host, 24);
        return seen.symmetricDifference(new Set(names)).size === 0;
      },
      { seen: async () => Promise.resolve([...seen]) },
    );
  }

  async remove(): Promise<void> {
    const network = this.#network;
    await network.ask(`kubectl delete namespace ${SHOP}`, { timeoutMs: 90_000 });
    for (const provider of PROVIDERS) await network.ask(`kubectl --context ${provider} delete pod own`);
  }
}

/** Waits until the pod is Ready as that cluster has it. */
export async function readyPod(
  network: OneNetwork,
  city: City,
  { namespace, name }: { namespace: string; name: string },
): Promise<Pod> {
  const read = async (): Promise<Pod | undefined> => network.api(city).pod(namespace, name);
  return until(
    `pod ${namespace}/${name} is Ready in ${city}`,
    async () => {
      const pod = await read();
      return pod !== undefined && isReady(pod) && pod;
    },
    { seconds: 90, seen: async () => (await read())?.status },
  );
}
