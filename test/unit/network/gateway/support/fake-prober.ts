import type { Clock } from '../../../../../src/lib/clock.ts';
import type { ProbeResult, ProbeTarget } from '../../../../../src/network/probe/peer-probe.ts';

/** Takes targets, and tells what a test says. */
export class FakeProber {
  targets: readonly ProbeTarget[] = [];
  readonly known: Map<string, ProbeResult> = new Map();
  isCalm = false;
  readonly misses: Set<(clusterID: string) => void> = new Set();
  readonly #clock: Clock;
  readonly #listeners = new Set<(clusterID: string) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  setTargets(targets: readonly ProbeTarget[]): void {
    this.targets = targets;
  }

  results(): ReadonlyMap<string, ProbeResult> {
    return this.known;
  }

  onChange(listener: (clusterID: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onMiss(listener: (clusterID: string) => void): () => void {
    this.misses.add(listener);
    return () => this.misses.delete(listener);
  }

  answer(clusterID: string, result: Partial<ProbeResult> = {}): void {
    const now = this.#clock.now();
    this.known.set(clusterID, {
      alive: true,
      since: now,
      lossPercent: 0,
      rttMs: 1,
      lastAnswerMs: now,
      ...result,
    });
    for (const listener of this.#listeners) listener(clusterID);
  }
}
