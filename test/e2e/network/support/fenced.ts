/** Four pods under NetworkPolicies, and the connections between them: in one cluster, or each in another one. */
import type { Daemon } from '../../../../lab/daemon.ts';
import { policyEngine } from '../../../../lab/network-policy/engine.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { aPod } from '../../../support/e2e/pods.ts';
import { until } from '../../../support/e2e/until.ts';
import { readyPod, serve } from './app.ts';
import type { City, OneNetwork } from './network.ts';
import { Place } from './pods.ts';

export const FENCED = 'fenced';
const MONITOR = 'monitor';

export const BODIES = ['front', 'api', 'db', 'probe'] as const;
export type BodyName = (typeof BODIES)[number];
/** `probe` is in a namespace of its own, which stays at home. */
const namespaceOf = (name: BodyName): string => (name === 'probe' ? MONITOR : FENCED);

/** All twelve, as `from to`. */
export const CONNECTIONS: readonly string[] = BODIES.flatMap((from) =>
  BODIES.filter((to) => to !== from).map((to) => `${from} ${to}`),
);
/** What the policies open. */
export const OPEN: readonly string[] = ['front api', 'api db', 'probe front'];

const app = (name: string): object => ({ matchLabels: { app: name } });
const policy = (name: string, spec: object): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name },
  spec,
});
/** One port by its name, the other by its number. */
const passage = (from: string, to: string, port: string | number): object[] => [
  policy(`to-${to}`, {
    podSelector: app(to),
    ingress: [{ from: [{ podSelector: app(from) }], ports: [{ port }] }],
  }),
  policy(`from-${from}`, {
    podSelector: app(from),
    policyTypes: ['Egress'],
    egress: [{ to: [{ podSelector: app(to) }], ports: [{ port }] }],
  }),
];

/** Default-deny in both directions, and three exceptions. */
const POLICIES: readonly object[] = [
  policy('default-deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
  ...passage('front', 'api', 'http'),
  ...passage('api', 'db', 8080),
  policy('monitoring', {
    podSelector: app('front'),
    ingress: [{ from: [{ namespaceSelector: { matchLabels: { role: MONITOR } } }] }],
  }),
];

const PORT = 8080;

export class Fenced {
  readonly #network: OneNetwork;
  /** By node. */
  readonly #enforcers: ReadonlyMap<string, Daemon>;
  readonly #places = new Map<BodyName, Place>();
  /** Where each runs, and its address there. */
  readonly #cities = new Map<BodyName, City>();

  private constructor(network: OneNetwork, enforcers: ReadonlyMap<string, Daemon>) {
    this.#network = network;
    this.#enforcers = enforcers;
  }

  /** From now on until `remove` NetworkPolicies are enforced on all nodes. */
  static async create(network: OneNetwork): Promise<Fenced> {
    const namespace = (name: string, labels: object = {}): object => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    });
    const apply = async (items: readonly object[], where = ''): Promise<void> => {
      const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
      await network.ask(`kubectl ${where} apply -f -`, { stdin });
    };
    await apply([namespace(FENCED), namespace(MONITOR, { role: MONITOR })]);
    await apply(POLICIES, `-n ${FENCED}`);
    const enforcers = network.lab.clusters.flatMap(({ server, pki, nodes }) =>
      nodes.map((node) => {
        const command = policyEngine({ server, pki, node: node.name });
        return [node.name, node.spawn('network-policies', command)] as const;
      }),
    );
    return new Fenced(network, new Map(enforcers));
  }

  /** Makes the pods, or makes them anew elsewhere; resolves when all are Ready. */
  async place(where: Readonly<Record<BodyName, City>>): Promise<void> {
    for (const name of BODIES) await this.#put(name, where[name]);
  }

  /** Makes that pod anew where it is. */
  async renew(name: BodyName): Promise<void> {
    const city = this.#city(name);
    this.#cities.delete(name);
    await this.#put(name, city);
  }

  async #put(name: BodyName, city: City): Promise<void> {
    if (this.#cities.get(name) === city) return;
    const namespace = namespaceOf(name);
    await this.#network.ask(`kubectl -n ${namespace} delete pod ${name} --ignore-not-found --wait`);
    const nodeSelector =
      city === 'rome' ? { 'kubernetes.io/hostname': 'rome-2' } : { 'tributary.dev/virtual-node': city };
    const pod = aPod(name, serve(PORT), {
      labels: { app: name },
      spec: { terminationGracePeriodSeconds: 1, nodeSelector },
      container: { ports: [{ name: 'http', containerPort: PORT }] },
    });
    await this.#network.ask(`kubectl -n ${namespace} apply -f -`, { stdin: JSON.stringify(pod) });
    await readyPod(this.#network, 'rome', { namespace, name });
    const real = city === 'rome' ? namespace : await this.tenant(city);
    this.#places.set(
      name,
      await Place.of(this.#network.lab, await readyPod(this.#network, city, { namespace: real, name })),
    );
    this.#cities.set(name, city);
  }

  /** The namespace over there. */
  async tenant(city: City): Promise<string> {
    const found = await this.#network
      .api(city)
      .list<Pod>(`/api/v1/namespaces?labelSelector=tributary.dev/peer`);
    const own = found.find(
      ({ metadata }) => metadata.annotations?.['tributary.dev/home-namespace'] === FENCED,
    );
    return own?.metadata.name ?? FENCED;
  }

  /** `from to` of those that get through, by the addresses that each sees. */
  async open(addressOf: (to: Place, city: City, from: City) => Promise<string>): Promise<string[]> {
    const answers = await Promise.all(
      CONNECTIONS.map(async (connection) => {
        const [from, to] = connection.split(' ') as [BodyName, BodyName];
        const target = await addressOf(this.#at(to), this.#city(to), this.#city(from));
        return (await this.#at(from).fetch(`${target}:${PORT}`)).startsWith(`${to} answers`)
          ? [connection]
          : [];
      }),
    );
    return answers.flat();
  }

  /** Waits until exactly those get through that the policies open. */
  async untilAsSaid(what: string, addressOf: Parameters<Fenced['open']>[0]): Promise<void> {
    let seen: string[] = [];
    await until(
      `of the twelve connections three get through, ${what}`,
      async () => {
        seen = await this.open(addressOf);
        return seen.join() === OPEN.join();
      },
      { seen: async () => Promise.resolve(seen) },
    );
  }

  #at(name: BodyName): Place {
    const place = this.#places.get(name);
    if (place === undefined) throw new Error(`pod ${name} has not been placed`);
    return place;
  }

  #city(name: BodyName): City {
    return this.#cities.get(name) ?? 'rome';
  }

  /** The program that enforces policies on the node of that pod is killed; what it has put in force stays. */
  async killEnforcer(name: BodyName): Promise<void> {
    const enforcer = this.#enforcers.get(this.#at(name).node.name);
    if (enforcer?.id === undefined) throw new Error(`nobody enforces policies for ${name}`);
    await enforcer.kill();
  }

  async remove(): Promise<void> {
    for (const daemon of this.#enforcers.values()) await daemon.terminate();
    for (const node of this.#network.nodes)
      await node.exec(['nft', 'delete', 'table', 'ip', 'lab-network-policy']);
    await this.#network.ask(`kubectl delete namespace ${FENCED} ${MONITOR}`, { timeoutMs: 90_000 });
  }
}
