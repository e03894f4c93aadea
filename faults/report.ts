/** What a campaign has come to, as text. Pure. */
import type { RunResult } from './campaign.ts';

export class Report {
  #runs = 0;
  #kills = 0;
  /** Runs whose fault nothing has met. */
  #idle = 0;
  readonly #faults = new Map<string, number>();
  readonly #failed: RunResult[] = [];

  add(result: RunResult): void {
    this.#runs++;
    this.#kills += result.kills;
    for (const [kind, count] of result.faults)
      if (count > 0) this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + count);
    if ([...result.faults.values()].every((count) => count === 0)) this.#idle++;
    if (result.violations.length > 0) this.#failed.push(result);
  }

  get runs(): number {
    return this.#runs;
  }

  get failed(): readonly RunResult[] {
    return this.#failed;
  }

  /** Two lines; `seconds`: the whole time. */
  summary(seconds: number): string {
    const faults = [...this.#faults].toSorted((a, b) => b[1] - a[1]);
    const sum = faults.reduce((all, [, count]) => all + count, 0);
    return [
      `${this.#runs} runs, ${this.#kills} kills, ${sum} faults, ${this.#failed.length} runs with violations, in ${Math.round(seconds)} s`,
      `faults: ${faults.map(([kind, count]) => `${count} ${kind}`).join(', ') || 'none'}; ${this.#idle} runs met none`,
    ].join('\n');
  }
}

/** A run that went wrong, with the command that repeats it. */
export function failure(
  { name, violations }: Pick<RunResult, 'name' | 'violations'>,
  repeat: string,
): string {
  const lines = violations.map(({ invariant, what }) => `    ${invariant}: ${what}`);
  return [`FAILED ${name}`, ...lines, `    repeated by: ${repeat}`].join('\n');
}
