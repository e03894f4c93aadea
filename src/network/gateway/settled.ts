import type { HostReport } from '../host/host-config.ts';

/**
 * A tunnel's program that is started again is back within this time, milliseconds. A network that goes on meanwhile, or
 * is back before anybody could act, is not to be called broken: every offloaded pod would be written twice.
 */
const PATIENCE_MS = 3000;

/** What is to be said of the host: that all is well at once, what is wrong when it lasts. */
export class SettledReport {
  #settled: HostReport | undefined;
  #last: HostReport | undefined;
  /** Monotonic. */
  #wrongSince: number | undefined;

  learn(report: HostReport, now: number): void {
    this.#last = report;
    if (report.problems.length > 0) this.#wrongSince ??= now;
    else this.#wrongSince = undefined;
  }

  /** Undefined: nothing can be said yet. */
  at(now: number): HostReport | undefined {
    if (now - (this.#wrongSince ?? -Infinity) >= PATIENCE_MS) this.#settled = this.#last;
    return this.#settled;
  }
}
