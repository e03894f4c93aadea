/**
 * Clusters without Kubernetes: a network namespace for each node and each pod, a bridge like that of a CNI that
 * masquerades, rules like those of kube-proxy, wireguard-go, and the plans of the data plane, applied by a process in
 * each node.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';

import { binaries } from '../../../lab/binaries.ts';
import { run } from '../../../lab/run.ts';
import type { OwnNetwork } from '../../../src/api/own-network.ts';
import { nthAddress, parsePrefix } from '../../../src/lib/prefix.ts';
import { gatewayPlan } from '../../../src/network/plan/gateway.ts';
import { nodePlan } from '../../../src/network/plan/node.ts';
import { PlaneNode, PlaneSpace, type PlanePod } from './plane-node.ts';
import { PlaneSide } from './plane-tunnels.ts';

const PROGRAMS = ['/usr/sbin/nft', '/usr/bin/wg', '/usr/bin/socat', '/usr/bin/busybox'];
export const TUNNEL_PORT = 51_820;
const MTU = 1420;

/** Why these tests cannot run here; undefined when they can. */
export function planeLabProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const missing = PROGRAMS.find((program) => !existsSync(program));
  return missing === undefined ? undefined : `${missing} is missing`;
}

/** What makes plans, and the checkout that it is from, whose program also carries them out. */
export interface PlaneVersion {
  readonly root: string;
  readonly gatewayPlan: typeof gatewayPlan;
  readonly nodePlan: typeof nodePlan;
}

const OURS: PlaneVersion = { root: path(import.meta.dirname, '..', '..', '..'), gatewayPlan, nodePlan };

/** Of another checkout. */
export async function planeVersion(root: string): Promise<PlaneVersion> {
  const [gateway, node] = (await Promise.all(
    ['gateway', 'node'].map(async (name) => import(path(root, 'src/network/plan', `${name}.ts`))),
  )) as [Pick<PlaneVersion, 'gatewayPlan'>, Pick<PlaneVersion, 'nodePlan'>];
  return { root, gatewayPlan: gateway.gatewayPlan, nodePlan: node.nodePlan };
}

export interface PlaneOptions {
  pods?: string;
  external?: string;
  nodes?: number;
  /** Of the cluster's own Services; no view lies in it. */
  services?: string;
  /** Environment of wireguard-go. */
  wireguard?: Readonly<Record<string, string>>;
  /** Default: ours. */
  version?: PlaneVersion;
}

export class PlaneLab {
  readonly prefix: string;
  readonly directory: string;
  readonly wireguardGo: string;
  readonly clusters: PlaneCluster[] = [];
  #clusters = 0;
  #ports = 0;

  private constructor(prefix: string, directory: string, wireguardGo: string) {
    this.prefix = prefix;
    this.directory = directory;
    this.wireguardGo = wireguardGo;
  }

  static async up(): Promise<PlaneLab> {
    const { 'wireguard-go': program } = await binaries(() => undefined, ['wireguard-go']);
    const lab = new PlaneLab(`pl${process.pid}`, mkdtempSync(path(tmpdir(), 'plane-')), program);
    await run(['ip', 'netns', 'add', lab.underlay]);
    await run(['ip', '-n', lab.underlay, '-batch', '-'], {
      stdin: 'link add br0 type bridge\nlink set br0 up\naddr add 172.31.0.1/16 dev br0\n',
    });
    return lab;
  }

  /** The network outside of all nodes: a router without a route to any view. */
  get underlay(): string {
    return `${this.prefix}-ul`;
  }

  portName(): string {
    return `port${++this.#ports}`;
  }

  /** The router itself, as a client. */
  stranger(): PlaneSpace {
    return new PlaneSpace(this.underlay);
  }

  /** How many packets for these addresses the router has seen since. */
  async capture(...addresses: string[]): Promise<() => Promise<number>> {
    const router = this.stranger();
    await router.nft(
      `table ip capture { chain in { type filter hook prerouting priority -400; ip daddr { ${addresses.join(', ')} } counter; }; }`,
    );
    return async () => {
      const listed = await router.run(['nft', 'list', 'table', 'ip', 'capture']);
      await router.run(['nft', 'delete', 'table', 'ip', 'capture']);
      return Number(/packets (\d+)/.exec(listed)?.[1]);
    };
  }

