/**
 * Roles of the network as programs: nodes are network namespaces on one underlay, each cluster has a real API server. The
 * test plays role `cluster` and writes the Tunnels.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { binaries } from '../../../lab/binaries.ts';
import type { Cluster } from '../../../lab/cluster.ts';
import type { Lab } from '../../../lab/lab.ts';
import { mainModule } from '../../../lab/own-program.ts';
import { run } from '../../../lab/run.ts';
import {
  GATEWAY_CONFIG_MAP,
  GATEWAY_LEASE,
  NETWORK_CONFIG_MAP,
  ownNetworkData,
  readGatewayFacts,
  type GatewayFacts,
  type OwnNetwork,
} from '../../../src/api/own-network.ts';
import { configMaps, leases, namespaces, nodes, pods } from '../../../src/api/resources.ts';
import { tunnels, type Tunnel } from '../../../src/api/tunnel.ts';
import type { Lease } from '../../../src/api/wire.ts';
import { manifestsCommand } from '../../../src/cli/manifests.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { applyYaml, printed } from '../../support/labs/rights-cluster.ts';

const NAMESPACE = 'tributary-system';
/** Both sides write the same ranges, so that everything is translated. */
const PODS = '10.1.0.0/16';
const EXTERNAL = '10.70.0.0/20';
const VIEWS = [
  { prefix: PODS, as: '100.64.0.0/16', use: 'Pods' as const },
  { prefix: EXTERNAL, as: '100.65.0.0/20', use: 'External' as const },
];
const POD = { namespace: 'default', name: 'stray' };
/** The active gateway of the other side. */
export const FAR_GATEWAY = '100.65.0.1';

export class RolesLab {
  readonly underlay: string;
  readonly directory: string = mkdtempSync(join(tmpdir(), 'roles-'));
  readonly wireguardGo: string;
  readonly #lab: Lab;
  readonly #sides: RolesSide[] = [];
  readonly #prefix: string;

  private constructor(lab: Lab, wireguardGo: string, prefix: string) {
    this.#lab = lab;
    this.wireguardGo = wireguardGo;
    this.#prefix = prefix;
    this.underlay = `${prefix}ul`;
  }

  static async up(name: string): Promise<RolesLab> {
    // Jest loads CommonJS before any module has run, so what the lab's PKI needs must be there before it is imported.
    await import('reflect-metadata');
    const { Lab } = await import('../../../lab/lab.ts');
    const programs = await binaries(undefined, ['wireguard-go']);
    const clusters = [{ name: 'home' }, { name: 'away' }];
    const lab = new RolesLab(
      await Lab.fresh({ name, workload: 'kwok', clusters }),
      programs['wireguard-go'],
      `rl${process.pid}`,
    );
    await run(['ip', 'netns', 'add', lab.underlay]);
    await run(['ip', '-n', lab.underlay, '-batch', '-'], {
      stdin: 'link add br0 type bridge\nlink set br0 up\naddr add 172.31.0.1/16 dev br0\n',
    });
    return lab;
  }

