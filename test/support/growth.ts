/** Some kernels count processor time in steps of 4 ms or more, so a cost is measured over many steps. */
const LEAST_MICROSECONDS = 60_000;
const ROUNDS = 3;

/**
 * Measures how cost grows with size, for tests of costs that must stay linear. It measures the processor time of this
 * thread, so that other programs do not matter, and both sizes alternately; the smallest value counts, the rest is
 * noise.
 */
export async function growth(
  { small, large }: { readonly small: number; readonly large: number },
  work: (size: number) => unknown,
): Promise<number> {
  let [leastSmall, leastLarge] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    leastSmall = Math.min(leastSmall, await costOf(() => work(small)));
    leastLarge = Math.min(leastLarge, await costOf(() => work(large)));
  }
  return leastLarge / leastSmall;
}

/** Microseconds of one run, measured over as many runs as necessary. */
async function costOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  for (let runs = 1; ; runs++) {
    await work();
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= LEAST_MICROSECONDS) return (user + system) / runs;
  }
}

/** The geometric mean of linear and quadratic growth. */
export const growthLimit = ({ small, large }: { readonly small: number; readonly large: number }): number =>
  (large / small) ** 1.5;
