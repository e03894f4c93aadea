/** Hosts on network segments of their own, in network namespaces; nothing of them reaches the machine's network. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Daemon, type DaemonRecord, inNamespaces } from '../../../lab/daemon.ts';
import { run } from '../../../lab/run.ts';
import { eventually } from '../eventually.ts';
import type { LanAgentLine, LanAgentOptions } from './lan-agent.ts';
import type { LanGatewayLine, LanGatewayOptions } from './lan-gateway.ts';
import type { UdpSendOptions } from './udp-send.ts';

const AVAHI = [
  '/usr/sbin/avahi-daemon',
  '/usr/bin/avahi-browse',
  '/usr/bin/avahi-publish',
  '/usr/bin/dbus-daemon',
];
/** The limit also holds on a machine that is busy with other tests. */
const START_MS = 60_000;
const SOON_MS = 60_000;

/** Why these tests cannot run here; undefined when they can. */
export function lanLabProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const missing = AVAHI.find((path) => !existsSync(path));
  return missing === undefined ? undefined : `${missing} is missing`;
}

export class LanLab {
  readonly #prefix: string;
  readonly #directory: string;
  readonly #hosts: LanHost[] = [];
  readonly #segments: number;

  private constructor(prefix: string, directory: string, segments: number) {
    this.#prefix = prefix;
    this.#directory = directory;
    this.#segments = segments;
  }

