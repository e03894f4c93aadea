/** What a person may say on the command line of a benchmark. Pure; whatever is refused is an Invalid error of one line. */
import { parseArgs, type ParseArgsConfig } from 'node:util';

import { hasCode, TributaryError } from '../../src/lib/errors.ts';
import type { Bench, Limit, Parameters } from './bench.ts';

type Options = NonNullable<ParseArgsConfig['options']>;
type Parsed<T extends Options> = ReturnType<
  typeof parseArgs<{ options: T; args: string[]; allowPositionals: true }>
>;

const MISTAKE = 'CommandLine';

/** What is wrong with what the caller wants, in one line. */
export const mistake = (message: string): TributaryError =>
  new TributaryError('Invalid', message, { reason: MISTAKE });

/** Servers, too, say of what a benchmark sends them that it is invalid: that is no mistake of the caller. */
export const isMistake = (error: unknown): error is TributaryError =>
  hasCode(error, 'Invalid') && (error as TributaryError).reason === MISTAKE;

/** As `parseArgs`, but also a value that begins with a dash belongs to its option if it is a number. */
export function parsedOptions<T extends Options>(args: readonly string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args: joinedNumbers(args, options), options, allowPositionals: true });
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    if (typeof code !== 'string' || !code.startsWith('ERR_PARSE_ARGS_')) throw error;
    // What follows is advice about positional arguments, which mean nothing here.
    const [what = ''] = message.split(/\n|\. /u);
    throw mistake(`${what.replace(/\.$/u, '')}; --help lists all options`);
  }
}

/** `--rounds -1` becomes `--rounds=-1`, so that it can be refused for what it is. */
function joinedNumbers(args: readonly string[], options: Options): string[] {
  const takesText = (word: string | undefined): boolean =>
    word?.startsWith('--') === true && options[word.slice(2)]?.type === 'string';
  const isNumber = (word: string | undefined): boolean => /^-\d/u.test(word ?? '');
  return args.flatMap((word, index) => {
    if (isNumber(word) && takesText(args[index - 1])) return [];
    const next = args[index + 1];
    return takesText(word) && isNumber(next) ? [`${word}=${next}`] : [word];
  });
}

/** @throws for positional arguments: no command here takes any */
export function refusePositionals([first]: readonly string[], instead: string): void {
  if (first !== undefined) throw mistake(`unexpected ${first}: ${instead}`);
}

/** @throws unless the text is a whole number within the limit */
export function wholeNumber(name: string, text: string, { least = 1, most }: Limit = {}): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least && value <= (most ?? value))
    return value;
  const range = most === undefined ? `from ${least} on` : `from ${least} to ${most}`;
  throw mistake(`${name} is to be a whole number ${range}, not "${text}"`);
}

/** @throws unless the text is a number above 0 */
export function positiveNumber(name: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw mistake(`${name} is to be a number above 0, not "${text}"`);
}

/** Those that are named, in their own order; all without a name. @throws for one that does not exist */
export function chooseBenches(all: readonly Bench[], names: string): Bench[] {
  const wanted = new Set(
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  );
  const known = all.map(({ name }) => name);
  const unknown = [...wanted].filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw mistake(`there is no benchmark ${unknown.join(', ')}; there are ${known.join(', ')}`);
  return all.filter(({ name }) => wanted.size === 0 || wanted.has(name));
}

/** `NAME=NUMBER` each. @throws for a name that none of the benchmarks knows, and for what one of them cannot work with */
export function changedParameters(texts: readonly string[], benches: readonly Bench[]): Parameters {
  const known = [...new Set(benches.flatMap(({ parameters }) => Object.keys(parameters)))];
  const pairs = assigned(texts).map(([name, text]): [string, number] => {
    if (!known.includes(name)) {
      const names = benches.map((bench) => bench.name).join(', ');
      const others = known.length === 0 ? `${names} has none` : `there are ${known.join(', ')}`;
      throw mistake(`there is no parameter ${name}; ${others}`);
    }
    const having = benches.filter(({ parameters }) => Object.hasOwn(parameters, name));
    return [name, having.map(({ limits }) => wholeNumber(name, text, limits?.[name])).at(-1) ?? Number.NaN];
  });
  return Object.fromEntries(pairs);
}

/** `NAME=VALUE` each. */
export const assigned = (texts: readonly string[]): [name: string, value: string][] =>
  texts.map((text) => {
    const at = text.indexOf('=');
    if (at < 1) throw mistake(`"${text}" is not of the form NAME=VALUE`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