  async cluster(name: string, options: PlaneOptions = {}): Promise<PlaneCluster> {
    const cluster = new PlaneCluster(this, name, ++this.#clusters, options);
    this.clusters.push(cluster);
    await cluster.up();
    return cluster;
  }

  /** Makes all hosts as planned. */
  async apply(): Promise<void> {
    await Promise.all(this.clusters.map(async (cluster) => cluster.apply()));
  }

  async down(): Promise<void> {
    for (const cluster of this.clusters) await cluster.down();
    await run(['ip', 'netns', 'del', this.underlay]);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export class PlaneCluster {
  readonly name: string;
  readonly side: PlaneSide;
  readonly nodes: PlaneNode[];
  /** The index of the node whose gateway is active. */
  gateway = 0;
  /** Addresses out of the CIDRs of their nodes, with the names of these. */
  readonly strays: Map<string, string> = new Map();
  readonly #privateKey: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #version: PlaneVersion;

  constructor(lab: PlaneLab, name: string, number: number, options: PlaneOptions) {
    this.name = name;
    const {
      pods = '10.244.0.0/16',
      external = '10.70.0.0/20',
      nodes = 1,
      services = '10.96.0.0/16',
      wireguard = {},
      version = OURS,
    } = options;
    this.#environment = wireguard;
    this.#version = version;
    const network: OwnNetwork = {
      pods: [pods],
      external,
      gatewayAddress: nthAddress(parsePrefix(external), 1),
      pools: ['100.64.0.0/10'],
      reserved: [services],
      nodes: Array.from({ length: nodes }, (_, index) => ({
        name: `${name}${index + 1}`,
        address: `172.31.${number}.${index + 1}`,
        external: nthAddress(parsePrefix(external), 11 + index),
        pods: [`${nthAddress(parsePrefix(pods), 256 * index)}/24`],
      })),
      vxlan: { vni: 7443, port: 4799 },
    };
    this.#privateKey = execFileSync('wg', ['genkey'], { encoding: 'utf8' }).trim();
    const publicKey = execFileSync('wg', ['pubkey'], { encoding: 'utf8', input: this.#privateKey }).trim();
    const endpoint = `${network.nodes[0]?.address}:${TUNNEL_PORT}`;
    this.side = new PlaneSide(name.padEnd(26, 'a'), network, publicKey, endpoint);
    this.nodes = network.nodes.map((node) => new PlaneNode(lab, node, { network, root: version.root }));
  }

  get gatewayNode(): PlaneNode {
    return this.node(this.gateway);
  }

  node(index: number): PlaneNode {
    const node = this.nodes[index];
    if (node === undefined) throw new Error(`${this.name} has no node ${index}`);
    return node;
  }

  async up(): Promise<void> {
    for (const node of this.nodes) await node.up();
    for (const node of this.nodes) await node.routeTo(this.nodes);
    await this.gatewayNode.startWireGuard(this.#environment);
  }

  async pod(node = 0): Promise<PlanePod> {
    return this.node(node).pod();
  }

  /** The CNI tells all nodes the way to it. */
  async strayPod(node: number, address: string): Promise<PlanePod> {
    const { facts } = this.node(node);
    const others = this.nodes.filter((other) => other.facts !== facts);
    for (const other of others) await other.ip(`route add ${address} via ${facts.address}`);
    this.strays.set(address, facts.name);
    return this.node(node).strayPod(address);
  }

  async apply(): Promise<void> {
    const problems: string[] = [];
    for (const node of this.nodes) {
      problems.push(...(await node.set(this.nodePlanOf(node))));
    }
    problems.push(...(await this.gatewayNode.set(this.gatewayPlan())));
    if (problems.length > 0) throw new Error(`${this.name}: ${problems.join('; ')}`);
  }

  gatewayPlan(): ReturnType<typeof gatewayPlan> {
    return this.#version.gatewayPlan({
      network: this.side.network,
      nodeName: this.gatewayNode.facts.name,
      link: this.gatewayNode.link,
      vxlanLink: 'vx',
      mtu: MTU,
      port: TUNNEL_PORT,
      privateKey: this.#privateKey,
      peers: this.side.peers(),
      strays: this.strays,
    });
  }

  nodePlanOf(node: PlaneNode): ReturnType<typeof nodePlan> {
    return this.#version.nodePlan({
      network: this.side.network,
      nodeName: node.facts.name,
      link: this.gatewayNode.link,
      vxlanLink: 'vx',
      mtu: MTU,
      gatewayNode: this.gatewayNode.facts.name,
      tunnels: this.side.peers().map(({ tunnel, mtu }) => ({ tunnel, ...(mtu !== undefined && { mtu }) })),
    });
  }

  async down(): Promise<void> {
    for (const node of this.nodes) await node.down();
  }
}
