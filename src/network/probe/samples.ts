const RTTS = 10;
const OUTCOMES = 30;

/** The last probes of one peer. */
export class Samples {
  readonly #rtts: number[] = [];
  readonly #lost: boolean[] = [];

  answered(rttMs: number): void {
    this.#rtts.push(rttMs);
    if (this.#rtts.length > RTTS) this.#rtts.shift();
    this.#outcome(false);
  }

  missed(): void {
    this.#outcome(true);
  }

  /** Both directions work, and how fast is not known. */
  heard(): void {
    this.#outcome(false);
  }

  /** Probes that were lost until now do not count: there was no path to lose them. */
  forgetLoss(): void {
    this.#lost.length = 0;
  }

  /** Median; undefined before the first answer. */
  get rttMs(): number | undefined {
    const sorted = this.#rtts.toSorted((a, b) => a - b);
    const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
    return low === undefined || high === undefined ? undefined : (low + high) / 2;
  }

  get lossPercent(): number {
    const lost = this.#lost.filter(Boolean).length;
    return this.#lost.length === 0 ? 0 : (100 * lost) / this.#lost.length;
  }

  #outcome(lost: boolean): void {
    this.#lost.push(lost);
    if (this.#lost.length > OUTCOMES) this.#lost.shift();
  }
}