  /** One cluster with a number of nodes, which are named by its letter and a number. */
  async side(cluster: 'home' | 'away', letter: string, count: number): Promise<RolesSide> {
    const side = new RolesSide(this, this.#lab.cluster(cluster), await this.#open(cluster));
    this.#sides.push(side);
    for (let number = 1; number <= count; number++) {
      const octet = `${this.#sides.length}${number}`;
      side.nodes.push(
        await RolesNode.up(side, `${letter}${number}`, `${this.#prefix}${letter}${number}`, octet),
      );
    }
    await side.furnish();
    return side;
  }

  /** What the network beside a node carries; whoever sends more hears nothing. */
  async narrow(node: RolesNode, mtu: number): Promise<void> {
    await run(['ip', '-n', this.underlay, 'link', 'set', node.name, 'mtu', String(mtu)]);
  }

  async #open(cluster: string): Promise<HttpClient> {
    return createClient(await parseKubeconfig(readFileSync(this.#lab.cluster(cluster).kubeconfig, 'utf8')));
  }

  async down(): Promise<void> {
    for (const side of this.#sides) await side.down();
    await run(['ip', 'netns', 'del', this.underlay]).catch(() => undefined);
    await this.#lab.down();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export class RolesSide {
  readonly lab: RolesLab;
  readonly cluster: Cluster;
  readonly client: HttpClient;
  readonly nodes: RolesNode[] = [];
  readonly socket: string;
  readonly port: number;
  readonly #relay: Server;

  constructor(lab: RolesLab, cluster: Cluster, client: HttpClient) {
    this.lab = lab;
    this.cluster = cluster;
    this.client = client;
    this.port = Number(new URL(cluster.server).port);
    this.socket = join(lab.directory, `${cluster.name}.sock`);
    // A path in the file system is reachable from all network namespaces.
    this.#relay = createServer((inner) => {
      const outer = connect(this.port, '127.0.0.1');
      inner.on('error', () => outer.destroy()).pipe(outer);
      outer.on('error', () => inner.destroy()).pipe(inner);
    }).listen(this.socket);
  }

  node(index: number): RolesNode {
    const node = this.nodes[index];
    if (node === undefined) throw new Error(`no node ${index}`);
    return node;
  }

  get network(): OwnNetwork {
    return {
      pods: [PODS],
      external: EXTERNAL,
      gatewayAddress: '10.70.0.1',
      pools: ['100.64.0.0/10'],
      nodes: this.nodes.map(({ name, address }, index) => ({
        name,
        address,
        external: `10.70.0.${index + 2}`,
        pods: [`10.1.${index}.0/24`],
      })),
      vxlan: { vni: 7480, port: 7482 },
    };
  }

  /** What role `cluster` writes. */
  async furnish(): Promise<void> {
    await applyYaml(this.cluster, await printed(manifestsCommand, ['crds']));
    await this.client.create(namespaces, { metadata: { name: NAMESPACE } });
    const metadata = { namespace: NAMESPACE, name: NETWORK_CONFIG_MAP };
    await this.client.create(configMaps, { metadata, data: ownNetworkData(this.network) });
  }

  async facts(): Promise<GatewayFacts | undefined> {
    const ref = { namespace: NAMESPACE, name: GATEWAY_CONFIG_MAP };
    const read = this.client.get(configMaps, ref).catch(ignoring('NotFound'));
    return readGatewayFacts((await read)?.data);
  }

  async leader(): Promise<string | undefined> {
    return (await this.#lease())?.holderIdentity;
  }

  /** For how long the Lease of the gateway is valid. */
  async leaseSeconds(): Promise<number | undefined> {
    return (await this.#lease())?.leaseDurationSeconds;
  }

  async #lease(): Promise<Lease['spec']> {
    const ref = { namespace: NAMESPACE, name: GATEWAY_LEASE };
    return (await this.client.get(leases, ref).catch(ignoring('NotFound')))?.spec;
  }

  /** The Tunnel to a peer of that name, with what its gateway has told. */
  async tunnelTo(name: string, { publicKey, endpoints }: GatewayFacts): Promise<void> {
    const peer = { publicKey, endpoints, pods: [PODS], external: [EXTERNAL] };
    const seenAs = VIEWS.map(({ prefix, as }) => ({ prefix, as }));
    const spec: Tunnel['spec'] = {
      clusterID: name,
      peer,
      seenAs,
      access: 'AllPods',
      transit: 'None',
    };
    const kind = { apiVersion: 'tributary.dev/v1alpha1', kind: 'Tunnel' };
    await this.client.create(tunnels, { ...kind, metadata: { name }, spec });
    const body = { status: { views: VIEWS } };
    await this.client.patch(tunnels, { name }, { type: 'merge', body }, { subresource: 'status' });
  }

  /** A pod that runs on that node, as its kubelet tells it. Nodes are nobody's business but the pod collector's. */
  async pod(nodeName: string, address: string): Promise<void> {
    await this.client.create(nodes, { metadata: { name: nodeName } });
    const spec = {
      nodeName,
      containers: [{ name: 'main', image: 'web' }],
      tolerations: [{ operator: 'Exists' }],
    };
    await this.client.create(pods, { metadata: POD, spec });
    const body = { status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }] } };
    await this.client.patch(pods, POD, { type: 'merge', body }, { subresource: 'status' });
  }

  async endPod(): Promise<void> {
    await this.client.delete(pods, POD, { gracePeriodSeconds: 0 });
  }

  tunnel = async (name: string): Promise<Tunnel> => this.client.get(tunnels, { name });

  async isReady(name: string): Promise<boolean> {
    const { status } = await this.tunnel(name);
    return status?.conditions?.some((it) => it.type === 'Ready' && it.status === 'True') === true;
  }

  async down(): Promise<void> {
    for (const node of this.nodes) await node.down();
    await this.client.close();
    this.cluster.api.close();
    this.#relay.close();
  }
}

type Program = 'gateway' | 'node' | 'wireguard' | 'relay';

export class RolesNode {
  readonly name: string;
  readonly address: string;
  readonly link: string;
  readonly netns: string;
  readonly #side: RolesSide;
  /** Those that are to run. */
  readonly #programs = new Map<Program, ChildProcess>();
  readonly #log: number;

  private constructor(side: RolesSide, name: string, netns: string, octet: string) {
    this.#side = side;
    this.name = name;
    this.netns = netns;
    this.link = `w${netns}`;
    this.address = `172.31.0.${octet}`;
    this.#log = openSync(join(side.lab.directory, `${name}.log`), 'a');
  }

