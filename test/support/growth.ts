/** Some kernels count processor time in steps of 4 ms or more: a cost is taken over many steps. */
const LEAST_MICROSECONDS = 60_000;
const ROUNDS = 3;

/**
 * How cost grows with size, for tests of what must stay linear. Measured is the processor time of this thread, so that what
 * other programs do does not count, and both sizes in turns, of which the least counts: the rest is noise.
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

/** Microseconds of one run, by as many as it takes to measure. */
async function costOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  for (let runs = 1; ; runs++) {
    await work();
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= LEAST_MICROSECONDS) return (user + system) / runs;
  }
}

/** Between the growth of what is linear and of what is quadratic, as far from the one as from the other, in factors. */
export const growthLimit = ({ small, large }: { readonly small: number; readonly large: number }): number =>
  (large / small) ** 1.5;
