/** Paths of fields that do not travel: `spec.clusterName`, `metadata.annotations.example\.com/owner`. Pure. */

/** Keys from the outermost one inwards; at least one. */
export type FieldPath = readonly string[];

const MAX_STEPS = 32;
/** Of metadata nothing else travels anyway. */
const OF_METADATA: ReadonlySet<string> = new Set(['labels', 'annotations']);

/** Steps are parted by dots; a backslash takes the next character as it is. Returns why not, where it cannot be. */
export function parsePath(text: string): FieldPath | { problem: string } {
  const steps: string[] = [''];
  let isEscaped = false;
  for (const char of text) {
    if (!isEscaped && char === '\\') {
      isEscaped = true;
      continue;
    }
    if (!isEscaped && char === '.') steps.push('');
    else steps.push(`${steps.pop() ?? ''}${char}`);
    isEscaped = false;
  }
  const problem = isEscaped ? 'it ends within an escape' : problemOf(steps);
  return problem === undefined ? steps : { problem };
}

function problemOf(steps: FieldPath): string | undefined {
  if (steps.length > MAX_STEPS) return `it has more than ${MAX_STEPS} steps`;
  if (steps.includes('')) return 'a step of it is empty';
  // No field of any API; a path with it is somebody's attempt.
  if (steps.includes('__proto__')) return 'no field is called __proto__';
  const [first = '', second = ''] = steps;
  if (first === 'apiVersion' || first === 'kind') return `without ${first} there is no object`;
  if (first === 'metadata' && !OF_METADATA.has(second)) {
    return 'of metadata only labels and annotations can be named';
  }
  return undefined;
}

/** The value without these fields; itself where it has none of them. A step on a list goes for each of its items. */
export function withoutPaths<T>(value: T, paths: readonly FieldPath[]): T {
  let left: unknown = value;
  for (const path of paths) left = without(left, path);
  return left as T;
}

/** As deep as the path is long, and lists within lists. */
function without(value: unknown, path: FieldPath): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => without(item, path));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  const [key, ...rest] = path;
  if (key === undefined || !Object.hasOwn(value, key)) return value;
  // Entries, never assignment: a key such as `__proto__` stays a key.
  if (rest.length === 0) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  const inner = (value as Record<string, unknown>)[key];
  const left = without(inner, rest);
  if (left === inner) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, name === key ? left : (item as unknown)]),
  );
}
