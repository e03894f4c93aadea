import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { inNamespaces } from '../../../lab/daemon.ts';
import { run } from '../../../lab/run.ts';
import type { NetworkNode, OwnNetwork } from '../../../src/api/own-network.ts';
import type { HostConfig, HostReport, Owner } from '../../../src/network/host/host-config.ts';
import { nthAddress, parsePrefix } from '../../../src/lib/prefix.ts';
import { eventually } from '../eventually.ts';
import type { PlaneLab } from './plane-lab.ts';

export const TCP_PORT = 7000;
export const UDP_PORT = 7001;
const ECHO = "SYSTEM:'echo $SOCAT_PEERADDR'";
/** If it ended before the other side has read, the answer would be lost. */
const READ_AND_ECHO = "SYSTEM:'read line; echo $SOCAT_PEERADDR'";

/** A network namespace with programs that end with it. */
export class PlaneSpace {
  readonly netns: string;
  readonly #children: ChildProcess[] = [];

  constructor(netns: string) {
    this.netns = netns;
  }

  async run(command: readonly [string, ...string[]], stdin = ''): Promise<string> {
    return run(command, { netns: this.netns, stdin, timeoutMs: 60_000 });
  }

  async shell(script: string): Promise<string> {
    return this.run(['sh', '-ec', script]);
  }

  /** Lines for `ip -batch`. */
  async ip(...lines: string[]): Promise<void> {
    await run(['ip', '-n', this.netns, '-batch', '-'], { stdin: `${lines.join('\n')}\n` });
  }

  async nft(script: string): Promise<string> {
    return this.run(['nft', '-f', '-'], `${script}\n`);
  }

