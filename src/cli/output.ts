/** `-o`: what a command prints for programs. */
import type { OptionSpec, Options } from './command.ts';
import { type CommandLine } from './command-line.ts';
import { printYaml } from './yaml.ts';

/** `text`: for people. */
export type Format = 'text' | 'wide' | 'json' | 'yaml';

const output = (choices: readonly string[]): OptionSpec => ({
  value: 'FORMAT',
  short: 'o',
  text: 'print this instead of text',
  choices,
});

export const OUTPUT: Options = { output: output(['json', 'yaml']) };
export const WIDE_OUTPUT: Options = { output: output(['json', 'yaml', 'wide']) };

/** The parser has checked the choice. */
export const formatOf = ({ values }: CommandLine): Format =>
  (values['output'] as Format | undefined) ?? 'text';

/** `data` for programs; for people, what `text` makes of it. */
export function printedAs(format: Format, data: object, text: (isWide: boolean) => string): string {
  if (format === 'json') return `${JSON.stringify(data, undefined, 2)}\n`;
  return format === 'yaml' ? printYaml([data]) : text(format === 'wide');
}
