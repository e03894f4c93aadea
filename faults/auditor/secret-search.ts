/** Looks for secret values in whatever is read (I8). */
import { canariesIn, type Canary } from './checks/secrets.ts';
import { argumentsWith, canariesInFile } from './host-reader.ts';
import type { RawObject } from './snapshot-model.ts';
import { timeText, type Unjudged, type Violation, now } from './violation.ts';

const EVENTS = /^events(?:\.|$)/u;

export class SecretSearch {
  readonly #canaries: readonly Canary[];
  readonly #logs: readonly string[];
  readonly #found = new Map<string, number>();

  constructor(canaries: readonly Canary[], logs: readonly string[]) {
    this.#canaries = canaries;
    this.#logs = logs;
  }

  begin(): void {
    this.#found.clear();
  }

  /** All of an event; annotations and status, with its conditions, of other objects. Secrets may hold what they hold. */
  readObject(cluster: string, resource: string, { metadata, status, ...rest }: RawObject): void {
    if (this.#canaries.length === 0 || resource === 'secrets') return;
    const { managedFields: _fields, ...event } = metadata;
    const looked = EVENTS.test(resource) ? [event, rest] : [metadata.annotations, status];
    const found = canariesIn(JSON.stringify(looked), this.#canaries);
    const name = `${resource} ${metadata.namespace ?? ''}/${metadata.name}`;
    for (const { number } of found) this.#find(`canary ${number} stands in ${name} in ${cluster}`);
  }

  readProcesses(): void {
    for (const { pid, canary } of argumentsWith(this.#canaries))
      this.#find(`canary ${canary.number} stands in the arguments of process ${pid}`);
  }

  /** Returns why logs could not be read. */
  async readLogs(): Promise<Unjudged[]> {
    const failed: Unjudged[] = [];
    for (const path of this.#logs) {
      try {
        const found = await canariesInFile(path, this.#canaries);
        for (const { number } of found) this.#find(`canary ${number} stands in log ${path}`);
      } catch (error) {
        failed.push({ invariant: 'I8', why: String(error) });
      }
    }
    return failed;
  }

  #find(what: string): void {
    if (!this.#found.has(what)) this.#found.set(what, now());
  }

  violations(): Violation[] {
    return [...this.#found].map(([what, at]) => ({
      invariant: 'I8',
      what: `${what}, seen at ${timeText(at)}`,
    }));
  }
}
