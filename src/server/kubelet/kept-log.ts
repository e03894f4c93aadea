const LINE_END = 0x0a;
/** Date.parse alone takes almost anything for a time. */
const TIME = /^\d{4}-\d{2}-\d{2}T\S+$/;

/**
 * What a log query selects from a log that is kept in memory, as the kubelet does: the last lines, then those that are young
 * enough, then so many bytes. Each line of `log` begins with its time, RFC 3339, and a space. `query`: checked (parseLogQuery).
 * Pure.
 */
export function selectedLog(log: Buffer, query: URLSearchParams, nowMs: number): Buffer {
  const lines = linesOf(log);
  const tail = query.get('tailLines');
  const sinceMs = sinceOf(query, nowMs);
  const chosen = (tail === null ? lines : lines.slice(Math.max(0, lines.length - Number(tail)))).flatMap(
    (line) => {
      const space = line.indexOf(' ');
      const time = line.subarray(0, Math.max(0, space)).toString('latin1');
      const atMs = TIME.test(time) ? Date.parse(time) : NaN;
      if (sinceMs !== undefined && atMs < sinceMs) return [];
      return [query.has('timestamps') || Number.isNaN(atMs) ? line : line.subarray(space + 1)];
    },
  );
  const limit = query.get('limitBytes');
  const all = Buffer.concat(chosen);
  return limit === null ? all : all.subarray(0, Number(limit));
}

function sinceOf(query: URLSearchParams, nowMs: number): number | undefined {
  const seconds = query.get('sinceSeconds');
  if (seconds !== null) return nowMs - Number(seconds) * 1000;
  const time = query.get('sinceTime');
  return time === null ? undefined : Date.parse(time);
}

/** With their ends. */
function linesOf(log: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < log.length;) {
    const end = log.indexOf(LINE_END, from);
    const next = end === -1 ? log.length : end + 1;
    lines.push(log.subarray(from, next));
    from = next;
  }
  return lines;
}
