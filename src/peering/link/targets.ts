import { deepEqual } from '../../lib/equality.ts';
import type { DialProblem, DialTarget } from '../ports.ts';
import { DialLoop, type DialLoopOptions } from './dial-loop.ts';
import type { Link, LinkEnd } from './link.ts';

export interface TargetsOptions extends Pick<
  DialLoopOptions,
  'dialer' | 'adopt' | 'clock' | 'random' | 'quiet' | 'times'
> {
  own: () => string;
  link: (clusterID: string) => Link | undefined;
  /** The problem of that target has changed. */
  changed: (target: string) => void;
}

interface Dialled {
  loop: DialLoop;
  /** Names of the targets that want it. */
  names: readonly string[];
  problem: DialProblem | undefined;
}

/** Whom to dial: one loop for each ClusterID, however many targets name it, and one for each target without. */
export class Targets {
  readonly #options: TargetsOptions;
  /** By ClusterID, or `?` and the target's name. */
  readonly #dialled = new Map<string, Dialled>();
  /** By the target's name, where it is never dialled. */
  readonly #never = new Map<string, DialProblem>();
  readonly #ending = new Set<Promise<void>>();
  #chosenHere: ReadonlySet<string> = new Set();
  #started = false;

  constructor(options: TargetsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#started = true;
    for (const { loop } of this.#dialled.values()) loop.start();
  }

  async stop(): Promise<void> {
    this.set([]);
    await Promise.all(this.#ending);
  }

  set(targets: readonly DialTarget[]): void {
    const groups = this.#group(targets);
    this.#chosenHere = new Set(targets.flatMap(({ chosenHere = [] }) => chosenHere));
    for (const [key, { loop }] of this.#dialled) {
      if (groups.has(key)) continue;
      this.#dialled.delete(key);
      const ending = loop.stop().finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
    }
    for (const [key, group] of groups) {
      const dialled = this.#dialled.get(key) ?? this.#make(key, group[0]?.clusterID);
      dialled.names = group.map(({ name }) => name);
      dialled.loop.setEndpoints([...new Set(group.flatMap(({ endpoints }) => endpoints))]);
      if (this.#started) dialled.loop.start();
    }
  }

  /** Somebody other than the peer has named that endpoint. */
  isChosenHere(endpoint: string): boolean {
    return this.#chosenHere.has(endpoint);
  }

  wants(clusterID: string): boolean {
    return this.#dialled.has(clusterID);
  }

  endpoints(clusterID: string): readonly string[] {
    return this.#dialled.get(clusterID)?.loop.endpoints ?? [];
  }

  problem(name: string): DialProblem | undefined {
    const never = this.#never.get(name);
    if (never !== undefined) return never;
    for (const [key, { names, problem }] of this.#dialled) {
      // If there is a link, whoever dialled it, earlier problems are over.
      if (names.includes(name)) return this.#options.link(key) === undefined ? problem : undefined;
    }
    return undefined;
  }

  /** A link to that peer came or went. */
  wake(clusterID: string): void {
    this.#dialled.get(clusterID)?.loop.wake();
  }

  /** The versions do not overlap, whoever dialled. */
  refused(clusterID: string, { reason }: LinkEnd): void {
    this.#setProblem(clusterID, { reason: 'IncompatibleProtocol', message: reason });
  }

  #group(targets: readonly DialTarget[]): Map<string, DialTarget[]> {
    const groups = new Map<string, DialTarget[]>();
    this.#never.clear();
    const own = this.#options.own();
    for (const target of targets) {
      const { name, clusterID } = target;
      if (clusterID === own) {
        const message = `${own} is this cluster itself`;
        this.#never.set(name, { reason: 'WrongIdentity', message, answeredBy: own });
        continue;
      }
      const key = clusterID ?? `?${name}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [target]);
      else group.push(target);
    }
    return groups;
  }

  #make(key: string, clusterID: string | undefined): Dialled {
    const { own, link } = this.#options;
    const loop = new DialLoop({
      ...this.#options,
      clusterID,
      own: own(),
      current: () => (clusterID === undefined ? undefined : link(clusterID)),
      problem: (problem) => this.#setProblem(key, problem),
    });
    const dialled: Dialled = { loop, names: [], problem: undefined };
    this.#dialled.set(key, dialled);
    return dialled;
  }

  #setProblem(key: string, problem: DialProblem | undefined): void {
    const dialled = this.#dialled.get(key);
    if (dialled === undefined || deepEqual(dialled.problem, problem)) return;
    dialled.problem = problem;
    for (const name of dialled.names) this.#options.changed(name);
  }
}
