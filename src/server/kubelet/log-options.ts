/**
 * Query parameters of /containerLogs, decoded and checked as the kubelet does (PodLogOptions of v1) and written
 * out again for the foreign API server. The list is closed: nothing else is passed on.
 */
export type LogQuery = { query: URLSearchParams } | { status: 400 | 422; text: string };

const undecodable: LogQuery = { status: 400, text: '{"message": "Unable to decode query."}' };
const invalid: LogQuery = { status: 422, text: '{"message": "Invalid request."}' };

const INT64_MAX = 2n ** 63n - 1n;
const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** As apimachinery converts a query value to bool: whatever is not a way to say no means yes. */
const isTrue = (value: string): boolean => value !== '0' && value.toLowerCase() !== 'false';

/** Undefined when it is no 64-bit integer. */
function parseInteger(value: string): bigint | undefined {
  if (!/^[+-]?\d{1,19}$/.test(value)) return undefined;
  const number = BigInt(value.replace('+', ''));
  return number > INT64_MAX || number < -INT64_MAX - 1n ? undefined : number;
}

const FLAGS = ['follow', 'previous', 'timestamps'] as const;
/** Smallest permitted value each. */
const INTEGERS = { sinceSeconds: 1n, tailLines: 0n, limitBytes: 1n } as const;
const STREAMS: ReadonlySet<string> = new Set(['All', 'Stdout', 'Stderr']);

/** `tail` is what clients before v1 said; `all` is the same as nothing. */
function withLegacyTail(query: URLSearchParams): URLSearchParams {
  const tail = query.get('tail');
  if (tail === null || tail === '') return query;
  const copy = new URLSearchParams(query);
  if (tail === 'all') copy.delete('tailLines');
  else copy.set('tailLines', tail);
  return copy;
}

export function parseLogQuery(received: URLSearchParams): LogQuery {
  const given = withLegacyTail(received);
  const query = new URLSearchParams();
  let outOfRange = false;
  for (const flag of FLAGS) {
    const value = given.get(flag);
    if (value !== null && isTrue(value)) query.set(flag, 'true');
  }
  for (const [name, minimum] of Object.entries(INTEGERS)) {
    const value = given.get(name);
    if (value === null) continue;
    const number = parseInteger(value);
    if (number === undefined) return undecodable;
    outOfRange ||= number < minimum;
    query.set(name, String(number));
  }
  const sinceTime = given.get('sinceTime');
  if (sinceTime !== null) {
    if (!RFC3339.test(sinceTime) || Number.isNaN(Date.parse(sinceTime))) return undecodable;
    query.set('sinceTime', sinceTime);
  }
  if (outOfRange || (query.has('sinceTime') && query.has('sinceSeconds'))) return invalid;
  return withStream(query, given.get('stream'));
}

/**
 * KEP-3288. `All` is what a server does unasked, and one without the feature refuses the parameter, so it is
 * left out.
 */
function withStream(query: URLSearchParams, stream: string | null): LogQuery {
  if (stream === null || stream === 'All') return { query };
  if (!STREAMS.has(stream) || query.has('tailLines')) return invalid;
  query.set('stream', stream);
  return { query };
}
