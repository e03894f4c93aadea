/** Some kernels count processor time in steps of 4 ms or more, so a cost is measured over many steps. */
const LEAST_MICROSECONDS = 60_000;
const ROUNDS = 3;

/**
 * A work of 64 times the size. If it costs in proportion, each unit of the large one costs as much as one of the small one; if
 * its cost grows with the square, up to 64 times as much. So far apart, because what is large does not fit into the caches of a
 * processor: beside other programs that use them, a unit was seen to cost four times as much.
 */
const FACTOR = 64;
/** What a unit of the large work may cost, in units of the small one: the geometric mean of the two. */
const MOST = Math.sqrt(FACTOR);

/**
 * Whether the cost of a work grows no more than in proportion to its size. It measures the processor time of this thread, and
 * both sizes alternately; the smallest value counts, the rest is noise. Returns the cost of a unit of the large work in units
 * of the small one, and how much it may be.
 */
export async function growth(
  small: number,
  work: (size: number) => unknown,
): Promise<{ unitCost: number; most: number }> {
  let [leastSmall, leastLarge] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    leastSmall = Math.min(leastSmall, await costOf(() => work(small)));
    leastLarge = Math.min(leastLarge, await costOf(() => work(small * FACTOR)));
  }
  return { unitCost: leastLarge / leastSmall / FACTOR, most: MOST };
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
