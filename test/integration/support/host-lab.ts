/** A host in its own network namespace, with objects of others on it, and the host code in a process there. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { inNamespaces } from '../../../lab/daemon.ts';
import { run } from '../../../lab/run.ts';
import type { HostReport } from '../../../src/network/host/host-config.ts';
import { eventually } from '../../support/eventually.ts';
import type { HostCommand, HostLine } from './host-process.ts';
import { LinePrinter } from '../../support/network/line-printer.ts';

const PROGRAMS = ['/usr/sbin/ip', '/usr/sbin/bridge', '/usr/sbin/nft'];

/** Why these tests cannot run here; undefined when they can. */
export function hostLabProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const missing = PROGRAMS.find((path) => !existsSync(path));
  return missing === undefined ? undefined : `${missing} is missing`;
}

/** Objects of others, which must never be changed. */
const OTHERS = [
  'link add eth0 type veth peer name eth0p',
  'link set eth0p up',
  'link set eth0 up alias uplink',
  'addr add 10.9.0.1/24 dev eth0',
  'addr add fd09::1/64 dev eth0 nodad',
  'link add cni0 type bridge',
  'link add othervx type vxlan id 99 dstport 8472 local 10.9.0.1 nolearning',
  'link set othervx master cni0 up',
  'link set cni0 up',
  'addr add 10.244.0.1/24 dev cni0',
  'route add default via 10.9.0.254',
  'route add 10.80.0.0/16 via 10.9.0.7 metric 100 proto 80',
  'route add unreachable 10.81.0.0/16 metric 4000',
  'route add fd80::/64 via fd09::7 proto static',
  'route add 10.82.0.0/16 dev cni0 table 500 proto 115',
  'rule add pref 200 from 10.244.0.0/24 lookup 500 proto 115',
  'rule add pref 201 iif cni0 lookup 501',
  '-6 rule add pref 202 to fd80::/16 lookup 502',
];

const TABLE_OF_OTHERS = `table inet others {
  set known { type ipv4_addr; elements = { 10.1.2.3 } }
  chain input { type filter hook input priority 0; policy accept; ip saddr @known accept; }
}`;

const SHOWN = [
  'ip -d link',
  'ip addr',
  'ip neigh show nud permanent | sort',
  'bridge fdb | sort',
  'ip rule',
  'ip -6 rule',
  'ip -4 route show table all',
  'ip -6 route show table all',
  'cat /proc/sys/net/ipv4/conf/*/rp_filter',
  'nft list ruleset',
];

let labs = 0;

export class HostLab {
  readonly netns: string;
  readonly #processes: HostProcess[] = [];
  readonly #monitors: ChildProcess[] = [];

  private constructor(netns: string) {
    this.netns = netns;
  }

  static async up(): Promise<HostLab> {
    const lab = new HostLab(`hn${process.pid}x${labs++}`);
    await run(['ip', 'netns', 'add', lab.netns]);
    // Addresses are valid at once, and nothing changes by itself later.
    await lab.run([
      'sh',
      '-c',
      'for i in all default; do echo 0 >/proc/sys/net/ipv6/conf/$i/accept_dad; ' +
        'echo 0 >/proc/sys/net/ipv6/conf/$i/router_solicitations; done',
    ]);
    await lab.ip('link set lo up', ...OTHERS);
    await run(['nft', '-f', '-'], { netns: lab.netns, stdin: TABLE_OF_OTHERS });
    return lab;
  }

  async run(command: readonly [string, ...string[]]): Promise<string> {
    return run(command, { netns: this.netns });
  }

  /** One `ip` command each. */
  async ip(...lines: string[]): Promise<void> {
    for (const line of lines) await this.run(['ip', ...line.split(' ')]);
  }

  /** Everything visible of the network of this host, byte for byte, except running timers. */
  async everything(): Promise<string> {
    // One process for all: it is asked again and again. The unordered ones come in the order of a hash table.
    const script = SHOWN.map((command) => `echo '# ${command}'; ${command}`).join('\n');
    return (await this.run(['sh', '-ec', script])).replaceAll(/timer +\d+\.\d+/g, 'timer');
  }

  /** Like `everything`, without the numbers of links, which change when a link is made again. */
  async state(): Promise<string> {
    return (await this.everything()).replaceAll(/^\d+: /gm, '');
  }

