/** The imports between files of a tree, read from their text. */
import { posix } from 'node:path';

export interface Import {
  readonly from: string;
  readonly to: string;
  /** It imports types only, so the other file is not needed at run time. */
  readonly isType: boolean;
}

const DECLARED = /^(?:import|export)\s+(?<type>type\s)?(?:(?<names>[^'";]*?)\sfrom\s+)?'(?<to>\.[^']+)'/gm;
const DYNAMIC = /\bimport\('(?<to>\.[^']+)'\)/g;
const TYPE_NAMES = /^\{(?:\s*type\s[^,}]*,?)+\s*\}$/;

/** The imports of other files of the tree, one for each statement. Packages are left out. */
export function importsIn(path: string, text: string): Import[] {
  const target = (specifier = ''): string => posix.join(posix.dirname(path), specifier);
  const declared = [...text.matchAll(DECLARED)].map(({ groups }) => ({
    from: path,
    to: target(groups?.['to']),
    isType: groups?.['type'] !== undefined || TYPE_NAMES.test(groups?.['names'] ?? ''),
  }));
  const dynamic = [...text.matchAll(DYNAMIC)].map(({ groups }) => ({
    from: path,
    to: target(groups?.['to']),
    isType: false,
  }));
  return [...declared, ...dynamic];
}

const targetsOf = (imports: readonly Import[]): Map<string, string[]> =>
  new Map(
    Object.entries(Object.groupBy(imports, ({ from }) => from)).map(([from, own]) => [
      from,
      (own ?? []).map(({ to }) => to),
    ]),
  );

/** The files that are reached from one, itself among them, without those that `isLeftOut`. */
export function reachedFrom(
  start: string,
  imports: readonly Import[],
  isLeftOut: (path: string) => boolean = () => false,
): string[] {
  const targets = targetsOf(imports);
  const reached = new Set([start]);
  // A Set also visits what is added during the loop.
  for (const path of reached) for (const to of targets.get(path) ?? []) if (!isLeftOut(to)) reached.add(to);
  return [...reached].toSorted();
}

/** Groups of files that import each other, directly or through others of the group; imports of types count too. */
export function circlesOf(imports: readonly Import[]): string[][] {
  const targets = targetsOf(imports);
  const circles: string[][] = [];
  const order = new Map<string, number>();
  const stack: string[] = [];
  // Tarjan's strongly connected components.
  const visit = (path: string): number => {
    const number = order.size;
    order.set(path, number);
    stack.push(path);
    let low = number;
    for (const to of targets.get(path) ?? []) {
      if (!order.has(to)) low = Math.min(low, visit(to));
      else if (stack.includes(to)) low = Math.min(low, order.get(to) ?? low);
    }
    if (low === number) {
      const group = stack.splice(stack.indexOf(path));
      if (group.length > 1 || targets.get(path)?.includes(path) === true) circles.push(group.toSorted());
    }
    return low;
  };
  for (const path of targets.keys()) if (!order.has(path)) visit(path);
  return circles.toSorted(([a = ''], [b = '']) => a.localeCompare(b));
}
