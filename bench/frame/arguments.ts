import type { Bench, Parameters } from './bench.ts';

/** Those that are named, in their own order; all without a name. @throws for one that does not exist */
export function chooseBenches(all: readonly Bench[], names: string): Bench[] {
  const wanted = new Set(names.split(',').filter((name) => name !== ''));
  const known = all.map(({ name }) => name);
  const unknown = [...wanted].filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(`there is no benchmark ${unknown.join(', ')}; there are ${known.join(', ')}`);
  return all.filter(({ name }) => wanted.size === 0 || wanted.has(name));
}

/** `NAME=NUMBER` each. @throws for what is no number, and for a name that none of the benchmarks knows */
export function changedParameters(texts: readonly string[], benches: readonly Bench[]): Parameters {
  const known = new Set(benches.flatMap(({ parameters }) => Object.keys(parameters)));
  const pairs = assigned(texts).map(([name, text]): [string, number] => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value))
      throw new Error(`${name} is to be a number, not "${text}"`);
    if (!known.has(name))
      throw new Error(`there is no parameter ${name}; there are ${[...known].join(', ')}`);
    return [name, value];
  });
  return Object.fromEntries(pairs);
}

/** `NAME=VALUE` each. */
export const assigned = (texts: readonly string[]): [name: string, value: string][] =>
  texts.map((text) => {
    const at = text.indexOf('=');
    if (at < 1) throw new Error(`"${text}" is not of the form NAME=VALUE`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
