/**
 * Two gateways with wireguard-go, a pod behind each, and in between a path whose MTU can be changed, in network
 * namespaces of their own:
 *
 *     pod a  10.1.0.2 -- gateway a  10.70.1.1 == tunnel == 10.70.2.1  gateway b -- 10.2.0.2  pod b
 *                                   192.168.1.2 -- middle -- 192.168.{2,1}.3
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { binaries } from '../../../lab/binaries.ts';
import { inNamespaces } from '../../../lab/daemon.ts';
import { run } from '../../../lab/run.ts';
import { eventually } from '../../support/eventually.ts';
import { LinePrinter } from '../../support/network/line-printer.ts';
import type { MtuGatewayLine, MtuGatewayOptions } from './mtu-gateway.ts';
import type { MtuStreamLine } from './mtu-stream.ts';

/** `router`: says that fragmentation is needed. `bridge`: drops without a word. */
export type Middle = 'router' | 'bridge';

const PROGRAMS = ['/usr/sbin/ip', '/usr/bin/wg'];

/** Why these tests cannot run here; undefined when they can. */
export function mtuBedProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const missing = [...PROGRAMS, '/dev/net/tun'].find((path) => !existsSync(path));
  return missing === undefined ? undefined : `${missing} is missing`;
}

type Side = 'a' | 'b';
const HOSTS = ['pa', 'ga', 'm', 'gb', 'pb'];
const POD: Readonly<Record<Side, string>> = { a: '10.1.0', b: '10.2.0' };
const OWN: Readonly<Record<Side, string>> = { a: '10.70.1.1', b: '10.70.2.1' };
const other = (side: Side): Side => (side === 'a' ? 'b' : 'a');

export class MtuBed {
  readonly #prefix: string = `mt${process.pid}`;
  readonly #middle: Middle;
  readonly #children: ChildProcess[] = [];

  private constructor(middle: Middle) {
    this.#middle = middle;
  }

  static async up(middle: Middle): Promise<MtuBed> {
    const bed = new MtuBed(middle);
    try {
      await bed.#build();
      return bed;
    } catch (error) {
      await bed.down();
      throw error;
    }
  }

