/** Writes down what the watches of one cluster see. */
import type { ApiReader } from './api-reader.ts';
import type { Absence, ClusterHistory, Observation } from './history.ts';
import { PodWatch } from './pod-watch.ts';
import type { PodView } from './pod-view.ts';
import type { RawObject } from './snapshot-model.ts';
import { now } from './violation.ts';

export class Recorder {
  readonly reader: ApiReader;
  readonly #watches: readonly PodWatch[];
  readonly #lives = new Map<string, Observation[]>();
  #absences: Absence[] = [];
  #isRestored = false;

  /**
   * @param namespaces whose pods are followed
   * @param read is called with each pod as it came
   */
  constructor(reader: ApiReader, namespaces: ReadonlySet<string>, read: (pod: RawObject) => void) {
    this.reader = reader;
    const sink = {
      saw: (pod: PodView, by: Observation['by'], at: number) => this.#write({ at, pod, isGone: false, by }),
      went: (pod: PodView, by: Observation['by'], at: number) => this.#write({ at, pod, isGone: true, by }),
      wasAway: (from: number, to: number, isGap: boolean) => void this.#absences.push({ from, to, isGap }),
      read,
    };
    this.#watches = [...namespaces].map((namespace) => new PodWatch(reader, namespace, sink));
  }

  #write(seen: Observation): void {
    const life = this.#lives.get(seen.pod.uid);
    if (life === undefined) this.#lives.set(seen.pod.uid, [seen]);
    else life.push(seen);
  }

  /** Until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#watches.map(async (watch) => watch.run(signal)));
  }

  /** Why it is not known now what is there; undefined: it is. */
  get problem(): string | undefined {
    return this.#watches.map(({ problem }) => problem).find((problem) => problem !== undefined);
  }

  /**
   * Whether the watches have told all that live reads show.
   *
   * @throws {ReadError}
   */
  async isFresh(): Promise<boolean> {
    const answers = await Promise.all(this.#watches.map(async (watch) => watch.isFresh()));
    return answers.every(Boolean);
  }

  /** Forgets what was; what is there now is where each life begins. */
  begin(): void {
    const at = now();
    this.#lives.clear();
    this.#absences = [];
    this.#isRestored = false;
    for (const pod of this.#watches.flatMap(({ pods }) => pods))
      this.#write({ at, pod, isGone: false, by: 'list' });
  }

  /** The caller has put back the store behind the server. */
  restored(): void {
    this.#isRestored = true;
    for (const watch of this.#watches) watch.readAnew();
  }

  history(): ClusterHistory {
    const current = this.#watches.flatMap(({ lostAt }): Absence[] =>
      lostAt === undefined ? [] : [{ from: lostAt, to: Infinity, isGap: false }],
    );
    return {
      name: this.reader.name,
      lives: this.#lives,
      absences: [...this.#absences, ...current],
      isRestored: this.#isRestored,
    };
  }
}
