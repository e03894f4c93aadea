/**
 * Order of two resourceVersions: negative, zero or positive like a comparison; undefined where they cannot be
 * compared.
 *
 * A heuristic. The API calls versions opaque; all API servers on etcd use decimal numbers that grow, and KEP-5504
 * makes this comparison official. We only ever use it to refuse an older view, never to believe a newer one.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (!isDecimal(a) || !isDecimal(b)) return undefined;
  // Of decimals without leading zeros the longer one is greater; numbers would lose digits beyond 2^53.
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Whether `a` is certainly older than `b`. */
export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}

const isDecimal = (version: string): boolean => /^(0|[1-9][0-9]{0,38})$/.test(version);
