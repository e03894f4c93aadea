/** Makes commander's parser from a command's description, and runs what was called. Nothing else knows commander. */
import { Argument, Command as Parser, CommanderError, Option } from 'commander';

import { TributaryError } from '../lib/errors.ts';
import type { ArgumentSpec, CommandEnvironment, CommandSpec, Example, OptionSpec } from './spec.ts';
import { type CommandIo, type CommandLine, EXIT, reportFailure } from './command-line.ts';

interface Call {
  /** How people call what `spec` belongs to. Empty: it is the program itself. */
  parent: string;
  args: readonly string[];
  environment: CommandEnvironment;
}

/** The command that was called, how people call it, and its line. */
interface Found {
  spec: CommandSpec;
  path: string;
  line: CommandLine;
}

export async function runParsed(spec: CommandSpec, { parent, args, environment }: Call): Promise<number> {
  const { io } = environment;
  let found: Found | undefined;
  const path = [parent, spec.name].filter((word) => word !== '').join(' ');
  const parser = parserOf(spec, path, { io, chosen: (one) => (found = one) });
  try {
    if (args.length === 0 && parent === '') parser.outputHelp();
    else await parser.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return toldParserError(error, parser, args, environment);
    throw error;
  }
  return found === undefined ? EXIT.ok : act(found, args, environment);
}

const HELP_WIDTH = 100;

async function act(
  { spec, path, line }: Found,
  args: readonly string[],
  environment: CommandEnvironment,
): Promise<number> {
  const { io, signal } = environment;
  try {
    checkLine(spec, line, args);
    return (await spec.act?.(line, environment)) ?? EXIT.ok;
  } catch (error) {
    if (signal.aborted) {
      io.err('interrupted\n');
      return EXIT.failed;
    }
    return reportFailure(error, { command: path, io });
  }
}

interface Making {
  io: CommandIo;
  /** Told which command was called. */
  chosen: (found: Found) => void;
}

function parserOf(spec: CommandSpec, path: string, making: Making): Parser {
  const { io, chosen } = making;
  const { summary, about, children, options = {}, examples = [], exits = {} } = spec;
  const parser = new Parser(path)
    .summary(summary)
    .description([summary, ...(about === undefined ? [] : [about])].join('\n\n'))
    .helpOption('-h, --help', 'this text')
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => io.out(text),
      // Complaints are told in one line, by `toldParserError`; help that nobody asked for is a wall of text.
      writeErr: () => {},
      outputError: () => {},
      getOutHelpWidth: () => io.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => io.columns ?? HELP_WIDTH,
      getOutHasColors: () => io.hasColours === true,
    })
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .exitOverride();
  for (const argument of spec.arguments ?? []) parser.addArgument(argumentOf(argument));
  for (const [name, option] of Object.entries(options)) parser.addOption(optionOf(name, option));
  parser.addHelpText('after', afterHelp(examples, exits));
  if (children === undefined) {
    parser.usage(usageOf(spec)).action(() => {
      chosen({ spec, path, line: lineOf(parser, options) });
    });
  } else {
    parser.usage('COMMAND');
    for (const child of children) {
      const below = parserOf(child.spec, child.spec.name, {
        io,
        chosen: (one) => chosen({ ...one, path: `${path} ${one.path}` }),
      });
      if (child.spec.group !== undefined) below.helpGroup(child.spec.group);
      parser.addCommand(below, { hidden: child.spec.isHidden === true }).helpCommand(false);
    }
  }
  return parser;
}

function argumentOf({ name, text, isOptional, isVariadic }: ArgumentSpec): Argument {
  const inner = isVariadic === true ? `${name}...` : name;
  return new Argument(isOptional === true ? `[${inner}]` : `<${inner}>`, text);
}

function optionOf(name: string, spec: OptionSpec): Option {
  const { value, text, short, fallback, choices, isHidden, isRequired } = spec;
  const flags = `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` <${value}>`}`;
  const more = [
    ...(isRequired === true ? ['required'] : []),
    ...(choices === undefined ? [] : [`one of ${choices.join(', ')}`]),
    ...(fallback === undefined ? [] : [`default ${fallback}`]),
  ].join('; ');
  const option = new Option(flags, more === '' ? text : `${text} (${more})`);
  if (isHidden === true) option.hideHelp();
  return option;
}

/** `peer ENDPOINT [options]`, as kubectl writes it. */
export function usageOf({ arguments: all = [], options = {} }: CommandSpec): string {
  const words = all.map(({ name, isOptional, isVariadic }) => {
    const word = isVariadic === true ? `${name}...` : name;
    return isOptional === true ? `[${word}]` : word;
  });
  return [...words, ...(Object.keys(options).length === 0 ? [] : ['[options]'])].join(' ');
}

function afterHelp(examples: readonly Example[], exits: Readonly<Record<number, string>>): string {
  const codes = Object.entries(exits).map(([code, text]) => `  ${code}  ${text}`);
  return [
    ...(examples.length === 0 ? [] : ['', 'Examples:']),
    ...examples.map(({ line, does }) => `  # ${does}\n  ${line}`),
    ...(codes.length === 0
      ? []
      : ['', 'Exit codes, beside 0 (done), 1 (failed) and 2 (wrong command line):', ...codes]),
  ].join('\n');
}

