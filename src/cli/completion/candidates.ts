/** What may stand where the cursor is, as far as the specs of the commands tell. */
import type { ArgumentSpec, CommandSpec, Names, Options, OptionSpec } from '../spec.ts';
import type { Where } from '../kubeconfig.ts';

export interface Candidate {
  readonly value: string;
  /** Shown beside it by shells that can. */
  readonly text?: string;
}

export interface Wanted {
  /** Known at once. */
  readonly candidates: readonly Candidate[];
  /** Names to ask for, from the cluster that the line names. */
  readonly names?: Names;
  readonly where: Where;
  /** Stands before each name: `--namespaces=`, or what a list already holds. */
  readonly prefix: string;
  /** The word is a list, and may go on after a name. */
  readonly isList: boolean;
}

interface Position {
  spec: CommandSpec;
  /** Those of the command and of all above it. */
  options: Options;
  given: Readonly<Record<string, string>>;
  positionals: readonly string[];
  /** The option whose value comes next. */
  pending?: { name: string; option: OptionSpec };
  /** After `--`, nothing is an option. */
  onlyArguments: boolean;
}

/** `words`: after the name of the program; the last one is at the cursor, and may be empty. */
export function wantedAt(program: CommandSpec, words: readonly string[]): Wanted | undefined {
  const cursor = words.at(-1) ?? '';
  const position = positionAfter(program, words.slice(words[0] === 'help' ? 1 : 0, -1));
  if (position === undefined) return undefined;
  const where = { kubeconfig: position.given['kubeconfig'], context: position.given['context'] };
  const found = whatFits(position, cursor);
  return { candidates: [], prefix: '', isList: false, where, ...found };
}

type Fitting = Partial<Omit<Wanted, 'where'>>;

function whatFits(
  { spec, options, given, positionals, pending, onlyArguments }: Position,
  cursor: string,
): Fitting {
  if (pending !== undefined) return valuesOf(pending.option, cursor, '');
  const [, name = ''] = /^--([a-z0-9-]+)=/.exec(cursor) ?? [];
  if (name !== '' && !onlyArguments) {
    const option = ownOf(options, name);
    const prefix = `--${name}=`;
    return option?.value === undefined ? {} : valuesOf(option, cursor.slice(prefix.length), prefix);
  }
  if (cursor.startsWith('-') && !onlyArguments) return { candidates: optionsOf(options, given) };
  if (spec.children !== undefined) return { candidates: childrenOf(spec) };
  const argument = argumentAt(spec.arguments ?? [], positionals.length);
  return argument === undefined ? {} : valuesOf(argument, cursor, '');
}

function positionAfter(program: CommandSpec, words: readonly string[]): Position | undefined {
  let position: Position | undefined = {
    spec: program,
    options: program.options ?? {},
    given: {},
    positionals: [],
    onlyArguments: false,
  };
  for (const word of words) position = position && afterWord(position, word);
  return position;
}

/** Undefined where there is no such command. */
function afterWord({ pending, ...position }: Position, word: string): Position | undefined {
  const { spec, options, given, positionals, onlyArguments } = position;
  if (pending !== undefined) return { ...position, given: { ...given, [pending.name]: word } };
  if (word.startsWith('-') && word !== '-' && !onlyArguments) {
    return word === '--' ? { ...position, onlyArguments: true } : afterOption(position, word);
  }
  if (spec.children === undefined) return { ...position, positionals: [...positionals, word] };
  const child = spec.children.find((one) => one.spec.name === word)?.spec;
  return child && { ...position, spec: child, options: { ...options, ...child.options } };
}

function afterOption(position: Position, word: string): Position {
  const [name, value] = optionIn(word, position.options);
  const option = ownOf(position.options, name);
  const given = { ...position.given, [name]: value ?? '' };
  const isPending = value === undefined && option?.value !== undefined;
  return { ...position, given, ...(isPending && { pending: { name, option } }) };
}

/** Name and value in `--name`, `--name=value`, `-o` or `-ovalue`. */
function optionIn(word: string, options: Options): [name: string, value: string | undefined] {
  const long = /^--([^=]+)(?:=(.*))?$/s.exec(word);
  if (long !== null) return [long[1] ?? '', long[2]];
  const short = word.slice(1, 2);
  const name = Object.keys(options).find((one) => options[one]?.short === short) ?? '';
  return [name, word.length > 2 ? word.slice(2) : undefined];
}

const ownOf = (options: Options, name: string): OptionSpec | undefined =>
  Object.hasOwn(options, name) ? options[name] : undefined;

const optionsOf = (options: Options, given: Readonly<Record<string, string>>): Candidate[] => [
  ...Object.entries(options)
    .filter(([name, { isHidden }]) => isHidden !== true && !Object.hasOwn(given, name))
    .map(([name, { text }]) => ({ value: `--${name}`, text })),
  { value: '--help', text: 'how it is called' },
];

const childrenOf = ({ children = [] }: CommandSpec): Candidate[] =>
  children
    .filter(({ spec }) => spec.isHidden !== true)
    .map(({ spec: { name, summary } }) => ({ value: name, text: summary }));

function argumentAt(all: readonly ArgumentSpec[], index: number): ArgumentSpec | undefined {
  const last = all.at(-1);
  return all[index] ?? (last?.isVariadic === true ? last : undefined);
}

/** `on|off` as what the value is called says the same as choices. */
const EITHER = /^[a-z]+(?:\|[a-z]+)+$/;

function valuesOf(
  {
    choices,
    names,
    words = [],
    ...spec
  }: Pick<OptionSpec, 'choices' | 'names' | 'value'> & Pick<ArgumentSpec, 'words'>,
  cursor: string,
  before: string,
): Fitting {
  const { value: called = '' } = spec;
  const isList = called.endsWith(',...');
  const prefix = before + (isList ? cursor.slice(0, cursor.lastIndexOf(',') + 1) : '');
  const known = choices ?? [...words, ...(EITHER.test(called) ? called.split('|') : [])];
  return {
    candidates: known.map((value) => ({ value: prefix + value })),
    prefix,
    isList,
    ...(names !== undefined && { names }),
  };
}
