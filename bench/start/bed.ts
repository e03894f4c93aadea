/** Two clusters with networks of their own; the roles of the first are started again and again. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { binaries } from '../../lab/binaries.ts';
import { compileProgram, imageFlags, runToEnd } from '../../lab/compiled-program.ts';
import type { Daemon } from '../../lab/daemon.ts';
import { Lab } from '../../lab/lab.ts';
import { PeerProcess } from '../../lab/peer-process.ts';
import { virtualNodeOf } from '../access/objects.ts';
import { cpuMs } from '../frame/process-figures.ts';
import { peerArguments } from '../pods/peer-program.ts';

/** In this order: the later ones need what the first one writes. */
export const ROLES = ['cluster', 'gateway', 'node', 'peer'] as const;
export type StartedRole = (typeof ROLES)[number];

export interface Started {
  readonly ms: number;
  /** User and system, of all threads. */
  readonly cpuMs: number;
}

interface StartOptions {
  /** The first of the ports for /readyz. */
  readonly opsPort: number;
  readonly before: string | undefined;
  readonly nodeFlags: readonly string[];
  readonly progress: (line: string) => void;
}

const NODE = 'lent';
const TENANT = 'home-lent';
const TIMEOUT_MS = 60_000;
const POLL_MS = 5;

export class StartBed {
  /** Command, and what is put behind the names of its roles. */
  readonly programs: readonly (readonly [command: readonly string[], suffix: string])[];
  readonly #lab: Lab;
  readonly #options: StartOptions;
  readonly #path: string;
  #running: Daemon[] = [];

  private constructor(
    lab: Lab,
    parts: { programs: StartBed['programs']; options: StartOptions; path: string },
  ) {
    this.#lab = lab;
    this.programs = parts.programs;
    this.#options = parts.options;
    this.#path = parts.path;
  }

  static async up(options: StartOptions): Promise<StartBed> {
    const { before, nodeFlags, progress } = options;
    const clusters = ['home', 'foreign'].map((name) => ({
      name,
      workload: 'kwok' as const,
      metricsServer: false,
    }));
    const lab = await Lab.fresh({ name: 'bench-start', clusters, progress });
    try {
      const folder = join(lab.spec.dataDirectory, 'program');
      const main = compileProgram(join(folder, 'agent'));
      const own = [...imageFlags(), ...nodeFlags, main];
      const other =
        before === undefined
          ? []
          : [
              [
                [...imageFlags(before), compileProgram(join(folder, 'before'), { checkout: before })],
                ', before',
              ] as const,
            ];
      const programs = await binaries(progress, ['wireguard-go', 'kubectl']);
      // As in the image: wireguard-go is on the path.
      const path = `${join(programs['wireguard-go'], '..')}:${process.env['PATH'] ?? ''}`;
      const bed = new StartBed(lab, { programs: [[own, ''], ...other], options, path });
      await PeerProcess.prepare(lab.cluster('home'));
      bed.#furnish(main, programs.kubectl);
      return bed;
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await this.stopAll();
    await this.#lab.down();
  }

  /** From its start to its end. */
  async bare(): Promise<Started> {
    const began = performance.now();
    const script =
      'const { user, system } = process.cpuUsage(); process.stdout.write(String((user + system) / 1000))';
    const printed = execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' });
    return Promise.resolve({ ms: performance.now() - began, cpuMs: Number(printed) });
  }

  /** It goes on to run. */
  async start(role: StartedRole, program: readonly string[]): Promise<Started> {
    const cluster = this.#lab.cluster('home');
    const { address } = cluster.node();
    const port = this.#options.opsPort + ROLES.indexOf(role);
    const args = await this.#arguments(role, port);
    const began = performance.now();
    const daemon = cluster.node().spawn(role, [process.execPath, ...program, ...args], { PATH: this.#path });
    this.#running.push(daemon);
    const url = `http://${address}:${port}/readyz`;
    let said = '';
    while (said !== 'ok') {
      if (daemon.id === undefined) throw daemon.failure('ended before it was Ready');
      if (performance.now() - began > TIMEOUT_MS) throw daemon.failure(`is not Ready: ${said}`);
      await sleep(POLL_MS);
      const answer = await fetch(url).catch(() => undefined);
      said = answer?.ok === true ? 'ok' : ((await answer?.text()) ?? 'no answer');
    }
    return { ms: performance.now() - began, cpuMs: cpuMs(daemon.id?.pid ?? 0) };
  }

  async stopAll(): Promise<void> {
    const all = this.#running;
    this.#running = [];
    // In reverse, and not killed: they give their leases back, and profiles are written.
    for (const daemon of all.toReversed()) await daemon.terminate(10_000);
  }

  async #arguments(role: StartedRole, port: number): Promise<string[]> {
    const cluster = this.#lab.cluster('home');
    const { address, name } = cluster.node();
    if (role === 'peer') {
      const folder = join(this.#lab.spec.dataDirectory, 'peer');
      const { args, opsPort } = await peerArguments(cluster, { virtualNode: NODE, folder, address });
      return args.map((one) => (one === String(opsPort) ? String(port) : one));
    }
    const options: Record<string, string> = {
      kubeconfig: cluster.kubeconfig,
      'ops-port': String(port),
      ...(role === 'cluster'
        ? { 'cluster-name': 'home', advertise: `${address}:7443`, 'agent-image': 'none' }
        : { 'node-name': name }),
      'system-namespace': 'tributary-system',
    };
    return ['run', role, ...Object.entries(options).flatMap(([option, value]) => [`--${option}`, value])];
  }

  #furnish(main: string, kubectl: string): void {
    const { home, foreign } = {
      home: this.#lab.cluster('home').kubeconfig,
      foreign: this.#lab.cluster('foreign').kubeconfig,
    };
    const apply = (kubeconfig: string, objects: string): void => {
      runToEnd(kubectl, ['--kubeconfig', kubeconfig, 'apply', '--server-side', '-f', '-'], objects);
    };
    const tenant = ['--peer', 'home', '--namespace', TENANT];
    apply(foreign, runToEnd(process.execPath, [main, 'tenant', ...tenant, '--quota', 'cpu=4,pods=9']));
    const issue = ['tenant-kubeconfig', ...tenant, '--kubeconfig', foreign];
    const kubeconfig = runToEnd(process.execPath, [main, ...issue]);
    apply(home, JSON.stringify(virtualNodeOf(NODE, TENANT, kubeconfig)));
  }
}
