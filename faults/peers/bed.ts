/** A pair of clusters that peer, tether and part again, and an auditor that watches both. */
import { join } from 'node:path';

import { Lab } from '../../lab/lab.ts';
import { AuditorProcess, type Violation } from '../auditor-process.ts';
import type { RunResult, Worker } from '../campaign.ts';
import { type KillPlan, killsOf, nameOf, type Plans } from '../plan.ts';
import { compileProgram, type Edit } from '../../lab/compiled-program.ts';
import { killAtWrite } from '../proxy/kill-at-write.ts';
import { City } from './city.ts';
import { OPERATIONS, type Operation, Pair } from './pair.ts';

export interface PeersBedOptions {
  /** Of the lab. */
  readonly name: string;
  readonly checkout?: string | undefined;
  readonly edits?: readonly Edit[] | undefined;
  readonly progress: (line: string) => void;
}

const CITIES = ['rome', 'milan'] as const;
const BOUNDS = { settleSeconds: 90, quietSeconds: 2 } as const;

export class PeersBed {
  readonly lab: Lab;
  readonly #pair: Pair;
  readonly #auditor: AuditorProcess;

  private constructor(lab: Lab, pair: Pair, auditor: AuditorProcess) {
    this.lab = lab;
    this.#pair = pair;
    this.#auditor = auditor;
  }

  static async up({ name, checkout, edits, progress }: PeersBedOptions): Promise<PeersBed> {
    const lab = await Lab.fresh({
      name,
      clusters: CITIES.map((city) => ({ name: city, workload: 'kwok', podPlayers: 1 })),
      progress,
    });
    try {
      const program = join(lab.spec.dataDirectory, 'program');
      compileProgram(program, {
        ...(checkout !== undefined && { checkout }),
        ...(edits !== undefined && { edits }),
      });
      const processes = new Processes();
      const open = async (city: string): Promise<City> =>
        City.open(lab, city, { checkout: program, onStart: processes.onStart, onKill: processes.onKill });
      const pair = new Pair(await open('rome'), await open('milan'));
      await pair.furnish();
      progress('rome and milan know each other');
      const auditor = auditorOf(lab, pair);
      await processes.tell(auditor);
      return new PeersBed(lab, pair, auditor);
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await this.#auditor.stop();
    for (const { proxy } of this.#pair.cities) await proxy.stop();
    await this.lab.down();
  }

  get worker(): Worker {
    return async (plan) => {
      if (plan.kind !== 'kill') throw new Error('there are no random runs of peerings');
      return this.#run(plan);
    };
  }

  async #run(plan: KillPlan): Promise<RunResult> {
    const began = performance.now();
    const pair = this.#pair;
    const city = pair.cities.find(({ name }) => name === plan.side);
    if (city === undefined) throw new Error(`there is no side ${plan.side}: ${CITIES.join(', ')}`);
    const operation = operationOf(plan.operation);
    await this.#auditor.begin(nameOf(plan));
    const restarted = killAtWrite(city.proxy, plan, async () => city.restart());
    const wrong: Violation[] = [];
    try {
      await pair.begin(operation);
      await pair.done(operation);
    } catch (error) {
      wrong.push({ invariant: 'I7', what: `${String(error)}\n${logs(pair)}` });
    }
    const reached = await restarted();
    city.proxy.calm();
    const violations = [...(await this.#auditor.settle()), ...wrong];
    try {
      await pair.tidy(operation);
    } catch (error) {
      violations.push({ invariant: 'I7', what: `${String(error)}\n${logs(pair)}` });
    }
    const seconds = (performance.now() - began) / 1000;
    const kills = reached ? 1 : 0;
    return { name: nameOf(plan), violations, kills, faults: new Map([['kill', kills]]), reached, seconds };
  }
}

/** `first` and `stride`: at which writes the program is killed. */
export function peerPlans({ seed, stride }: { seed: number; stride: number }): Plans[] {
  return (['before', 'after'] as const).flatMap((when, turn) =>
    CITIES.map((side, index) => {
      const first = 1 + ((seed + 2 * index + turn) % stride);
      return killsOf({ cycle: OPERATIONS, side, when, stride, first, isChained: true });
    }),
  );
}

function operationOf(name: string): Operation {
  const found = OPERATIONS.find((operation) => operation === name);
  if (found === undefined)
    throw new Error(`there is no operation ${name} of peers: ${OPERATIONS.join(', ')}`);
  return found;
}

const logs = ({ cities }: Pair): string => cities.map((city) => `${city.name}:\n${city.tail()}`).join('\n');

/** Namespaces of people, which are offloaded while rome is tethered. */
const NAMESPACES = ['shop', 'default'] as const;
/** Of a ClusterID in the names of tenants (docs/namespaces.md). */
const SHORT_ID = 8;

function auditorOf(lab: Lab, { rome, milan }: Pair): AuditorProcess {
  const [own, peer] = [rome.id.slice(0, SHORT_ID), milan.id.slice(0, SHORT_ID)];
  const provider = {
    name: 'milan',
    kubeconfig: milan.cluster.kubeconfig,
    node: 'milan',
    namespaces: NAMESPACES.map((home) => ({ home, tenant: `${home}-${own}` })),
  };
  const config = {
    home: { kubeconfig: rome.cluster.kubeconfig },
    providers: [provider],
    canaries: [],
    logs: [rome.logFile, milan.logFile],
    hosts: [rome, milan].map(({ cluster }) => cluster.node().netns),
    bounds: BOUNDS,
    // What milan places back onto rome while that is tethered, and the nodes that people cordon here.
    ignoreNamespaces: NAMESPACES.map((home) => `${home}-${own}-${peer}`),
    ignoreNodes: ['rome', 'milan', 'rome-1', 'milan-1'],
  };
  return AuditorProcess.start(config, join(lab.spec.dataDirectory, 'audit.json'), lab.spec);
}

/** Who runs, for an auditor that comes later. One that does not hear it fails at the next command. */
class Processes {
  readonly #running = new Set<number>();
  #auditor: AuditorProcess | undefined;

  readonly onStart = (pid: number): void => {
    this.#running.add(pid);
    this.#auditor?.watchProcess(pid).catch(() => undefined);
  };

  readonly onKill = (pid: number): void => {
    this.#running.delete(pid);
    this.#auditor?.killed(pid).catch(() => undefined);
  };

  async tell(auditor: AuditorProcess): Promise<void> {
    this.#auditor = auditor;
    for (const pid of this.#running) await auditor.watchProcess(pid);
  }
}