  async #build(): Promise<void> {
    const { 'wireguard-go': program } = await binaries(undefined, ['wireguard-go']);
    for (const host of HOSTS) {
      await run(['ip', 'netns', 'add', this.#netns(host)]);
      await this.#ip(host, 'link set lo up');
      await run(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward'], { netns: this.#netns(host) });
    }
    for (const side of ['a', 'b'] as const) await this.#wire(side);
    if (this.#middle === 'bridge') {
      await this.#ip('m', 'link add name br0 type bridge', 'link set dev br0 up');
      await this.#ip('m', 'link set dev toa master br0', 'link set dev tob master br0');
    } else {
      await this.#ip('m', 'addr add 192.168.1.1/24 dev toa', 'addr add 192.168.2.1/24 dev tob');
    }
    await this.#tunnel(program);
  }

  /** Of the path between the gateways. */
  async setMtu(mtu: number): Promise<void> {
    await this.#ip('m', `link set dev toa mtu ${mtu}`, `link set dev tob mtu ${mtu}`);
  }

  gateway(side: Side): LinePrinter<MtuGatewayLine> {
    const options: MtuGatewayOptions = {
      link: this.#link(side),
      own: OWN[side],
      peer: OWN[other(side)],
      endpoint: this.#endpoint(other(side)),
      view: `${POD[other(side)]}.0/24`,
    };
    return new LinePrinter(this.#node(`g${side}`, 'mtu-gateway.ts', JSON.stringify(options)));
  }

  /** In pod b. */
  server(): LinePrinter<MtuStreamLine> {
    return new LinePrinter(this.#node('pb', 'mtu-stream.ts', 'serve'));
  }

  /** From pod a to pod b. */
  send(): void {
    this.#node('pa', 'mtu-stream.ts', 'send', `${POD.b}.2`);
  }

  async down(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const host of HOSTS) {
      await run(['ip', 'netns', 'del', this.#netns(host)]).catch(() => undefined);
    }
  }

  async #wire(side: Side): Promise<void> {
    const [pod, gateway, middle] = [`p${side}`, `g${side}`, 'm'];
    await this.#ip(
      gateway,
      `link add name pod type veth peer name eth0 netns ${this.#netns(pod)}`,
      `link add name up type veth peer name to${side} netns ${this.#netns(middle)}`,
      // Else a bridge lets batches pass whose packets are too large.
      'link set dev up gso_max_segs 1 up',
      'link set dev pod up',
      `addr add ${POD[side]}.1/24 dev pod`,
      `addr add ${this.#outer(side)}/24 dev up`,
    );
    await this.#ip(middle, `link set dev to${side} up`);
    if (this.#middle === 'router') {
      await this.#ip(gateway, `route add default via 192.168.${side === 'a' ? 1 : 2}.1`);
    }
    await this.#ip(
      pod,
      'link set dev eth0 up',
      `addr add ${POD[side]}.2/24 dev eth0`,
      `route add default via ${POD[side]}.1`,
    );
  }

  async #tunnel(program: string): Promise<void> {
    const keys: Partial<Record<Side, { own: string; public: string }>> = {};
    for (const side of ['a', 'b'] as const) {
      this.#spawn(`g${side}`, ['env', 'LOG_LEVEL=silent', program, '-f', this.#link(side)]);
      const own = (await run(['wg', 'genkey'])).trim();
      keys[side] = { own, public: (await run(['wg', 'pubkey'], { stdin: own })).trim() };
    }
    for (const side of ['a', 'b'] as const) {
      const link = this.#link(side);
      await eventually(`${link} is there`, () => existsSync(`/run/wireguard/${link}.sock`));
      const peer = other(side);
      const configuration = [
        '[Interface]',
        `PrivateKey = ${keys[side]?.own}`,
        'ListenPort = 51820',
        '[Peer]',
        `PublicKey = ${keys[peer]?.public}`,
        `AllowedIPs = ${POD[peer]}.0/24, ${OWN[peer]}/32`,
        `Endpoint = ${this.#endpoint(peer)}`,
      ].join('\n');
      // Node's pipes are sockets, which cannot be opened by name.
      await run(['sh', '-c', `cat | wg setconf ${link} /dev/stdin`], { stdin: `${configuration}\n` });
      await this.#ip(
        `g${side}`,
        `addr add ${OWN[side]}/32 dev ${link}`,
        `link set dev ${link} mtu 1420 up`,
        `route add ${POD[peer]}.0/24 dev ${link} metric 50`,
        `route add ${OWN[peer]}/32 dev ${link} src ${OWN[side]} metric 50`,
      );
    }
  }

  #outer(side: Side): string {
    return `192.168.${side === 'b' && this.#middle === 'router' ? 2 : 1}.${side === 'a' ? 2 : 3}`;
  }

  #endpoint(side: Side): string {
    return `${this.#outer(side)}:51820`;
  }

  /** UAPI sockets are shared by all namespaces of a machine. */
  #link(side: Side): string {
    return `${this.#prefix}${side}`;
  }

  #netns(host: string): string {
    return `${this.#prefix}-${host}`;
  }

  async #ip(host: string, ...lines: string[]): Promise<void> {
    await run(['ip', '-n', this.#netns(host), '-batch', '-'], { stdin: `${lines.join('\n')}\n` });
  }

  #node(host: string, script: string, ...args: string[]): ChildProcess {
    return this.#spawn(host, [process.execPath, join(import.meta.dirname, script), ...args]);
  }

  #spawn(host: string, command: readonly [string, ...string[]]): ChildProcess {
    const [program, ...args] = inNamespaces(command, { netns: this.#netns(host) });
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#children.push(child);
    return child;
  }
}
