/** Pods as processes of this machine: their programs are run from outside, in their namespaces. */
import type { Lab } from '../../../../lab/lab.ts';
import type { Node } from '../../../../lab/node.ts';
import { Program, runProgram, type Ended } from '../../../../lab/demo/program.ts';
import type { Pod } from '../../../../src/api/wire.ts';

export class Place {
  readonly name: string;
  /** Its address, as its own cluster sees it. */
  readonly address: string;
  /** The real one. */
  readonly node: Node;
  readonly #pid: number;

  private constructor(facts: { name: string; address: string; node: Node; pid: number }) {
    this.name = facts.name;
    this.address = facts.address;
    this.node = facts.node;
    this.#pid = facts.pid;
  }

  /** Of a Running pod as the cluster has it that it runs in. */
  static async of(lab: Lab, pod: Pod): Promise<Place> {
    const { name } = pod.metadata;
    const id = pod.status?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? 'none';
    for (const node of lab.clusters.flatMap(({ nodes }) => nodes)) {
      const tasks = await node.exec(['ctr', '-a', node.containerdSocket, '-n', 'k8s.io', 'tasks', 'ls']);
      const [, pid] = new RegExp(`^${id} +(\\d+) +RUNNING`, 'm').exec(tasks) ?? [];
      if (pid !== undefined) {
        return new Place({ name, address: pod.status?.podIP ?? '', node, pid: Number(pid) });
      }
    }
    throw new Error(`no node runs container ${id} of pod ${name}`);
  }

  /** Runs a script with the pod's files, names and network. */
  async run(script: string, timeoutMs = 60_000): Promise<Ended> {
    const enter = ['nsenter', '-t', String(this.#pid), '-n', '-m', '-u', '-r', '-w', '--'] as const;
    return runProgram([...enter, '/bin/sh', '-c', script], { timeoutMs, env: { PATH: '/bin' } });
  }

  /** The answer of a web server; empty if there was none within 3 s. */
  async fetch(host: string, path = '/cgi-bin/who'): Promise<string> {
    const { stdout } = await this.run(`timeout 3 wget -qO- http://${host}${path}`);
    // httpd listens on IPv6, too.
    return stdout.trim().replace(/\[::ffff:([\d.]+)\]/, '$1');
  }

  /** Runs a program of the host in the pod's network. */
  start(command: readonly string[], timeoutMs = 60_000): Program {
    return Program.start(['nsenter', '-t', String(this.#pid), '-n', '--', ...command], { timeoutMs });
  }

  /** Counts from now on what others begin: the last packets of a connection from before may still be on their way. */
  async count(): Promise<void> {
    const stdin = `table inet seen
delete table inet seen
table inet seen {
  counter begun {}
  chain arrival {
    type filter hook prerouting priority -400;
    iifname "eth0" tcp flags & (syn | ack) == syn counter name begun
    iifname "eth0" ip protocol { udp, icmp } counter name begun
  }
}
`;
    const command = ['nsenter', '-t', String(this.#pid), '-n', '--', 'nft', '-f', '-'] as const;
    const { code, stderr } = await runProgram([...command], { stdin });
    if (code !== 0) throw new Error(`nft in pod ${this.name}: ${stderr}`);
  }

  /** Packets that have arrived since `count`. */
  async counted(): Promise<number> {
    const { stdout } = await this.start(['nft', 'list', 'table', 'inet', 'seen']).ended;
    const [, packets] = /packets (\d+)/.exec(stdout) ?? [];
    if (packets === undefined) throw new Error(`pod ${this.name} does not count: ${stdout}`);
    return Number(packets);
  }
}
