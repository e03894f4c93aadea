/** Hosts on network segments of their own, in network namespaces; nothing of them reaches the machine's network. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Daemon, type DaemonRecord, inNamespaces } from '../../../lab/daemon.ts';
import { run, type RunOptions } from '../../../lab/run.ts';
import { Avahi } from './avahi.ts';
import type { LanAgentOptions } from './lan-agent.ts';
import type { LanGatewayLine, LanGatewayOptions } from './lan-gateway.ts';
import { endChild, LanAgent, LinePrinter, SOON_MS } from './line-printer.ts';
import type { UdpSendOptions } from './udp-send.ts';

const AVAHI = [
  '/usr/sbin/avahi-daemon',
  '/usr/bin/avahi-browse',
  '/usr/bin/avahi-publish',
  '/usr/bin/dbus-daemon',
];

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

  async run(
    command: readonly [string, ...string[]],
    env?: Record<string, string>,
    options: Pick<RunOptions, 'timeoutMs' | 'signal'> = {},
  ): Promise<string> {
    const prefix: [string, ...string[]] =
      env === undefined
        ? [...command]
        : ['env', ...Object.entries(env).map(([k, v]) => `${k}=${v}`), ...command];
    return run(prefix, { ...options, netns: this.netns });
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
    await agent.until('discovery has started', ({ event }) => event === 'started');
    return agent;
  }

  /** The `gateway` role, on an API server of its own. */
  async gateway(options: LanGatewayOptions): Promise<LinePrinter<LanGatewayLine>> {
    const script = join(import.meta.dirname, 'lan-gateway.ts');
    const gateway = new LinePrinter<LanGatewayLine>(
      this.spawn([process.execPath, script, JSON.stringify(options)]),
    );
    await gateway.until('the gateway has started', ({ event }) => event === 'started');
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
    await dbus.waitFor('its socket', () => existsSync(path('bus')), { timeoutMs: SOON_MS });
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
      timeoutMs: SOON_MS,
    });
    return new Avahi(this, bus, daemon);
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.toReversed()) await stop();
    this.#stops.length = 0;
  }
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
