/**
 * The lab of the end-to-end tests of peering: rome borrows, and milan, on another segment, lends. Milan gives no
 * address of its own, so milan dials rome. All test files share one lab; Jest's globalTeardown removes it.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Ended, Program } from '../../../lab/demo/program.ts';
import { Workbench, type ShellOptions } from '../../../lab/demo/workbench.ts';
import { agentImage, agentImageName } from '../../../lab/images-agent.ts';
import { Lab } from '../../../lab/lab.ts';
import { segmentCidr } from '../../../lab/network.ts';
import { droppedByRouter, type RouterState, setRouter } from '../../../lab/router.ts';
import type { AcceptancePolicySpec } from '../../../src/api/acceptance-policy.ts';
import type { Advertisement } from '../../../src/api/advertisement.ts';
import type { ForeignCluster } from '../../../src/api/foreign-cluster.ts';
import type { PeeringRequest } from '../../../src/api/peering-request.ts';
import type { SharingPolicySpec } from '../../../src/api/sharing-policy.ts';
import type { Node, Pod } from '../../../src/api/wire.ts';
import { onlyLab, PEERS_LAB } from './lab.ts';
import { ClusterApi, clusterID, corePath, podPath, type Thing } from './api.ts';
import { forget, once } from './once.ts';
import { conditionOf } from './pods.ts';
import { until } from './until.ts';

export type City = 'rome' | 'milan';
const CITIES: readonly City[] = ['rome', 'milan'];

const NODE_PORT = 30_743;
const SYSTEM = 'tributary-system';
const GROUP = '/apis/tributary.dev/v1alpha1';

/** Leaves are renewed after about 13 s; the API server grants tokens of ten minutes at least. */
const SHORT_LIVES = '--leaf-seconds 20 --credential-seconds 600';

/** It has everything that guests can be given: volumes, a runtime class, metrics. */
const CLUSTERS = [
  { name: 'rome' },
  { name: 'milan', nodes: 2, segment: 1, storage: true, hardenedRuntime: true, networkPolicies: true },
] as const;

export class Peers {
  readonly lab: Lab;
  readonly rome: ClusterApi;
  readonly milan: ClusterApi;
  /** ClusterIDs. */
  readonly id: Readonly<Record<City, string>>;
  readonly #bench: Workbench;
  /** Made at home for peerings. */
  readonly #namespaces = new Set<string>();

  private constructor(lab: Lab, bench: Workbench, id: Record<City, string>) {
    this.lab = lab;
    this.rome = new ClusterApi(lab.cluster('rome'));
    this.milan = new ClusterApi(lab.cluster('milan'));
    this.id = id;
    this.#bench = bench;
  }

  /**
   * The lab with Tributary in both clusters, without any peering; the first caller starts it. `options` are added to
   * those of `tributary manifests cluster`.
   */
  static async open(options = ''): Promise<Peers> {
    const lab = await upPeersLab(options);
    const bench = await Workbench.create(lab);
    const [rome = '', milan = ''] = await Promise.all(
      CITIES.map(async (city) => clusterID(new ClusterApi(lab.cluster(city)))),
    );
    const peers = new Peers(lab, bench, { rome, milan });
    await peers.setNetwork('open');
    await peers.unpeer();
    return peers;
  }

