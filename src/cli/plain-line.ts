import type { CommandLine } from './command-line.ts';
import type { Options } from './spec.ts';

/**
 * The command line, where it is nothing but known options with their values, as in the manifests of a role; undefined for everything
 * else (help, mistakes, arguments), which only the parser understands. The parser is 120 KB of code and takes 4 MiB: a role that was
 * called without a mistake does not load it.
 */
export function plainLine(options: Options, args: readonly string[]): CommandLine | undefined {
  const values: Record<string, string> = {};
  for (let index = 0; index < args.length; index++) {
    const [, name = '', inline] = /^--([a-z-]+)(?:=(.+))?$/su.exec(args[index] ?? '') ?? [];
    const value = inline ?? args[++index];
    if (!Object.hasOwn(options, name) || options[name]?.value === undefined) return undefined;
    if (value === undefined || value.startsWith('-')) return undefined;
    values[name] = value;
  }
  return { values, flags: new Set(), positionals: [] };
}
