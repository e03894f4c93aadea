/**
 * The lab of the end-to-end tests of the network and of stretched namespaces: three clusters that all use the same addresses for
 * pods, and two of them for Services. Rome borrows from milan, which is on its LAN, and from turin, which is not; those two know nothing of
 * each other. Rome and milan have two nodes. Jest's globalTeardown removes it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Workbench, type ShellOptions } from '../../../../lab/demo/workbench.ts';
import { agentImage, agentImageName } from '../../../../lab/images-agent.ts';
import { Lab } from '../../../../lab/lab.ts';
import type { Node } from '../../../../lab/node.ts';
import type { ForeignCluster } from '../../../../src/api/foreign-cluster.ts';
import {
  GATEWAY_CONFIG_MAP,
  NETWORK_CONFIG_MAP,
  readGatewayFacts,
  readOwnNetwork,
} from '../../../../src/api/own-network.ts';
import type { NetworkAccess, PrefixUse, Tunnel } from '../../../../src/api/tunnel.ts';
import type { Node as KubeNode } from '../../../../src/api/wire.ts';
import { NETWORK_LAB, onlyLab } from '../../../support/e2e/lab.ts';
import { ClusterApi, clusterID, corePath } from '../../../support/e2e/api.ts';
import { forget, once } from '../../../support/e2e/once.ts';
import { snapshot, type Snapshot } from './host.ts';
import { isNodeReady } from '../../../support/e2e/peers.ts';
import { until } from '../../../support/e2e/until.ts';

export type City = 'rome' | 'milan' | 'turin';
export const CITIES: readonly City[] = ['rome', 'milan', 'turin'];
export type Provider = Exclude<City, 'rome'>;
export const PROVIDERS: readonly Provider[] = ['milan', 'turin'];

/** The offloaded namespace; over there it has the same name. */
export const SHOP = 'shop';
export const POD_CIDR = '10.244.0.0/16';
/** Of rome and turin. */
export const SERVICE_CIDR = '10.96.0.0/16';
const SAME = { podCidr: POD_CIDR, serviceCidr: SERVICE_CIDR, metricsServer: false } as const;
const NODE_PORT = 30_743;
/** UDP. */
export const TUNNEL_PORT = 51_820;
const SYSTEM = 'tributary-system';
const HOSTS = 'tributary-network';
const GROUP = '/apis/tributary.dev/v1alpha1';
const TABLE = 'inet network-test';

/** Some sixty objects, one after the other, on a machine that starts three clusters. */
const PATIENT = { timeoutMs: 120_000 } as const;

/** In the order in which they are applied. */
const ROLES = ['cluster', 'gateway', 'node'] as const;
type Role = (typeof ROLES)[number];

export interface OneNetworkOptions {
  /** Namespaces that rome's policy names; default SHOP. */
  namespaces?: readonly string[];
  /** Further fields of the providers' SharingPolicies. */
  sharing?: object;
}

export class OneNetwork {
  readonly lab: Lab;
  /** ClusterIDs. */
  readonly id: Readonly<Record<City, string>>;
  /** The network of every node before Tributary was started. */
  readonly before: Readonly<Record<string, Snapshot>>;
  readonly #bench: Workbench;
  readonly #apis: Readonly<Record<City, ClusterApi>>;

