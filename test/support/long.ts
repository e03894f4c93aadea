/**
 * What `make test-long` does more of. A short, deterministic part of it is in every run; the long one says what it adds.
 * `what` is as in "pods that are offloaded at once".
 */
export function short<T extends number | string>(what: string, values: { short: T; long: T }): T {
  if (process.env['TRIBUTARY_TEST_LONG'] !== '1') return values.short;
  process.stderr.write(`long: ${what}: ${values.long} instead of ${values.short}\n`);
  return values.long;
}

/**
 * `test` or `describe` of what only long runs try; short ones skip it. Say there, or in tools/test-plan.ts, what tries the same in each run.
 * `what` as in "pods that are evicted one by one".
 */
export const longOnly = <B extends { skip: unknown }>(what: string, block: B): B | B['skip'] =>
  short(what, { short: 0, long: 1 }) > 0 ? block : block.skip;
