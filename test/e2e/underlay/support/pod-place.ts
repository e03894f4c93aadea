/** A running pod as seen from its node: programs of this machine run in its network namespace. */
import { join } from 'node:path';

import { Program, type Ended } from '../../../../lab/demo/program.ts';
import type { Node } from '../../../../lab/node.ts';
import { run } from '../../../../lab/run.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import type { DatagramsReport } from './datagrams.ts';

export const ECHO_PORT = 9000;
const LONG_MS = 900_000;
/** Of a transfer. Enough to see whether it goes on; the two cores have more to do. */
const RATE = '40M';

export class PodPlace {
  readonly name: string;
  readonly address: string;
  readonly node: string;
  readonly #pid: string;

  private constructor(pod: Pod, pid: string) {
    this.name = pod.metadata.name;
    this.address = pod.status?.podIP ?? '';
    this.node = pod.spec?.nodeName ?? '';
    this.#pid = pid;
  }

  static async find(pod: Pod, nodes: readonly Node[]): Promise<PodPlace> {
    const node = nodes.find(({ name }) => name === pod.spec?.nodeName);
    if (node === undefined) throw new Error(`${pod.metadata.name}: no node ${pod.spec?.nodeName}`);
    const id = pod.status?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
    const tasks = await run(['ctr', '-a', node.containerdSocket, '-n', 'k8s.io', 'tasks', 'ls']);
    const pid = new RegExp(`^${id}\\s+(\\d+)\\s`, 'm').exec(tasks)?.[1];
    if (id === '' || pid === undefined) throw new Error(`${pod.metadata.name}: no process of ${id}`);
    return new PodPlace(pod, pid);
  }

  start(command: readonly string[], options: { keepStdin?: boolean; timeoutMs?: number } = {}): Program {
    return Program.start(this.#entered(command), options);
  }

  async run(command: readonly string[], timeoutMs = 60_000): Promise<Ended> {
    return this.start(command, { timeoutMs }).ended;
  }

  /** Answers numbered datagrams until it is stopped. */
  async echo(): Promise<Program> {
    const program = this.#datagrams('echo', String(ECHO_PORT));
    await program.waitFor(/ready/);
    return program;
  }

  /** Numbered datagrams to that address, from now on. */
  send(address: string): Datagrams {
    return new Datagrams(this.#datagrams('send', address, String(ECHO_PORT)));
  }

  /** A TCP transfer from this pod to that one; resolves to what has arrived there. */
  iperf(to: PodPlace, seconds: number, port: number): () => Promise<Interval[]> {
    const limits = { timeoutMs: seconds * 1000 + 60_000 };
    const server = to.start(['iperf3', '-s', '-1', '-J', '-i', '0.5', '-p', String(port)], limits);
    // With JSON output it prints nothing before the end, so the client tries until the server listens.
    const attempt = `iperf3 -c ${to.address} -p ${port} -b ${RATE} -t ${seconds} -J`;
    const client = this.start(
      ['sh', '-c', `for i in $(seq 50); do ${attempt} | grep -q refused || exit 0; sleep 0.1; done; exit 1`],
      limits,
    );
    return async () => {
      const [{ stdout }] = await Promise.all([server.ended, client.ended]);
      return intervalsOf(stdout);
    };
  }

  #datagrams(...args: string[]): Program {
    const script = join(import.meta.dirname, 'datagrams.ts');
    return this.start([process.execPath, script, ...args], { keepStdin: true, timeoutMs: LONG_MS });
  }

  #entered(command: readonly string[]): [string, ...string[]] {
    return ['nsenter', `--net=/proc/${this.#pid}/ns/net`, '--', ...command];
  }
}

/** Numbered datagrams under way. */
export class Datagrams {
  readonly #program: Program;
  #asked = 0;

  constructor(program: Program) {
    this.#program = program;
  }

  /** The counts since the last mark. */
  async look(): Promise<DatagramsReport> {
    return this.#ask('look');
  }

  /** The counts since the last mark; then begins a new count. */
  async mark(): Promise<DatagramsReport> {
    return this.#ask('mark');
  }

  async stop(): Promise<void> {
    await this.#program.stop();
  }

  async #ask(what: string): Promise<DatagramsReport> {
    this.#asked += 1;
    this.#program.write(`${what}\n`);
    const lines = await this.#program.waitFor(new RegExp(`^(?:.*\\n){${this.#asked}}`));
    return JSON.parse(lines[0].trim().split('\n').at(-1) ?? '') as DatagramsReport;
  }
}

/** Bytes that came in each half second of a transfer. */
export interface Interval {
  /** Seconds since the beginning. */
  start: number;
  end: number;
  bytes: number;
}

function intervalsOf(json: string): Interval[] {
  const { intervals } = JSON.parse(json) as { intervals?: { sum: Interval }[] };
  return (intervals ?? []).map(({ sum: { start, end, bytes } }) => ({ start, end, bytes }));
}

export const mbits = (intervals: readonly Interval[]): string =>
  intervals.map(({ start, end, bytes }) => Math.round((bytes * 8) / 1e6 / (end - start))).join(' ');

/** Seconds until a twentieth of the earlier rate is reached again for at least two seconds. Infinity: never. */
export function resumedAfter(intervals: readonly Interval[], at: number): number {
  const before = intervals.filter(({ start, end }) => start >= 1 && end <= at).map(({ bytes }) => bytes);
  const usual = before.toSorted((a, b) => a - b)[Math.floor(before.length / 2)] ?? Infinity;
  const after = intervals.filter(({ start }) => start >= at);
  const back = after.findIndex((_, i) =>
    [0, 1, 2, 3].every((next) => (after[i + next]?.bytes ?? 0) >= usual / 20),
  );
  return back === -1 ? Infinity : Math.round(((after[back]?.start ?? 0) - at) * 10) / 10;
}
