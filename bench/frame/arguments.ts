import type { Bench } from './bench.ts';

/** Those that are named, in their own order; all without a name. @throws for one that does not exist */
export function chooseBenches(all: readonly Bench[], names: string): Bench[] {
  const wanted = new Set(names.split(',').filter((name) => name !== ''));
  const known = all.map(({ name }) => name);
  const unknown = [...wanted].filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(`there is no benchmark ${unknown.join(', ')}; there are ${known.join(', ')}`);
  return all.filter(({ name }) => wanted.size === 0 || wanted.has(name));
}

/** `NAME=VALUE` each. */
export const assigned = (texts: readonly string[]): [name: string, value: string][] =>
  texts.map((text) => {
    const at = text.indexOf('=');
    if (at < 1) throw new Error(`"${text}" is not of the form NAME=VALUE`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
