/**
 * What `make test-long` does more of. A short, deterministic part of it is in every run; the long one says what it adds.
 * `what` is as in "pods that are offloaded at once".
 */
export function short<T extends number | string>(what: string, values: { short: T; long: T }): T {
  if (process.env['TRIBUTARY_TEST_LONG'] !== '1') return values.short;
  process.stderr.write(`long: ${what}: ${values.long} instead of ${values.short}\n`);
  return values.long;
}
