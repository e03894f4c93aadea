/** The progress of a build as text: a bar, and an estimate of the time that is left. */

/** Linking a program takes about as long as compiling so many packages (measured with those of Kubernetes). */
const PACKAGES_PER_PROGRAM = 60;
const WIDTH = 20;

export interface BuildProgressOptions {
  /** Packages to be compiled. */
  readonly packages: number;
  /** Programs to be linked. */
  readonly programs: number;
  /** Milliseconds that only go forward. */
  readonly clock: () => number;
}

export class BuildProgress {
  readonly #options: BuildProgressOptions;
  readonly #began: number;
  #compiled = 0;

  constructor(options: BuildProgressOptions) {
    this.#options = options;
    this.#began = options.clock();
  }

  /** Counts one more package. */
  compiled(): void {
    this.#compiled += 1;
  }

  seconds(): string {
    return (this.#elapsed() / 1000).toFixed(0);
  }

  /** As in `[######--------------] 30 %, 1 min 5 s so far, about 3 min left`. */
  line(linked: number): string {
    const { packages, programs } = this.#options;
    const all = packages + programs * PACKAGES_PER_PROGRAM;
    const share = Math.min(0.99, (Math.min(this.#compiled, packages) + linked * PACKAGES_PER_PROGRAM) / all);
    const bar = '#'.repeat(Math.floor(share * WIDTH)).padEnd(WIDTH, '-');
    const left = share > 0.03 ? `, about ${span((this.#elapsed() / share) * (1 - share))} left` : '';
    return `[${bar}] ${Math.floor(share * 100)} %, ${span(this.#elapsed())} so far${left}`;
  }

  #elapsed(): number {
    return this.#options.clock() - this.#began;
  }
}

/** As in `40 s` or `2 min 5 s`. */
function span(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