/** Options of commands above count too, where the command knows them: `tributary --context rome status`. */
function lineOf(parser: Parser, options: Readonly<Record<string, OptionSpec>>): CommandLine {
  const given: Record<string, unknown> = {};
  for (let one: Parser | null = parser; one !== null; one = one.parent) {
    for (const option of one.options) {
      const name = option.long?.slice(2) ?? '';
      const value: unknown = one.getOptionValue(option.attributeName());
      if (Object.hasOwn(options, name) && value !== undefined) given[name] ??= value;
    }
  }
  return {
    values: Object.fromEntries(
      Object.entries(given).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
    ),
    flags: new Set(Object.keys(given).filter((name) => given[name] === true)),
    positionals: parser.args,
  };
}

/** What the parser lets pass: a forgotten value, so that the next option is taken for it, and a choice that there is none. */
function checkLine(
  { options = {}, arguments: all = [] }: CommandSpec,
  { values, positionals }: CommandLine,
  args: readonly string[],
): void {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const why = missingValue(name, value, args);
    if (why !== undefined) throw new TributaryError('Invalid', why);
    checkChoice(`--${name}`, value, options[name]?.choices);
  }
  const missing = Object.keys(options).find((name) => options[name]?.isRequired === true && !values[name]);
  if (missing !== undefined) throw new TributaryError('Invalid', `--${missing} is required`);
  for (const [index, { name, choices }] of all.entries()) {
    const value = positionals[index];
    if (value !== undefined) checkChoice(name, value, choices);
  }
}

function checkChoice(what: string, value: string, choices: readonly string[] | undefined): void {
  if (choices === undefined || choices.includes(value)) return;
  throw new TributaryError('Invalid', `${what} must be one of ${choices.join(', ')}, not "${value}"`);
}

/** Help was shown (0), or the line has another form than the usage (2): one line, and where to read more. */
function toldParserError(
  error: CommanderError,
  parser: Parser,
  args: readonly string[],
  { io }: CommandEnvironment,
): number {
  if (error.code === 'commander.helpDisplayed') return EXIT.ok;
  const called = calledBy(parser, args);
  // A command with commands below it, called alone.
  const isAlone = error.code === 'commander.help';
  const said = isAlone
    ? `say which: ${called.commands.map((command) => command.name()).join(', ')}`
    : (valueOfFlag(called, args) ?? forgottenValue(called, args) ?? plain(error.message));
  io.err(`${said}\n`);
  io.err(`see: ${pathOf(called)} --help\n`);
  return EXIT.usage;
}

const pathOf = (parser: Parser): string =>
  parser.parent === null ? parser.name() : `${pathOf(parser.parent)} ${parser.name()}`;

/** The command that the words lead to, as far as they lead to one. */
function calledBy(parser: Parser, args: readonly string[]): Parser {
  const [word, ...rest] = args.filter((arg) => !arg.startsWith('-'));
  const below = parser.commands.find((command) => command.name() === word);
  return below === undefined ? parser : calledBy(below, rest);
}

/** The next option was taken for a value that was forgotten. */
const forgottenValue = (called: Parser, args: readonly string[]): string | undefined =>
  called.options
    .map((option) =>
      missingValue(option.long?.slice(2) ?? '', String(called.getOptionValue(option.attributeName())), args),
    )
    .find((why) => why !== undefined);

/** What follows `=` is the value, whatever it looks like. */
const missingValue = (name: string, value: string, args: readonly string[]): string | undefined =>
  /^--[a-z]/.test(value) && !args.includes(`--${name}=${value}`)
    ? `--${name} needs a value; "${value}" follows it`
    : undefined;

const excess = (_: string, expected: string, _got: string, given: string): string =>
  `unexpected argument "${given.split(', ')[Number(expected)]}"`;

/** What is wrong, where a flag is given a value. */
function valueOfFlag({ options }: Parser, args: readonly string[]): string | undefined {
  const flag = options.find(
    ({ long, required }) => !required && args.some((arg) => arg.startsWith(`${long}=`)),
  );
  return flag && `${flag.long} takes no value`;
}

/** `error: unknown option '--contex'\n(Did you mean --context?)` on one line, and in our words. */
function plain(message: string): string {
  const [first = '', second] = message.replace(/^error: /, '').split('\n');
  const hint = /\(Did you mean (.+)\?\)/.exec(second ?? '')?.[1];
  const said = first
    .replaceAll("'", '"')
    .replace(/^missing required argument "(.+)"$/, '$1 is missing')
    .replace(/^option "(?:-., )?(--[^ ]+) <.*>" argument missing$/, '$1 needs a value')
    .replace(/^too many arguments.* Expected (\d+) arguments? but got (\d+): (.*)\.$/, excess);
  return hint === undefined ? said : `${said}; did you mean ${hint}?`;
}
