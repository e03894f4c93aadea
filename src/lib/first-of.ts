/** What the first item gives for which `attempt` does not throw, one after another. Throws what the last one has thrown, or `none`. */
export async function firstOf<Item, Result>(
  items: readonly Item[],
  none: unknown,
  attempt: (item: Item) => Promise<Result>,
): Promise<Result> {
  let last = none;
  for (const item of items) {
    try {
      return await attempt(item);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}