  spawn(command: readonly [string, ...string[]], env: Record<string, string> = {}): ChildProcess {
    const [program, ...args] = inNamespaces(command, { netns: this.netns });
    const child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...env },
    });
    this.#children.push(child);
    return child;
  }

  /** Answers each connection and each datagram with the source address that it sees. */
  async serve(tcp: number = TCP_PORT, udp: number = UDP_PORT): Promise<void> {
    this.spawn(['socat', `TCP-LISTEN:${tcp},fork,reuseaddr`, ECHO]);
    this.spawn(['socat', `UDP-RECVFROM:${udp},fork`, READ_AND_ECHO]);
    await eventually(`${this.netns} serves`, async () => {
      const listening = await this.run(['ss', '-Hlnut']);
      return listening.includes(`:${tcp} `) && listening.includes(`:${udp} `);
    });
  }

  /** The address at which the server sees us; undefined if there is no answer. */
  async ask(
    protocol: 'tcp' | 'udp',
    address: string,
    options: { port?: number; bind?: string } = {},
  ): Promise<string | undefined> {
    const { port = protocol === 'tcp' ? TCP_PORT : UDP_PORT, bind } = options;
    const from = bind === undefined ? '' : `,bind=${bind}`;
    const command: [string, ...string[]] =
      protocol === 'tcp'
        ? ['socat', '-u', `TCP:${address}:${port},connect-timeout=1${from}`, '-']
        : ['socat', '-t1', '-T1', '-', `UDP:${address}:${port}${from}`];
    try {
      return (await this.run(command, 'x\n')).trim() || undefined;
    } catch {
      return undefined;
    }
  }

  /** The result of a connection to that address; also says if nobody answers. */
  async refusal(address: string): Promise<string> {
    const command = ['socat', '-u', `TCP:${address}:${TCP_PORT},connect-timeout=10`, '-'] as const;
    return this.run(command).then(
      () => 'nothing: it is connected',
      (error: unknown) => String(error),
    );
  }

  async ping(address: string, from?: string): Promise<boolean> {
    try {
      await this.run(['busybox', 'ping', '-c1', '-W1', ...(from === undefined ? [] : ['-I', from]), address]);
      return true;
    } catch {
      return false;
    }
  }

  /** Ends what was started here. */
  async endPrograms(): Promise<void> {
    await Promise.all(this.#children.splice(0).map(ended));
  }

  async end(): Promise<void> {
    await this.endPrograms();
    if (existsSync(`/run/netns/${this.netns}`)) await run(['ip', 'netns', 'del', this.netns]);
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('exit', () => resolve());
  child.kill('SIGKILL');
  await promise;
}

export class PlanePod extends PlaneSpace {
  readonly address: string;

  constructor(netns: string, address: string) {
    super(netns);
    this.address = address;
  }

  /** Counts the packets that come in from now on, except those of neighbour discovery. */
  async capture(): Promise<() => Promise<number>> {
    await this.nft(
      'table ip capture { chain in { type filter hook prerouting priority -400; iifname "eth0" counter; }; }',
    );
    return async () => {
      const listed = await this.run(['nft', 'list', 'table', 'ip', 'capture']);
      return Number(/packets (\d+)/.exec(listed)?.[1]);
    };
  }
}

export class PlaneNode extends PlaneSpace {
  readonly facts: NetworkNode;
  /** WireGuard; its control socket is beside those of all namespaces of this machine. */
  readonly link: string;
  readonly #lab: PlaneLab;
  readonly #network: OwnNetwork;
  readonly #root: string;
  readonly #pods: PlanePod[] = [];
  #host: HostProcess | undefined;
  #wireguard: ChildProcess | undefined;

  /** `root`: the folder of the checkout whose program sets the host. */
  constructor(lab: PlaneLab, facts: NetworkNode, { network, root }: { network: OwnNetwork; root: string }) {
    super(`${lab.prefix}-${facts.name}`);
    this.#lab = lab;
    this.facts = facts;
    this.#network = network;
    this.#root = root;
    this.link = `wg${lab.prefix}${facts.name}`.slice(0, 15);
  }

  async up(): Promise<void> {
    const { address, pods } = this.facts;
    // The end of a namespace takes a while, and until then its links' names are taken.
    const port = this.#lab.portName();
    const bridge = nthAddress(parsePrefix(pods[0] ?? ''), 1);
    await run(['ip', 'netns', 'add', this.netns]);
    await run(['ip', '-n', this.#lab.underlay, '-batch', '-'], {
      stdin: `link add ${port} type veth peer name eth0 netns ${this.netns}\nlink set ${port} master br0 up\n`,
    });
    // Strict, so that a loose setting can only be ours.
    await this.shell(
      'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/all/rp_filter; echo 1 >/proc/sys/net/ipv4/conf/default/rp_filter',
    );
    await this.ip(
      'link set lo up',
      `addr add ${address}/16 dev eth0`,
      'link set eth0 up',
      'route add default via 172.31.0.1',
      'link add cni0 type bridge',
      `addr add ${bridge}/24 dev cni0`,
      'link set cni0 up',
    );
    const [own] = this.#network.pods;
    await this.nft(`
      table ip cni { chain post { type nat hook postrouting priority 100;
        ip saddr ${own} ip daddr != ${own} masquerade
        ip saddr != ${own} ip daddr ${own} masquerade
      }
      }
      table ip services {
        chain marked { type nat hook postrouting priority 100; meta mark & 0x4000 == 0x4000 masquerade; }
        chain proxy { }
        chain pre { type nat hook prerouting priority -100; jump proxy; }
        chain out { type nat hook output priority -100; jump proxy; }
      }`);
  }

  /** Like a CNI without an overlay. */
  async routeTo(nodes: readonly PlaneNode[]): Promise<void> {
    const lines = nodes
      .filter((node) => node !== this)
      .flatMap(({ facts }) => facts.pods.map((prefix) => `route add ${prefix} via ${facts.address}`));
    if (lines.length > 0) await this.ip(...lines);
  }

  async pod(): Promise<PlanePod> {
    const [cidr = ''] = this.facts.pods;
    const number = this.#pods.length + 1;
    const pod = new PlanePod(`${this.netns}p${number}`, nthAddress(parsePrefix(cidr), 9 + number));
    this.#pods.push(pod);
    await run(['ip', 'netns', 'add', pod.netns]);
    await this.ip(
      `link add p${number} type veth peer name eth0 netns ${pod.netns}`,
      `link set p${number} master cni0 up`,
    );
    await pod.ip(
      'link set lo up',
      `addr add ${pod.address}/24 dev eth0`,
      'link set eth0 up',
      `route add default via ${nthAddress(parsePrefix(cidr), 1)}`,
    );
    await pod.serve();
    return pod;
  }

  /** As a CNI with its own idea of addresses makes it: a route of its own on this node, and no bridge. */
  async strayPod(address: string): Promise<PlanePod> {
    const number = this.#pods.length + 1;
    const pod = new PlanePod(`${this.netns}p${number}`, address);
    this.#pods.push(pod);
    await run(['ip', 'netns', 'add', pod.netns]);
    await this.ip(
      `link add p${number} type veth peer name eth0 netns ${pod.netns}`,
      `link set p${number} up`,
      `route add ${address} dev p${number}`,
    );
    await this.shell(`echo 1 >/proc/sys/net/ipv4/conf/p${number}/proxy_arp`);
    await pod.ip(
      'link set lo up',
      `addr add ${address}/32 dev eth0`,
      'link set eth0 up',
      'route add 169.254.1.1 dev eth0',
      'route add default via 169.254.1.1',
    );
    await pod.serve();
    return pod;
  }

  /** The rules that kube-proxy writes for a Service: `match` selects the packets that go to the endpoint. */
  async service(match: string, endpoint: string): Promise<void> {
    await this.nft(`add rule ip services proxy ${match} dnat to ${endpoint}`);
  }

  /** `environment`: of Go, for example its limits of memory. */
  async startWireGuard(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    const env = { LOG_LEVEL: 'error', WG_PROCESS_FOREGROUND: '1', ...environment };
    this.#wireguard = this.spawn([this.#lab.wireguardGo, '-f', this.link], env);
    await eventually(`${this.link} is there`, () => existsSync(`/var/run/wireguard/${this.link}.sock`));
  }

  /** The process of wireguard-go. */
  get wireguardPid(): number {
    const pid = this.#wireguard?.pid;
    if (pid === undefined) throw new Error(`${this.netns} has no wireguard-go`);
    return pid;
  }

  async stopWireGuard(): Promise<void> {
    if (this.#wireguard !== undefined) await ended(this.#wireguard);
  }

  /** What was wrong. */
  async set(config: HostConfig): Promise<string[]> {
    return (await this.timedSet(config)).problems;
  }

  /** What was wrong, how long the host took for it, and what CPU time it has used so far; in milliseconds. */
  async timedSet(config: HostConfig): Promise<{ problems: string[]; ms: number; cpuMs: number }> {
    const host = this.#hostProcess();
    const began = performance.now();
    const { problems } = await host.call({ set: config });
    const ms = performance.now() - began;
    return { problems: problems.map(({ message }) => message), ms, cpuMs: host.cpuMs };
  }

  #hostProcess(): HostProcess {
    return (this.#host ??= new HostProcess(this, this.#root));
  }

  async cleanUp(owner: Owner): Promise<void> {
    await this.#hostProcess().call({ cleanUp: owner });
  }

  /**
   * Counts packets that came through the tunnel, here or on another node, by destination: a pod, the host itself, or
   * elsewhere.
   */
  async captureTunnel(link: string): Promise<() => Promise<number>> {
    const from = `iifname { "${link}", "vx" }`;
    await this.nft(`table ip capture {
      chain input { type filter hook input priority 300; ${from} counter; }
      chain forward { type filter hook forward priority 300; ${from} oifname != "vx" counter; }
    }`);
    return async () => {
      const listed = await this.run(['nft', 'list', 'table', 'ip', 'capture']);
      await this.run(['nft', 'delete', 'table', 'ip', 'capture']);
      return [...listed.matchAll(/packets (\d+)/g)].reduce((sum, [, packets]) => sum + Number(packets), 0);
    };
  }

  /** The gateway's table with the kernel's numbers of chains and rules, without what is counted. */
  async handles(): Promise<string> {
    const listed = await this.run(['nft', '-a', 'list', 'table', 'inet', 'tributary_gateway']);
    return listed.replaceAll(/packets \d+ bytes \d+/g, '');
  }

  /** Everything that the data plane may change. */
  async state(): Promise<string> {
    return this.shell(
      'ip link; ip addr; ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; nft list ruleset',
    );
  }

  async down(): Promise<void> {
    for (const pod of this.#pods) await pod.end();
    await this.end();
  }
}

interface Answer {
  report?: HostReport;
  error?: string;
}

const TICK_MS = 10;

/** test/support/network/plane-host.ts in a node. */
class HostProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #calls = 0;

  constructor(node: PlaneNode, root: string) {
    this.#child = node.spawn([process.execPath, join(root, 'test/support/network/plane-host.ts')]);
    if (this.#child.stdout === null) throw new Error('no standard output');
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const answer = JSON.parse(line) as { id: number } & Answer;
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
  }

  /** So far, of the process and of the programs that it has run; in steps of 10 ms. */
  get cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
  }

  async call(request: { set: HostConfig } | { cleanUp: Owner }): Promise<HostReport> {
    const id = ++this.#calls;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#waiting.set(id, resolve);
    this.#child.stdin?.write(`${JSON.stringify({ id, ...request })}\n`);
    const { report, error } = await promise;
    if (report === undefined) throw new Error(error);
    return report;
  }
}