  private constructor(
    bench: Workbench,
    facts: { id: Record<City, string>; before: Record<string, Snapshot> },
  ) {
    this.#bench = bench;
    this.lab = bench.lab;
    this.id = facts.id;
    this.before = facts.before;
    const { lab } = this;
    this.#apis = {
      rome: new ClusterApi(lab.cluster('rome')),
      milan: new ClusterApi(lab.cluster('milan')),
      turin: new ClusterApi(lab.cluster('turin')),
    };
  }

  /** The lab with Tributary in all clusters, and rome's peerings with the two others. */
  static async open(options: OneNetworkOptions = {}): Promise<OneNetwork> {
    const { lab, archive } = await upNetworkLab();
    const bench = await Workbench.create(lab);
    const before = await firstSnapshot(lab);
    await Promise.all(CITIES.map(async (city) => install(bench, city, archive)));
    const [rome = '', milan = '', turin = ''] = await Promise.all(
      CITIES.map(async (city) => clusterID(new ClusterApi(lab.cluster(city)))),
    );
    const network = new OneNetwork(bench, { id: { rome, milan, turin }, before });
    await network.cut(undefined);
    await network.#peer(options);
    return network;
  }

  async close(): Promise<void> {
    await this.cut(undefined);
    for (const cluster of this.lab.clusters) cluster.api.close();
  }

  api(city: City): ClusterApi {
    return this.#apis[city];
  }

  get nodes(): Node[] {
    return this.lab.clusters.flatMap(({ nodes }) => nodes);
  }

  /** Standard output of a shell command, with contexts rome (the default), milan and turin. */
  async ask(command: string, options: ShellOptions = {}): Promise<string> {
    return ask(this.#bench, command, options);
  }

  /** Drops all packets of tunnels to and from that cluster, or lets all of them through again. */
  async cut(city: City | undefined): Promise<void> {
    const drop = (side: string, address: string): string =>
      `ip ${side} ${address} udp dport ${TUNNEL_PORT} counter drop`;
    const addresses = city === undefined ? [] : this.lab.cluster(city).nodes.map(({ address }) => address);
    const rules = addresses.flatMap((address) => [drop('saddr', address), drop('daddr', address)]);
    const stdin = `table ${TABLE}
delete table ${TABLE}
table ${TABLE} {
  chain forward { type filter hook forward priority filter; ${rules.join('; ')}
  }
}
`;
    await this.lab.onRouter(['nft', '-f', '-'], { stdin });
  }

  /** The node whose gateway is active. */
  async gateway(city: City): Promise<Node> {
    const lease = await this.api(city).call(
      'GET',
      `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/tributary-gateway`,
    );
    return this.lab.cluster(city).node(String(lease.spec?.['holderIdentity']));
  }

  /** The Tunnel of `city` to `peer`. */
  async tunnel(city: City, peer: City): Promise<Tunnel | undefined> {
    return this.api(city).get<Tunnel>(`${GROUP}/tunnels/${this.id[peer]}`);
  }

  /** The view that `city` has of a prefix of `peer`, if there is one with that use. */
  async view(city: City, peer: City, use: PrefixUse): Promise<string> {
    const tunnel = await this.tunnel(city, peer);
    const view = tunnel?.status?.views?.find((found) => found.use === use);
    if (view === undefined) throw new Error(`${city} has no view of ${use} of ${peer}`);
    return view.as;
  }

  async untilTunnel(city: City, peer: City, status: 'True' | 'False', seconds = 60): Promise<Tunnel> {
    return until(
      `the Tunnel of ${city} to ${peer} has Ready=${status}`,
      async () => {
        const tunnel = await this.tunnel(city, peer);
        return conditionOf(tunnel, 'Ready')?.status === status && tunnel;
      },
      { seconds, seen: async () => (await this.tunnel(city, peer))?.status },
    );
  }

  /** Waits until the program of its gateway is there again. */
  async untilReady(city: City): Promise<void> {
    const rollout = `kubectl --context ${city} -n ${HOSTS} rollout status deployment/tributary-gateway`;
    await this.ask(`${rollout} --timeout=60s`, { timeoutMs: 70_000 });
  }

  /** Of its nodes and its gateway, in its own external range. */
  async externals(city: City): Promise<string[]> {
    const stored = await this.api(city).get(corePath(SYSTEM, 'configmaps', NETWORK_CONFIG_MAP));
    const own = readOwnNetwork(stored?.data);
    if (own === undefined) throw new Error(`${city} has not published its network`);
    return [own.gatewayAddress, ...own.nodes.map(({ external }) => external)];
  }

  /** Names of the nodes that do not answer the gateway through VXLAN. */
  async silentNodes(city: City): Promise<string[] | undefined> {
    const stored = await this.api(city).get(corePath(SYSTEM, 'configmaps', GATEWAY_CONFIG_MAP));
    return readGatewayFacts(stored?.data)?.silentNodes;
  }

  /** The virtual node that stands for it. */
  async virtualNode(provider: Provider): Promise<KubeNode | undefined> {
    return this.api('rome').get<KubeNode>(`/api/v1/nodes/${provider}`);
  }

  /** Sets what `peer` reaches in `city`. */
  async setAccess(city: City, peer: City, access: NetworkAccess | null): Promise<void> {
    await this.setNetwork(city, peer, { access });
    await until(
      `the Tunnel of ${city} to ${peer} has access ${access ?? 'as by default'}`,
      async () => (await this.tunnel(city, peer))?.spec.access === (access ?? 'OffloadedPods'),
    );
  }

  /** Changes `spec.network` of the ForeignCluster that stands for `peer` in `city`. */
  async setNetwork(city: City, peer: City, network: object): Promise<void> {
    const api = this.api(city);
    const found = await api.list<ForeignCluster>(`${GROUP}/foreignclusters`);
    const cluster = found.find(
      ({ spec, status }) => spec?.clusterID === this.id[peer] || status?.clusterID === this.id[peer],
    );
    if (cluster === undefined) throw new Error(`${city} knows no ForeignCluster of ${peer}`);
    await api.patch(`${GROUP}/foreignclusters/${cluster.metadata.name}`, { spec: { network } });
  }

  async unpeer(provider: Provider): Promise<void> {
    await this.ask(`tributary unpeer ${provider}`, { timeoutMs: 90_000 });
  }

  /** Deletes what the manifests of a role contain. */
  async remove(city: City, what: 'crds' | Role): Promise<void> {
    forget(this.lab, installing(city));
    const options = what === 'crds' ? '' : ` --image ${agentImageName}`;
    await this.ask(
      `tributary manifests ${what}${options} | kubectl --context ${city} delete --ignore-not-found --wait -f -`,
      { timeoutMs: 120_000 },
    );
  }

  /** Applies the clean-up manifests, waits until hosts are clean, and deletes the manifests. */
  async cleanUp(city: City): Promise<void> {
    const kubectl = `kubectl --context ${city}`;
    const print = `tributary manifests clean-up --image ${agentImageName}`;
    await this.ask(`${print} | ${kubectl} apply --server-side -f -`, PATIENT);
    await this.ask(
      `${kubectl} -n ${HOSTS} rollout status daemonset/tributary-clean-up --timeout=90s && ` +
        `${print} | ${kubectl} delete --wait -f -`,
      { timeoutMs: 180_000 },
    );
  }

  async #peer({ namespaces = [SHOP], sharing }: OneNetworkOptions): Promise<void> {
    const { rome, milan, turin } = this.id;
    for (const provider of PROVIDERS) {
      await this.#apply(provider, [
        object('SharingPolicy', 'test', {
          peers: { clusterIDs: [rome] },
          approval: 'Automatic',
          sharePercent: 50,
          namespaceNaming: 'SameIfFree',
          namespaceNames: namespaces,
          ...sharing,
        }),
      ]);
    }
    const endpoint = `${this.lab.cluster('turin').node().address}:${NODE_PORT}`;
    await this.#apply('rome', [
      ...namespaces.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
      object('AcceptancePolicy', 'test', {
        peers: { clusterIDs: [milan, turin], discovery: ['LAN', 'Manual'] },
        approval: 'Automatic',
        namespaces,
      }),
      // Milan is found on the LAN.
      object('ForeignCluster', 'turin', { clusterID: turin, endpoint }),
    ]);
    for (const provider of PROVIDERS) {
      await until(
        `the virtual node ${provider} is Ready`,
        async () => isNodeReady(await this.virtualNode(provider)),
        {
          seconds: 90,
          seen: async () => this.api('rome').list<ForeignCluster>(`${GROUP}/foreignclusters`),
        },
      );
      await this.untilTunnel('rome', provider, 'True', 60);
      await this.untilTunnel(provider, 'rome', 'True', 60);
    }
  }

  async #apply(city: City, items: object[]): Promise<void> {
    const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    await this.ask(`kubectl --context ${city} apply -f -`, { stdin });
  }
}