  /** A number of segments; each is a bridge, all in one namespace. */
  static async up(segments = 1): Promise<LanLab> {
    const lab = new LanLab(`lan${process.pid}`, mkdtempSync(join(tmpdir(), 'lan-')), segments);
    await run(['ip', 'netns', 'add', lab.#bridges]);
    for (let segment = 0; segment < segments; segment++) {
      await lab.#ip(`link add br${segment} type bridge mcast_snooping 0`, `link set br${segment} up`);
    }
    return lab;
  }

  /** A host with an interface `eth<segment>` on each of these segments. */
  async host(name: string, segments: readonly number[] = [0]): Promise<LanHost> {
    const netns = `${this.#prefix}-${name}`;
    const host = new LanHost(netns, join(this.#directory, name), this.#hosts.length + 1);
    this.#hosts.push(host);
    await run(['ip', 'netns', 'add', netns]);
    // Addresses are good at once.
    await host.run([
      'sh',
      '-c',
      'for i in all default; do echo 0 >/proc/sys/net/ipv6/conf/$i/accept_dad; done',
    ]);
    await host.run(['ip', 'link', 'set', 'lo', 'up']);
    for (const segment of segments) await this.connect(host, segment);
    return host;
  }

  async connect(host: LanHost, segment: number): Promise<void> {
    if (segment >= this.#segments) throw new Error(`there is no segment ${segment}`);
    const port = `p${host.number}x${segment}`;
    await this.#ip(
      `link add ${port} type veth peer name eth${segment} netns ${host.netns}`,
      `link set ${port} master br${segment} up`,
    );
    await run(['ip', '-n', host.netns, '-batch', '-'], {
      stdin: [
        `addr add ${host.address(segment)}/24 dev eth${segment}`,
        `addr add ${host.address6(segment)}/64 dev eth${segment} nodad`,
        `link set eth${segment} up`,
        '',
      ].join('\n'),
    });
  }

  async down(): Promise<void> {
    for (const host of this.#hosts) await host.stop();
    for (const netns of [...this.#hosts.map((host) => host.netns), this.#bridges]) {
      await run(['ip', 'netns', 'del', netns]);
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #bridges(): string {
    return `${this.#prefix}-br`;
  }

  async #ip(...lines: string[]): Promise<void> {
    await run(['ip', '-n', this.#bridges, '-batch', '-'], { stdin: `${lines.join('\n')}\n` });
  }
}

export class LanHost {
  readonly netns: string;
  readonly number: number;
  readonly #directory: string;
  readonly #stops: (() => Promise<void>)[] = [];

  constructor(netns: string, directory: string, number: number) {
    this.netns = netns;
    this.number = number;
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  address(segment = 0): string {
    return `10.99.${segment}.${this.number}`;
  }

  address6(segment = 0): string {
    return `fd99:${segment + 1}::${this.number}`;
  }

  async run(command: readonly [string, ...string[]], env?: Record<string, string>): Promise<string> {
    const prefix: [string, ...string[]] =
      env === undefined
        ? [...command]
        : ['env', ...Object.entries(env).map(([k, v]) => `${k}=${v}`), ...command];
    return run(prefix, { netns: this.netns });
  }

  /** A program of the test's own that ends with the host. */
  spawn(command: readonly [string, ...string[]], env: Record<string, string> = {}): ChildProcess {
    const [program, ...args] = inNamespaces(command, { netns: this.netns });
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    this.#stops.push(async () => endChild(child, 'SIGKILL'));
    return child;
  }

  /** LAN discovery in a process of its own. */
  async tributary(options: LanAgentOptions): Promise<LanAgent> {
    const script = join(import.meta.dirname, 'lan-agent.ts');
    const agent = new LanAgent(this.spawn([process.execPath, script, JSON.stringify(options)]));
    await agent.until('discovery has started', ({ event }) => event === 'started', START_MS);
    return agent;
  }

  /** The `gateway` role, on an API server of its own. */
  async gateway(options: LanGatewayOptions): Promise<LinePrinter<LanGatewayLine>> {
    const script = join(import.meta.dirname, 'lan-gateway.ts');
    const gateway = new LinePrinter<LanGatewayLine>(
      this.spawn([process.execPath, script, JSON.stringify(options)]),
    );
    await gateway.until('the gateway has started', ({ event }) => event === 'started', START_MS);
    return gateway;
  }

  /** Sends raw datagrams to the group, from this address of the host. */
  async send(
    packets: readonly Buffer[],
    options: Partial<Omit<UdpSendOptions, 'packets'>> = {},
  ): Promise<void> {
    const own = this.address();
    const whole = {
      from: own,
      via: own,
      ...options,
      packets: packets.map((bytes) => bytes.toString('base64')),
    };
    const script = join(import.meta.dirname, 'udp-send.ts');
    await run([process.execPath, script], { netns: this.netns, stdin: JSON.stringify(whole) });
  }

  /** avahi-daemon with a bus, folders and a pid file of its own. */
  async avahi(name: string): Promise<Avahi> {
    const path = (file: string): string => join(this.#directory, file);
    const bus = `unix:path=${path('bus')}`;
    writeFileSync(path('bus.conf'), BUS_CONF.replace('ADDRESS', bus));
    writeFileSync(path('avahi.conf'), AVAHI_CONF.replace('NAME', name));
    const record: DaemonRecord = { runDirectory: this.#directory, starting: noop, started: noop };
    const dbus = Daemon.start(
      {
        name: 'dbus',
        command: ['dbus-daemon', '--nofork', '--nopidfile', `--config-file=${path('bus.conf')}`],
        logFile: path('dbus.log'),
        netns: this.netns,
      },
      record,
    );
    this.#stops.push(async () => dbus.terminate());
    await dbus.waitFor('its socket', () => existsSync(path('bus')), { timeoutMs: START_MS });
    const start = [
      'mkdir -p /run/avahi-daemon && mount -t tmpfs tmpfs /run/avahi-daemon && mount -t tmpfs tmpfs /etc/avahi/services',
      `exec avahi-daemon --no-drop-root --no-chroot --no-rlimits -f ${path('avahi.conf')}`,
    ].join(' && ');
    const daemon = Daemon.start(
      {
        name: 'avahi',
        command: ['unshare', '--mount', 'sh', '-c', start],
        logFile: path('avahi.log'),
        netns: this.netns,
        env: { DBUS_SYSTEM_BUS_ADDRESS: bus },
      },
      record,
    );
    this.#stops.push(async () => daemon.terminate());
    await daemon.waitFor('its start', () => daemon.tail(100).includes('Server startup complete'), {
      timeoutMs: START_MS,
    });
    return new Avahi(this, bus, daemon);
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.toReversed()) await stop();
    this.#stops.length = 0;
  }
}

/** One line of `avahi-browse -p`. */
export interface AvahiService {
  interface: string;
  family: 'IPv4' | 'IPv6';
  name: string;
  host: string;
  address: string;
  port: number;
  txt: string[];
}

export class Avahi {
  readonly daemon: Daemon;
  readonly #host: LanHost;
  readonly #env: Record<string, string>;

  constructor(host: LanHost, bus: string, daemon: Daemon) {
    this.#host = host;
    this.#env = { DBUS_SYSTEM_BUS_ADDRESS: bus, LC_ALL: 'C.UTF-8' };
    this.daemon = daemon;
  }

  /** What it finds of our type, resolved. */
  async browse(): Promise<AvahiService[]> {
    const printed = await this.#host.run(['avahi-browse', '-rpt', '_tributary._tcp'], this.#env);
    return printed.split('\n').flatMap((line) => {
      const [sign, link = '', family, name = '', , , host = '', address = '', port, txt = ''] =
        line.split(';');
      if (sign !== '=') return [];
      const strings = [...txt.matchAll(/"([^"]*)"/g)].map(([, text = '']) => text);
      return [
        {
          interface: link,
          family: family as 'IPv4',
          name: plain(name),
          host,
          address,
          port: Number(port),
          txt: strings,
        },
      ];
    });
  }

  /** Follows what comes (`+`) and goes (`-`) of our type, with the time of each. */
  watch(): { sign: string; name: string; family: string; at: number }[] {
    const seen: ReturnType<Avahi['watch']> = [];
    // Without a terminal it would buffer its output.
    const child = this.#host.spawn(['stdbuf', '-oL', 'avahi-browse', '-p', '_tributary._tcp'], this.#env);
    if (child.stdout === null) throw new Error('avahi-browse has no standard output');
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [sign = '', , family = '', name = ''] = line.split(';');
      seen.push({ sign, name: plain(name), family, at: Date.now() });
    });
    return seen;
  }

  /** The address that it has for a host name. */
  async resolve(family: 4 | 6, name: string): Promise<string> {
    const printed = await this.#host.run(['avahi-resolve', `-${family}`, '-n', name], this.#env);
    return printed.trim().split('\t')[1] ?? '';
  }

  /** Publishes a service until the returned function is called. */
  async publish(name: string, port: number, txt: readonly string[]): Promise<() => Promise<void>> {
    const child = this.#host.spawn(
      ['avahi-publish', '-s', name, '_tributary._tcp', `${port}`, ...txt],
      this.#env,
    );
    let said = '';
    child.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await eventually(`avahi publishes ${name}`, () => said.includes('Established'), START_MS);
    return async () => endChild(child, 'SIGTERM');
  }
}

/** Within labels, avahi writes characters other than letters and digits as decimal numbers. */
const plain = (name: string): string =>
  name.replaceAll(/\\(\d{3})/g, (_, code: string) => String.fromCharCode(Number(code)));

/** A program that prints lines of JSON. */
export class LinePrinter<Line extends { event: string }> {
  readonly lines: Line[] = [];
  readonly child: ChildProcess;
  #log = '';

  constructor(child: ChildProcess) {
    this.child = child;
    if (child.stdout === null) throw new Error('the agent has no standard output');
    createInterface({ input: child.stdout }).on('line', (line) => this.lines.push(JSON.parse(line) as Line));
    child.stderr?.on('data', (bytes: Buffer) => (this.#log += bytes.toString()));
  }

  get log(): string {
    return this.#log;
  }

  async until(what: string, test: (line: Line) => boolean, deadlineMs: number = SOON_MS): Promise<Line> {
    let found: Line | undefined;
    const look = (): boolean => (found = this.lines.findLast(test)) !== undefined;
    try {
      await eventually(what, look, deadlineMs);
    } catch (cause) {
      throw new Error(`${what}: not seen in ${JSON.stringify(this.lines)}\n${this.#log}`, { cause });
    }
    return found as Line;
  }

  /** Its memory. */
  get rssMib(): number {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  /** Writes a line to its standard input. */
  tell(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  async terminate(): Promise<void> {
    await endChild(this.child, 'SIGTERM');
  }

  async kill(): Promise<void> {
    await endChild(this.child, 'SIGKILL');
  }
}

/** A process of lan-agent.ts. */
export class LanAgent extends LinePrinter<LanAgentLine> {
  /** What it last said about a cluster; undefined if it has not seen the cluster, or if the cluster is gone. */
  sees(id: string): Extract<LanAgentLine, { event: 'seen' }> | undefined {
    const last = this.lines.findLast((line) => 'id' in line && line.id === id);
    return last?.event === 'seen' ? last : undefined;
  }
}

/** The line by which a LanAgent says that it sees this cluster. */
export const isSeen =
  (id: string) =>
  (line: LanAgentLine): boolean =>
    line.event === 'seen' && line.id === id;

async function endChild(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('exit', () => resolve());
  child.kill(signal);
  await promise;
}

const noop = (): void => undefined;

const BUS_CONF = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>ADDRESS</listen>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>
`;

const AVAHI_CONF = `[server]
host-name=NAME
use-ipv4=yes
use-ipv6=yes
[wide-area]
enable-wide-area=no
[publish]
publish-hinfo=no
publish-workstation=no
[reflector]
enable-reflector=no
`;