  /** With a prefix: through that program. */
  async start(prefix: readonly string[] = []): Promise<HostProcess> {
    const script = join(import.meta.dirname, 'host-process.ts');
    const command = [...prefix, process.execPath, script];
    const [program, ...args] = inNamespaces(command as [string, ...string[]], { netns: this.netns });
    const host = new HostProcess(spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] }));
    this.#processes.push(host);
    await host.printer.until('the host process has started', ({ event }) => event === 'started');
    return host;
  }

  /** `ip monitor` or `nft monitor`, from now on. */
  async monitor(program: 'ip' | 'nft'): Promise<Monitor> {
    const command = ['stdbuf', '-oL', program, 'monitor'] as const;
    const [name, ...args] = inNamespaces(command, { netns: this.netns });
    const child = spawn(name, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    this.#monitors.push(child);
    const pokes = {
      ip: (number: number) => `ip rule add pref ${POKE + number} lookup 600`,
      nft: (number: number) => `nft add table inet poke${POKE + number}`,
    };
    const monitor = new Monitor(child, async (number) => {
      await this.run(pokes[program](number).split(' ') as [string, ...string[]]);
    });
    await monitor.heard();
    return monitor;
  }

  async down(): Promise<void> {
    for (const monitor of this.#monitors) monitor.kill('SIGKILL');
    for (const host of this.#processes) await host.kill();
    await run(['ip', 'netns', 'del', this.netns]);
  }
}

/** Unique numbers. */
const POKE = 31_000;

/** It changes something itself to know that it has received everything before, since events come in order. */
export class Monitor {
  readonly #lines: string[] = [];
  readonly #poke: (number: number) => Promise<void>;
  #pokes = 0;

  constructor(child: ChildProcess, poke: (number: number) => Promise<void>) {
    this.#poke = poke;
    if (child.stdout === null) throw new Error('the monitor has no standard output');
    createInterface({ input: child.stdout }).on('line', (line) => this.#lines.push(line));
  }

  /** The events since the last call. */
  async heard(): Promise<string[]> {
    let end = -1;
    await eventually('the monitor hears', async () => {
      // It receives nothing before it listens.
      await this.#poke(this.#pokes++);
      end = this.#lines.findLastIndex((line) => line.includes(String(POKE + this.#pokes - 1)));
      return end >= 0;
    });
    const own = /new generation/;
    return this.#lines
      .splice(0)
      .slice(0, end)
      .filter((line) => !own.test(line) && !this.#isPoke(line));
  }

  #isPoke(line: string): boolean {
    return Array.from({ length: this.#pokes }, (_, number) => POKE + number).some((number) =>
      line.includes(String(number)),
    );
  }
}

export class HostProcess {
  readonly printer: LinePrinter<HostLine>;
  readonly #child: ChildProcess;
  #commands = 0;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.printer = new LinePrinter(child);
  }

  /** Without waiting for the answer; resolves to the number of the command. */
  send(command: HostCommand): number {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    return this.#commands++;
  }

  async answer(command: number): Promise<Extract<HostLine, { event: 'done' }>> {
    const isAnswer = (line: HostLine): boolean => line.event === 'done' && line.command === command;
    const line = await this.printer.until(`answer ${command} of the host`, isAnswer);
    if (line.event !== 'done') throw new Error('unreachable');
    return line;
  }

  async do(command: HostCommand): Promise<HostReport> {
    const { report, error } = await this.answer(this.send(command));
    if (error !== undefined) throw new Error(error);
    return report ?? { changes: 0, problems: [] };
  }

  /** Of the program that watches for it. */
  async watcher(): Promise<number> {
    const { pid } = this.#child;
    const children = (): string => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    await eventually('it watches', () => /^\d+$/.test(children()));
    return Number(children());
  }

  get changes(): number {
    return this.printer.lines.filter(({ event }) => event === 'changed').length;
  }

  /** Ends its input; resolves to the exit status when it has ended by itself. */
  async end(): Promise<number | null> {
    this.#child.stdin?.end();
    await eventually('the host process ends', () => this.#child.exitCode !== null);
    return this.#child.exitCode;
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    const isGone = (): boolean => this.#child.exitCode !== null || this.#child.signalCode !== null;
    await eventually('the host process is gone', isGone);
  }
}
