/** A transfer between two pods, with numbered probes at the same time, and counts of refused packets. */
import { join } from 'node:path';

import type { Program } from '../../../../lab/demo/program.ts';
import type { Node } from '../../../../lab/node.ts';
import { processesIn } from '../../../../lab/node-processes.ts';
import { until } from '../../../support/e2e/until.ts';
import type { OneNetwork } from './network.ts';
import type { Place } from './pods.ts';
import type { ProbeRun } from './udp-probes.ts';

const IPERF_PORT = 5201;
const PROBES_PORT = 5202;
/** About eight seconds. */
const PROBES = 1_500;
/** Leaves the probes most of the two cores that everything here shares. */
const RATE = '20M';
/** As long as a test may take. */
const MOST_MS = 300_000;
const probes = join(import.meta.dirname, 'udp-probes.ts');

export class Load {
  readonly #programs: { readonly server: Program; readonly echo: Program; readonly client: Program };
  readonly #from: Place;
  readonly #host: string;

  private constructor(
    from: Place,
    host: string,
    programs: { server: Program; echo: Program; client: Program },
  ) {
    this.#from = from;
    this.#host = host;
    this.#programs = programs;
  }

  /** `host`: the address of `to` as `from` sees it; `gateways`: where the tunnel between them ends. */
  static async start(from: Place, to: Place, host: string, gateways: readonly Node[]): Promise<Load> {
    const server = to.start(['iperf3', '--server', '--forceflush', '-p', String(IPERF_PORT)], MOST_MS);
    const echo = to.start([...FIRST, process.execPath, probes, 'echo', String(PROBES_PORT)], MOST_MS);
    await Promise.all([server.waitFor(/listening/), echo.waitFor(/listening/)]);
    const client = from.start(
      [
        'iperf3',
        '--client',
        host,
        '-p',
        String(IPERF_PORT),
        '-b',
        RATE,
        '-t',
        String(MOST_MS / 1000),
        '--forceflush',
        '-f',
        'm',
      ],
      MOST_MS,
    );
    const load = new Load(from, host, { server, echo, client });
    try {
      await putFirst(gateways);
      await load.running();
      return load;
    } catch (error) {
      await load[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Resolves when another second of the transfer is over. */
  async running(): Promise<void> {
    const count = (): number => this.#programs.client.stdout.split('bits/sec').length;
    const before = count();
    await until('iperf3 transfers', async () => Promise.resolve(count() > before), {
      seen: async () => Promise.resolve(this.#programs.client.stdout + this.#programs.client.stderr),
    });
  }

  /** Sends probes beside the transfer, and does something when they have begun. */
  async probe(action: () => void = () => undefined): Promise<ProbeRun> {
    const sender = this.#from.start(
      [...FIRST, process.execPath, probes, 'send', this.#host, String(PROBES_PORT), String(PROBES)],
      MOST_MS,
    );
    await sender.waitFor(/began/);
    await this.running();
    action();
    const { stdout, stderr } = await sender.ended;
    try {
      return JSON.parse(stdout) as ProbeRun;
    } catch {
      throw new Error(`the probes have said: ${stdout}${stderr}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Object.values(this.#programs).map(async (program) => program.stop()));
  }

  /** The slowest and the fastest second of the transfer so far. */
  rates(): string {
    const rates = [...this.#programs.client.stdout.matchAll(/([\d.]+) Mbits\/sec/g)].map(([, rate]) =>
      Number(rate),
    );
    return `${Math.min(...rates)} to ${Math.max(...rates)} Mbit/s`;
  }
}

/** They run with high priority, so that the network is measured, and not the scheduling of processes. */
const FIRST = ['nice', '-n', '-15'];

/** The same for the tunnels' programs, with all their threads. */
async function putFirst(nodes: readonly Node[]): Promise<void> {
  for (const node of nodes) {
    for (const { pid } of processesIn(node.netns, /wireguard-go -f/)) {
      await node.exec(['sh', '-c', `renice -n -15 -p $(ls /proc/${pid}/task)`]);
    }
  }
}

/** Packets that the gateways of all clusters have refused so far. */
export async function refusals(network: OneNetwork): Promise<number> {
  let sum = 0;
  for (const node of network.nodes) {
    const rules = await node.exec(['nft', 'list', 'ruleset']);
    for (const [, packets] of rules.matchAll(
      /counter packets (\d+) bytes \d+ drop comment "(?:t:\w+ )?refused_/g,
    )) {
      sum += Number(packets);
    }
  }
  return sum;
}

/** Counts what comes from tunnels to ports of nodes, and has not been refused on arrival. */
export class WatchedPorts {
  /** Ports of the kubelet and the API server, and a NodePort. */
  static readonly PORTS = [10_250, 6443, 30_743] as const;
  readonly #nodes: readonly Node[];

  private constructor(nodes: readonly Node[]) {
    this.#nodes = nodes;
  }

  static async on(nodes: readonly Node[]): Promise<WatchedPorts> {
    const stdin = `table inet seen
delete table inet seen
table inet seen {
  chain arrival {
    type filter hook prerouting priority -140;
    iifname { "tributary", "tributary-vx" } ct state new tcp dport { ${WatchedPorts.PORTS.join(', ')} } counter
  }
}
`;
    for (const node of nodes) await node.exec(['nft', '-f', '-'], { stdin });
    return new WatchedPorts(nodes);
  }

  async counted(): Promise<number> {
    let sum = 0;
    for (const node of this.#nodes) {
      const table = await node.exec(['nft', 'list', 'table', 'inet', 'seen']);
      sum += Number(/counter packets (\d+)/.exec(table)?.[1]);
    }
    return sum;
  }

  async remove(): Promise<void> {
    for (const node of this.#nodes) await node.exec(['nft', 'delete', 'table', 'inet', 'seen']);
  }
}
