/** docs/reference/commands.md: each command, from its description. */
import { PROGRAM } from '../../src/cli/cli.ts';
import type { CommandSpec, OptionSpec, Options } from '../../src/cli/command.ts';
import { usageOf } from '../../src/cli/parser.ts';

const HEAD = `# Commands

Made from the descriptions in src/cli by \`npm run generate\`. \`tributary COMMAND --help\` prints the same, and so does \`kubectl tributary\`.

`;

export function commandsDocument(program: CommandSpec = PROGRAM): string {
  const children = (program.children ?? []).map(({ spec }) => spec).filter(isShown);
  const groups = Map.groupBy(children, ({ group = '' }) => group);
  const everywhere = program.options ?? {};
  return [
    HEAD,
    `${program.about ?? ''}\n`,
    '## Options of all commands on a cluster\n',
    optionTable(everywhere),
    ...[...groups].flatMap(([group, specs]) => [
      `## ${group.replace(/:$/, '')}\n`,
      ...specs.flatMap((spec) => sectionsOf(spec, program.name, everywhere)),
    ]),
  ].join('\n');
}

const isShown = ({ isHidden }: CommandSpec): boolean => isHidden !== true;

/** The command, and all below it. */
function sectionsOf(spec: CommandSpec, parent: string, everywhere: Options): string[] {
  const path = `${parent} ${spec.name}`;
  const children = (spec.children ?? []).map((child) => child.spec).filter(isShown);
  return [
    section(spec, path, everywhere),
    ...children.flatMap((child) => sectionsOf(child, path, everywhere)),
  ];
}

function section(spec: CommandSpec, path: string, everywhere: Options): string {
  const { summary, about, children, arguments: all = [], options = {}, examples = [], exits = {} } = spec;
  const own = Object.fromEntries(
    Object.entries(options).filter(([name]) => !Object.hasOwn(everywhere, name)),
  );
  const words = children === undefined ? usageOf(spec) : 'COMMAND';
  const codes = Object.entries(exits).map(([code, text]) => `- exit code ${code}: ${plain(text)}`);
  return [
    `### ${path}\n`,
    `${plain(summary)}${about === undefined ? '' : `\n\n${plain(about)}`}\n`,
    `    ${[path, words].filter((word) => word !== '').join(' ')}\n`,
    ...(all.length === 0
      ? []
      : [
          table(
            ['Argument', ''],
            all.map(({ name, text }) => [code(name), text]),
          ),
        ]),
    optionTable(own),
    ...examples.flatMap(({ line, does }) => [`${plain(does)}:\n`, `\`\`\`sh\n${line}\n\`\`\`\n`]),
    ...(codes.length === 0 ? [] : [`${codes.join('\n')}\n`]),
  ].join('\n');
}

function optionTable(options: Options): string {
  const shown = Object.entries(options).filter(([, { isHidden }]) => isHidden !== true);
  return shown.length === 0
    ? ''
    : table(
        ['Option', ''],
        shown.map(([name, option]) => [flags(name, option), meaning(option)]),
      );
}

const flags = (name: string, { value, short }: OptionSpec): string =>
  [
    ...(short === undefined ? [] : [code(`-${short}`)]),
    code(value === undefined ? `--${name}` : `--${name} ${value}`),
  ].join(', ');

function meaning({ text, isRequired, choices, fallback }: OptionSpec): string {
  const more = [
    ...(isRequired === true ? ['required'] : []),
    ...(choices === undefined ? [] : [`one of ${choices.join(', ')}`]),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
  ].join('; ');
  return more === '' ? text : `${text} (${more})`;
}

const code = (text: string): string => `\`${text}\``;

/** Text in which nothing is markup. */
const plain = (text: string): string => text.replaceAll(/[*_<[\]`]/g, String.raw`\$&`);

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows]
    .map(
      (cells) =>
        `| ${cells.map((cell) => (cell.startsWith('`') ? cell : plain(cell)).replaceAll('|', String.raw`\|`)).join(' | ')} |`,
    )
    .join('\n')
    .concat('\n');
