/** The command line of `bench/main.ts`. Pure. */
import {
  assigned,
  changedParameters,
  chooseBenches,
  parsedOptions,
  refusePositionals,
  wholeNumber,
} from './arguments.ts';
import type { Bench, OtherProgram, Parameters } from './bench.ts';

export const USAGE = `usage: node bench/main.ts [OPTIONS]

  --bench NAME,NAME       which benchmarks; default: all, which takes hours
  --rounds NUMBER         in each round all contenders take their turn; default: 5
  --set PARAMETER=NUMBER  another size than the default one; can be given several times. Goals are meant for the defaults
  --json FILE             where to write what is found, for bench/store.ts
  --before FOLDER         another checkout with its node_modules: its program takes part as \`before\`, where that is possible
  --other NAME=COMMAND    another system's program takes part (bench/README.md); can be given several times
  --node-flag FLAG        a further flag of Node.js for the program, such as --node-flag=--cpu-prof; can be given several times
  --check                 says whether these options can be used here, and measures nothing
  --list                  prints all benchmarks with their parameters, and the defaults of these
  --help                  prints this

make bench installs what is needed and says the same with BENCH=, ROUNDS=, SET=NAME=NUMBER,..., JSON= and BEFORE=.
`;

export interface RunCommand {
  readonly verb: 'run' | 'check';
  readonly benches: readonly Bench[];
  readonly changed: Parameters;
  readonly rounds: number;
  readonly json: string | undefined;
  readonly before: string | undefined;
  readonly others: readonly OtherProgram[];
  readonly nodeFlags: readonly string[];
}

export type Command = RunCommand | { readonly verb: 'help' } | { readonly verb: 'list' };

const OPTIONS = {
  bench: { type: 'string', default: '' },
  rounds: { type: 'string', default: '5' },
  set: { type: 'string', multiple: true },
  json: { type: 'string', default: '' },
  before: { type: 'string', default: '' },
  other: { type: 'string', multiple: true },
  'node-flag': { type: 'string', multiple: true },
  check: { type: 'boolean', default: false },
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** @throws an Invalid error of one line if the arguments are not a command */
export function parseCommand(args: readonly string[], all: readonly Bench[]): Command {
  const { values, positionals } = parsedOptions(args, OPTIONS);
  if (values.help) return { verb: 'help' };
  refusePositionals(positionals, `benchmarks are named by --bench NAME,NAME`);
  if (values.list) return { verb: 'list' };
  const benches = chooseBenches(all, values.bench);
  return {
    verb: values.check ? 'check' : 'run',
    benches,
    changed: changedParameters(values.set ?? [], benches),
    rounds: wholeNumber('rounds', values.rounds),
    json: given(values.json),
    before: given(values.before),
    others: assigned(values.other ?? []).map(([name, command]) => ({ name, command })),
    nodeFlags: values['node-flag'] ?? [],
  };
}

const given = (text: string): string | undefined => (text === '' ? undefined : text);

/** A line for each benchmark. */
export const listText = (all: readonly Bench[]): string =>
  all
    .map(({ name, title, parameters }) => {
      const sizes = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
      return `${name}: ${title}${sizes.length === 0 ? '' : ` [${sizes.join(', ')}]`}\n`;
    })
    .join('');