/** With the image that is installed. A lab that was kept is not given it. */
async function upNetworkLab(): Promise<{ lab: Lab; archive: string }> {
  const name = NETWORK_LAB;
  if (process.env['TRIBUTARY_E2E_LAB'] === 'keep') {
    const kept = await Lab.open(name).catch(() => undefined);
    if (kept !== undefined) return { lab: kept, archive: await agentImage(console.error) };
  }
  await onlyLab(name);
  const image = agentImage(console.error);
  image.catch(() => undefined);
  const lab = await Lab.up({
    name,
    clusters: [
      { name: 'rome', nodes: 2, ...SAME },
      { name: 'milan', nodes: 2, ...SAME, serviceCidr: '10.97.0.0/16' },
      { name: 'turin', segment: 1, ...SAME },
    ],
  });
  const archive = await image;
  await once(lab, 'image', archive, async () => {
    for (const cluster of lab.clusters) await cluster.loadImage(archive);
  });
  return { lab, archive };
}

/** Taken once in the life of a lab. */
async function firstSnapshot(lab: Lab): Promise<Record<string, Snapshot>> {
  const file = join(lab.spec.dataDirectory, 'before.json');
  if (!existsSync(file)) {
    const nodes = lab.clusters.flatMap((cluster) => cluster.nodes);
    const taken = await Promise.all(nodes.map(async (node) => [node.name, await snapshot(node)] as const));
    writeFileSync(file, JSON.stringify(Object.fromEntries(taken)));
  }
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Snapshot>;
}

