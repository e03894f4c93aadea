/** Options of a command line as values. */
import { parseEndpoint } from './endpoint.ts';
import { errorMessage } from './errors.ts';
import { parsePrefix } from './prefix.ts';

/** One reader for each kind of option. If a value is wrong, the reader adds to `mistakes` and returns the default. */
export interface OptionReaders {
  port: <T extends number | undefined>(name: string, fallback: T) => number | T;
  seconds: <T extends number | undefined>(name: string, fallback: T, least: number) => number | T;
  list: (name: string) => string[];
  flag: <T extends boolean | undefined>(name: string, fallback: T) => boolean | T;
  choice: <T extends string>(name: string, known: readonly T[], fallback: T) => T;
  mtu: (name: string, fallback: number) => number;
  /** These leave out what is not well-formed; with `endpoints`, `none` gives an empty list, and no option undefined. */
  cidrs: (name: string) => string[];
  dialled: (name: string) => string[];
  endpoints: (name: string) => string[] | undefined;
  mistaken: (message: string) => void;
}

export function optionReaders(
  options: Readonly<Record<string, string | undefined>>,
  mistakes: string[],
): OptionReaders {
  const number = <T extends number | undefined>(
    name: string,
    fallback: T,
    { least, most, what }: { least: number; most: number; what: string },
  ): number | T => {
    const text = options[name];
    if (text === undefined) return fallback;
    const value = Number(text);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    mistakes.push(`--${name} must be ${what}, not "${text}"`);
    return fallback;
  };
  const port = <T extends number | undefined>(name: string, fallback: T): number | T =>
    number(name, fallback, { least: 0, most: 65_535, what: 'a port' });
  const seconds = <T extends number | undefined>(name: string, fallback: T, least: number): number | T =>
    number(name, fallback, { least, most: 31_536_000, what: `a number of seconds from ${least} to a year` });
  const mtu = (name: string, fallback: number): number =>
    number(name, fallback, { least: 1280, most: 9_000, what: 'from 1280 to 9000 bytes' });
  const flag = <T extends boolean | undefined>(name: string, fallback: T): boolean | T => {
    const text = options[name];
    if (text === 'on' || text === 'off') return text === 'on';
    if (text !== undefined) mistakes.push(`--${name} must be on or off, not "${text}"`);
    return fallback;
  };
  const choice = <T extends string>(name: string, known: readonly T[], fallback: T): T => {
    const found = known.find((one) => one === (options[name] ?? fallback));
    if (found === undefined)
      mistakes.push(`--${name} must be one of ${known.join(', ')}, not "${options[name]}"`);
    return found ?? fallback;
  };
  const list = (name: string): string[] => (options[name] ?? '').split(',').filter((text) => text !== '');
  const checked = (name: string, check: (text: string) => unknown): string[] =>
    list(name).filter((text) => {
      try {
        check(text);
        return true;
      } catch (error) {
        mistakes.push(`--${name}: ${errorMessage(error)}`);
        return false;
      }
    });
  const cidrs = (name: string): string[] => checked(name, parsePrefix);
  const dialled = (name: string): string[] => checked(name, parseEndpoint);
  const endpoints = (name: string): string[] | undefined => {
    if (options[name] === undefined) return undefined;
    return options[name] === 'none' ? [] : dialled(name);
  };
  const kinds = { port, seconds, list, flag, choice, mtu, cidrs, dialled, endpoints };
  return { ...kinds, mistaken: (message) => void mistakes.push(message) };
}
