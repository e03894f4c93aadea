/**
 * How cost grows with size, for tests of what must stay linear. Measured is the processor time of this thread, so that what
 * other programs do does not count, and both sizes in turns, of which the least counts: the rest is noise.
 */
export async function growth(
  sizes: { readonly small: number; readonly large: number },
  work: (size: number) => unknown,
  rounds = 3,
): Promise<number> {
  const least = { small: Infinity, large: Infinity };
  for (let round = 0; round < rounds; round++) {
    for (const name of ['small', 'large'] as const) {
      const before = process.threadCpuUsage();
      await work(sizes[name]);
      const { user, system } = process.threadCpuUsage(before);
      least[name] = Math.min(least[name], user + system);
    }
  }
  return least.large / least.small;
}

/** Between the growth of what is linear and of what is quadratic, as far from the one as from the other, in factors. */
export const growthLimit = ({ small, large }: { readonly small: number; readonly large: number }): number =>
  (large / small) ** 1.5;