const installing = (city: City): string => `install-${city}`;

async function install(bench: Workbench, city: City, archive: string): Promise<void> {
  const { address } = bench.lab.cluster(city).node();
  const options: Record<Role, string> = {
    cluster: `--cluster-name ${city} --pod-cidr ${POD_CIDR} --service NodePort --node-port ${NODE_PORT} --advertise ${address}:${NODE_PORT}`,
    gateway: '',
    node: '',
  };
  const kubectl = `kubectl --context ${city}`;
  await once(bench.lab, installing(city), archive, async () => {
    await ask(bench, `tributary manifests crds | ${kubectl} apply --server-side -f -`, PATIENT);
    for (const role of ROLES) {
      const print = `tributary manifests ${role} --image ${agentImageName} ${options[role]}`;
      await ask(bench, `${print} | ${kubectl} apply --server-side -f -`, PATIENT);
    }
  });
  for (const what of [
    `${SYSTEM} rollout status deployment/tributary-cluster`,
    `${HOSTS} rollout status deployment/tributary-gateway`,
    `${HOSTS} rollout status daemonset/tributary-node`,
  ]) {
    await ask(bench, `${kubectl} -n ${what} --timeout=120s`, { timeoutMs: 130_000 });
  }
}

async function ask(bench: Workbench, command: string, options: ShellOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await bench.run(command, options);
  if (code !== 0) throw new Error(`${command}: exit code ${code}: ${stderr}${stdout}`);
  return stdout;
}

const object = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind,
  metadata: { name },
  spec,
});

export const conditionOf = (
  of: Tunnel | KubeNode | undefined,
  wanted: string,
): { type: string; status: string; reason?: string; message?: string } | undefined =>
  of?.status?.conditions?.find(({ type }) => type === wanted);

/** Addresses that are Ready in a Service's EndpointSlices. */
export async function endpoints(api: ClusterApi, namespace: string, service: string): Promise<string[]> {
  const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
  const slices = await api.list<{
    endpoints?: { addresses: string[]; conditions?: { ready?: boolean } }[] | null;
  }>(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=${selector}`);
  return slices
    .flatMap(({ endpoints: found }) => found ?? [])
    .filter(({ conditions }) => conditions?.ready !== false)
    .flatMap(({ addresses }) => addresses)
    .toSorted();
}