  static async up(side: RolesSide, name: string, netns: string, octet: string): Promise<RolesNode> {
    const node = new RolesNode(side, name, netns, octet);
    const { underlay } = side.lab;
    await run(['ip', 'netns', 'add', netns]);
    await run(['ip', '-n', netns, '-batch', '-'], {
      stdin: [
        'link set lo up',
        `link add eth0 type veth peer name ${name} netns ${underlay}`,
        `addr add ${node.address}/16 dev eth0`,
        'link set eth0 up',
        'route add default via 172.31.0.1',
        '',
      ].join('\n'),
    });
    await run(['ip', '-n', underlay, 'link', 'set', name, 'master', 'br0', 'up']);
    await node.run(['sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    // A new IPv6 address is in use at once, and not at some later moment at which the state of the host changes.
    await node.run(['sysctl', '-qw', 'net.ipv6.conf.default.accept_dad=0']);
    const { port, socket } = side;
    const from = `TCP-LISTEN:${port},bind=127.0.0.1,fork,reuseaddr`;
    node.#spawn('relay', ['socat', from, `UNIX-CONNECT:${socket}`]);
    node.startWireguard();
    return node;
  }

  run = async (command: readonly [string, ...string[]]): Promise<string> =>
    run(command, { netns: this.netns });

  startWireguard(): void {
    this.#keep('wireguard', [this.#side.lab.wireguardGo, '-f', this.link], { WG_PROCESS_FOREGROUND: '1' });
  }

  start(role: 'gateway' | 'node', ...more: string[]): void {
    const program = [process.execPath, mainModule()];
    this.startProgram(program, role, '--lease-seconds', '2', '--log-level', 'debug', ...more);
  }

  /** `program`: how it is called, without `run`. */
  startProgram(program: readonly string[], role: 'gateway' | 'node', ...more: string[]): void {
    const cluster = ['--kubeconfig', this.#side.cluster.kubeconfig, '--system-namespace', NAMESPACE];
    const host = ['--node-name', this.name, '--wireguard-interface', this.link, '--ops-port', '0'];
    this.#keep(role, [...program, 'run', role, ...cluster, ...host, ...more]);
  }

  /** Of a program that runs. */
  pid(program: Program): number {
    const pid = this.#programs.get(program)?.pid;
    if (pid === undefined) throw new Error(`${this.name} runs no ${program}`);
    return pid;
  }

  /** It is started again whenever it ends, as a kubelet does it. */
  #keep(program: Program, command: readonly string[], env: Record<string, string> = {}): void {
    const child = this.#spawn(program, command, env);
    const isWanted = (): boolean => this.#programs.get(program) === child;
    child.once('exit', () => setTimeout(() => isWanted() && this.#keep(program, command, env), 200));
  }

  #spawn(program: Program, command: readonly string[], env: Record<string, string> = {}): ChildProcess {
    const child = spawn('nsenter', [`--net=/run/netns/${this.netns}`, '--', ...command], {
      stdio: ['ignore', this.#log, this.#log],
      env: { ...process.env, ...env },
    });
    this.#programs.set(program, child);
    return child;
  }

  async kill(program: Program, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#programs.get(program);
    this.#programs.delete(program);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }

  log = (): string => readFileSync(join(this.#side.lab.directory, `${this.name}.log`), 'utf8');

  /** Everything that the network's roles have set, without counters. */
  async state(): Promise<string> {
    const rules = await this.run(['nft', '-s', 'list', 'ruleset']);
    const routes = await this.run(['ip', 'route', 'show', 'table', 'all']);
    const links = await this.run(['ip', '-o', 'addr', 'show']);
    const wireguard = await this.run(['wg', 'show', this.link, 'allowed-ips']);
    const keys = await this.run(['wg', 'show', this.link, 'endpoints']);
    return [rules, routes, links, wireguard, keys].join('\n');
  }

  async down(): Promise<void> {
    for (const program of ['gateway', 'node', 'wireguard', 'relay'] as const) await this.kill(program);
    await run(['ip', 'netns', 'del', this.netns]).catch(() => undefined);
    closeSync(this.#log);
  }
}

export interface Pings {
  /** Ends the pings; returns the numbers of those that were answered, and of the last one sent. */
  end: () => Promise<{ answered: number[]; sent: number }>;
}

/** One every 50 ms. */
export function ping(node: RolesNode, address: string): Pings {
  const command = ['busybox', 'ping', '-i', '0.05', address];
  const child = spawn('nsenter', [`--net=/run/netns/${node.netns}`, ...command], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const end = async (): Promise<{ answered: number[]; sent: number }> => {
    const exit = once(child, 'close');
    child.kill('SIGINT');
    await exit;
    const answered = [...output.matchAll(/ seq=(\d+) ttl/g)].map(([, number]) => Number(number) + 1);
    return { answered, sent: Number(/(\d+) packets transmitted/.exec(output)?.[1] ?? 0) };
  };
  return { end };
}

/** The longest run of unanswered pings, in milliseconds. */
export function longestGap({ answered, sent }: { answered: number[]; sent: number }): number {
  let longest = 0;
  let last = 0;
  // The last two may still be under way.
  for (const number of [...answered, Math.max(sent - 1, answered.at(-1) ?? 0)]) {
    longest = Math.max(longest, number - last - 1);
    last = Math.max(last, number);
  }
  return longest * 50;
}