  /** Leaves the lab to the next file. */
  async close(): Promise<void> {
    await this.setNetwork('open');
    await this.unpeer();
    for (const name of this.#namespaces) await this.#removeNamespace(name);
    for (const cluster of this.lab.clusters) cluster.api.close();
  }

  /** Replaces the running program by that of another image, as a person would do it. */
  async upgrade(city: City, image: string): Promise<void> {
    forget(this.lab, installing(city));
    await install(this.#bench, city, { image });
    await rolledOut(this.#bench, city);
  }

  /** A shell command, with contexts rome (the default) and milan; whatever its exit code. */
  async run(command: string, options: ShellOptions = {}): Promise<Ended> {
    return this.#bench.run(command, options);
  }

  /** Its standard output; throws unless it ends with 0. */
  async ask(command: string, options: ShellOptions = {}): Promise<string> {
    return ask(this.#bench, command, options);
  }

  start(command: string, options: ShellOptions = {}): Program {
    return this.#bench.start(command, options);
  }

  /** Path of a file in the folder that commands run in. */
  file(name: string): string {
    return join(this.#bench.directory, name);
  }

  api(city: City): ClusterApi {
    return city === 'rome' ? this.rome : this.milan;
  }

  /** Sets what the router between the segments lets through, also for established connections. */
  async setNetwork(network: RouterState): Promise<void> {
    const outside = this.lab.cluster('rome').node().address;
    const inside = segmentCidr({ ...this.lab.spec.underlay, segment: 1 });
    await setRouter(this.lab, { inside, outside }, network);
  }

  /** Packets that the router has dropped since the network was set. */
  async dropped(): Promise<number> {
    return droppedByRouter(this.lab);
  }

  /** A new home namespace, policies that name each other's ID, and on milan where rome is; waits until the Nodes are Ready. */
  async peer(
    namespace: string,
    given: { sharing?: Partial<SharingPolicySpec>; acceptance?: Partial<AcceptancePolicySpec> } = {},
  ): Promise<void> {
    const { rome, milan, id } = this;
    await this.#removeNamespace(namespace);
    this.#namespaces.add(namespace);
    await rome.create('/api/v1/namespaces', { metadata: { name: namespace } });
    await milan.create(`${GROUP}/sharingpolicies`, {
      ...object('SharingPolicy', 'test'),
      spec: { peers: { clusterIDs: [id.rome] }, approval: 'Automatic', sharePercent: 50, ...given.sharing },
    });
    const peers = { clusterIDs: [id.milan] };
    await rome.create(`${GROUP}/acceptancepolicies`, {
      ...object('AcceptancePolicy', 'test'),
      spec: { peers, approval: 'Automatic', namespaces: [namespace], ...given.acceptance },
    });
    const endpoint = `${this.lab.cluster('rome').node().address}:${NODE_PORT}`;
    await milan.create(`${GROUP}/foreignclusters`, {
      ...object('ForeignCluster', 'rome'),
      spec: { clusterID: id.rome, endpoint, outgoing: 'Disabled' },
    });
    await this.untilNodes('are Ready', (nodes) => nodes.length > 0 && nodes.every(isNodeReady), 240);
  }

  /** Removes what `peer` has made, and waits until nothing of it is left on either side. */
  async unpeer(): Promise<void> {
    for (const city of CITIES) {
      for (const kind of ['acceptancepolicies', 'sharingpolicies', 'foreignclusters']) {
        for (const { metadata } of await this.api(city).list(`${GROUP}/${kind}`)) {
          await this.api(city).remove(`${GROUP}/${kind}/${metadata.name}`);
        }
      }
    }
    // Who was denied stays denied until a person takes that back.
    for (const city of CITIES) {
      for (const { metadata, spec } of await this.api(city).list<PeeringRequest>(`${GROUP}/peeringrequests`))
        if (spec.approval === 'Denied')
          await this.api(city).remove(`${GROUP}/peeringrequests/${metadata.name}`);
    }
    for (const [city, peer] of [
      ['rome', this.id.milan],
      ['milan', this.id.rome],
    ] as const) {
      await until(
        `nothing of the peering is left in ${city}`,
        async () => (await this.#left(city, peer)).length === 0,
        {
          seconds: 90,
          seen: async () => this.#left(city, peer),
        },
      );
    }
  }

  /** Nodes that stand for milan. */
  async nodes(): Promise<Node[]> {
    return this.rome.list<Node>(`/api/v1/nodes?labelSelector=tributary.dev/provider%3D${this.id.milan}`);
  }

  async untilNodes(what: string, isSo: (nodes: Node[]) => boolean, seconds = 60): Promise<Node[]> {
    return until(
      `virtual nodes ${what}`,
      async () => {
        const nodes = await this.nodes();
        return isSo(nodes) && nodes;
      },
      {
        seconds,
        seen: async () => [
          (await this.nodes()).map(({ metadata, spec, status }) => [
            metadata.name,
            spec?.taints,
            status?.allocatable,
            status?.conditions?.find(({ type }) => type === 'Ready'),
          ]),
          await this.cluster('rome'),
          (await this.advertisement())?.status,
        ],
      },
    );
  }

  /** What a city knows of the other one. */
  async cluster(city: City): Promise<ForeignCluster | undefined> {
    const other = this.id[city === 'rome' ? 'milan' : 'rome'];
    const found = await this.api(city).list<ForeignCluster>(`${GROUP}/foreignclusters`);
    return found.find(({ spec, status }) => spec?.clusterID === other || status?.clusterID === other);
  }

  async advertisement(): Promise<Advertisement | undefined> {
    return this.rome.get<Advertisement>(`${GROUP}/advertisements/${this.id.milan}`);
  }

  /** The tenant namespace in which home pods of that namespace run. */
  async tenant(namespace: string): Promise<string> {
    const request = await this.milan.call<PeeringRequest>('GET', `${GROUP}/peeringrequests/${this.id.rome}`);
    const { tenantNamespaces = [] } = request.status ?? {};
    const found = tenantNamespaces.find(({ homeNamespace }) => homeNamespace === namespace);
    if (found === undefined) throw new Error(`no tenant namespace for ${namespace}`);
    return found.tenantNamespace;
  }

  /** Creates a home pod; waits until it is as wanted. */
  async runPod(namespace: string, pod: object, isSo: (pod: Pod) => boolean, seconds = 60): Promise<Pod> {
    const { metadata } = await this.rome.create(podPath(namespace), pod);
    return this.untilPod(namespace, metadata.name, isSo, seconds);
  }

  async untilPod(namespace: string, name: string, isSo: (pod: Pod) => boolean, seconds = 60): Promise<Pod> {
    return until(
      `home pod ${namespace}/${name}`,
      async () => {
        const pod = await this.rome.pod(namespace, name);
        return pod !== undefined && isSo(pod) && pod;
      },
      { seconds, seen: async () => (await this.rome.pod(namespace, name))?.status },
    );
  }

  /** Kills the pod of the role `cluster`, as a node that dies would. */
  async killCluster(city: City): Promise<void> {
    await this.#kill(city, 'app.kubernetes.io/instance=tributary-cluster');
  }

  /** The same with all of Tributary's pods but those of its network. */
  async killAgents(city: City): Promise<void> {
    await this.#kill(city);
  }

  async #kill(city: City, selector?: string): Promise<void> {
    for (const { metadata } of await this.api(city).pods(SYSTEM, selector)) {
      await this.api(city).remove(podPath(SYSTEM, metadata.name), { gracePeriodSeconds: 0 });
    }
  }

  async clusterLog(city: City): Promise<string> {
    return this.ask(`kubectl --context ${city} -n ${SYSTEM} logs deployment/tributary-cluster`);
  }

  /** Writes the kubeconfig that milan has given to rome into a file; its path. */
  async kubeconfig(name: string): Promise<string> {
    const secret = await this.secret();
    const file = this.file(name);
    writeFileSync(file, Buffer.from(secret?.data?.['kubeconfig'] ?? '', 'base64'), { mode: 0o600 });
    return file;
  }

  /** Runs kubectl with such a file where agents of rome run: only there its server can certainly be reached. */
  async asAgent(kubeconfig: string, ...args: string[]): Promise<string> {
    const cache = `KUBECACHEDIR=${this.file('kube-cache')}`;
    const command = ['env', cache, this.#bench.kubectl, `--kubeconfig=${kubeconfig}`, ...args] as const;
    return this.lab
      .cluster('rome')
      .node()
      .exec([...command], { timeoutMs: 60_000 });
  }

  async secret(): Promise<Thing | undefined> {
    return this.rome.get(corePath(SYSTEM, 'secrets', `tributary-kubeconfig-${this.id.milan}`));
  }

  async #removeNamespace(name: string): Promise<void> {
    const path = `/api/v1/namespaces/${name}`;
    await this.rome.remove(path);
    await until(`no namespace ${name}`, async () => (await this.rome.get(path)) === undefined, {
      seconds: 90,
    });
  }

  async #left(city: City, peer: string): Promise<string[]> {
    const api = this.api(city);
    const label = `labelSelector=tributary.dev/${city === 'rome' ? 'provider' : 'peer'}%3D${peer}`;
    const paths = [
      `/api/v1/namespaces?${label}`,
      `/api/v1/nodes?${label}`,
      `/api/v1/secrets?${label}`,
      `/api/v1/serviceaccounts?${label}`,
      `/apis/apps/v1/deployments?${label}`,
      `${GROUP}/virtualnodes?${label}`,
      `${GROUP}/advertisements`,
      `${GROUP}/peeringrequests`,
    ];
    const found = await Promise.all(paths.map(async (path) => api.list(path)));
    return found.flatMap((items, index) => items.map(({ metadata }) => `${paths[index]} ${metadata.name}`));
  }
}

/** The lab with Tributary in both clusters; a lab that was kept is not changed. */
async function upPeersLab(options: string): Promise<Lab> {
  const name = PEERS_LAB;
  if (process.env['TRIBUTARY_E2E_LAB'] === 'keep') {
    const kept = await Lab.open(name).catch(() => undefined);
    if (kept !== undefined) return kept;
  }
  await onlyLab(name);
  const image = agentImage(console.error);
  image.catch(() => undefined);
  const lab = await Lab.up({ name, clusters: CLUSTERS });
  const [bench, archive] = await Promise.all([Workbench.create(lab), image]);
  await once(lab, 'image', archive, async () =>
    Promise.all(lab.clusters.map(async (cluster) => cluster.loadImage(archive))),
  );
  await Promise.all(
    CITIES.map(async (city) => {
      await once(lab, installing(city), `${archive} ${options}`, async () =>
        install(bench, city, { options }),
      );
      await rolledOut(bench, city);
    }),
  );
  return lab;
}

const installing = (city: City): string => `install-${city}`;

async function install(
  bench: Workbench,
  city: City,
  { image = agentImageName, options: more = '' }: { image?: string; options?: string },
): Promise<void> {
  const { address } = bench.lab.cluster(city).node();
  const options = [
    `--image ${image} --cluster-name ${city} --home-api-server ${address}:6443 ${SHORT_LIVES}`,
    `--service NodePort --node-port ${NODE_PORT}`,
    ...(city === 'rome' ? [`--advertise ${address}:${NODE_PORT}`] : []),
    more,
  ];
  for (const what of ['crds', `cluster ${options.join(' ')}`]) {
    await ask(bench, `tributary manifests ${what} | kubectl --context ${city} apply --server-side -f -`, {
      timeoutMs: 120_000,
    });
  }
}

async function rolledOut(bench: Workbench, city: City): Promise<void> {
  const rollout = `kubectl --context ${city} -n ${SYSTEM} rollout status deployment/tributary-cluster`;
  await ask(bench, `${rollout} --timeout=120s`, { timeoutMs: 130_000 });
}

async function ask(bench: Workbench, command: string, options: ShellOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await bench.run(command, options);
  if (code !== 0) throw new Error(`${command}: exit code ${code}: ${stderr}${stdout}`);
  return stdout;
}

const object = (kind: string, name: string): object => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind,
  metadata: { name },
});

export const isNodeReady = (node: Node | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

/** Which containers run in pods, and that none has been started twice. */
export const containersOf = (pods: readonly Pod[]): string[] =>
  pods
    .flatMap(({ metadata, status }) =>
      (status?.containerStatuses ?? []).map(
        ({ containerID = '', restartCount }) => `${metadata.name} ${containerID} ${restartCount}`,
      ),
    )
    .toSorted();

export const isPending = (pod: Pod): boolean =>
  pod.status?.phase === 'Pending' && conditionOf(pod, 'PodScheduled')?.status === 'False';
