/**
 * The Helm chart, printed from `forgeInstallation`, so that it and `tributary install` cannot differ. The function is called
 * with marks in place of values, once for each combination of switches. Marks become expressions of the template, and lines
 * that a switch changes get an `if` around them.
 */
import { LABEL_APP_INSTANCE, type Manifest } from '../../src/api/manifest.ts';
import { printYaml } from '../../src/cli/yaml.ts';
import { forgeInstallation, keyOf } from '../../src/deploy/installation/objects.ts';
import {
  type Field,
  type InstallValues,
  VALUE_NAMES,
  type ValueName,
  VALUES,
} from '../../src/deploy/installation/values.ts';
import { forgeUninstallHook } from '../../src/deploy/installation/uninstall-hook.ts';
import { joined, type Switched } from './chart-lines.ts';

const SWITCHES = VALUE_NAMES.filter((name) => VALUES[name].kind === 'switch');
/** Numbers that stand nowhere else; within the bounds that the forges check. */
const NUMBERS: Readonly<Partial<Record<ValueName, number>>> = {
  gatewayReplicas: 13,
  peeringNodePort: 31_313,
  wireguardPort: 31_314,
  tunnelMtu: 31_315,
};
const SPREAD: ReadonlySet<ValueName> = new Set(['clusterArgs', 'gatewayArgs', 'nodeArgs']);

/** Letters only: it passes every check of a name. */
const markOf = (name: ValueName): string => `zz${name}zz`;

/** Each field as a mark, the switches as they are given. */
function marks(switches: Readonly<Partial<Record<ValueName, boolean>>>): InstallValues {
  return Object.fromEntries(
    VALUE_NAMES.map((name): [ValueName, unknown] => {
      const { kind } = VALUES[name];
      if (kind === 'switch') return [name, switches[name] === true];
      if (kind === 'number') {
        const number = NUMBERS[name];
        if (number === undefined) throw new Error(`the number ${name} has no mark: add one to NUMBERS`);
        return [name, number];
      }
      return [name, kind === 'list' ? [markOf(name)] : markOf(name)];
    }),
  ) as unknown as InstallValues;
}

/** What a mark stands for; a number that is an argument is a text. */
const MARKED: ReadonlyMap<string | number, ValueName> = new Map(
  VALUE_NAMES.filter((name) => VALUES[name].kind !== 'switch').flatMap(
    (name): [string | number, ValueName][] => {
      const number = NUMBERS[name];
      return number === undefined
        ? [[markOf(name), name]]
        : [
            [number, name],
            [String(number), name],
          ];
    },
  ),
);

/** One line each in the printed YAML, replaced afterwards. */
const token = (what: string): string => `@@${what}@@`;

function tokens(value: unknown): unknown {
  if (Array.isArray(value)) return value.flatMap((item: unknown, at) => itemTokens(item, value[at + 1]));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, tokens(one)]));
  }
  const name = MARKED.get(value as string | number);
  return name === undefined ? value : token(`${typeof value === 'number' ? 'number' : 'text'} ${name}`);
}

/** An option and the value that follows it are there together or not at all. */
function itemTokens(item: unknown, next: unknown): unknown[] {
  const name = MARKED.get(item as string);
  if (name !== undefined && SPREAD.has(name)) {
    return [token(`range ${name}`), token('item'), token('end')];
  }
  if (name !== undefined && VALUES[name].option !== undefined) {
    return [token(`argument ${name}`), token('end')];
  }
  const following = MARKED.get(next as string);
  const isOption = following !== undefined && VALUES[following].option !== undefined;
  return isOption ? [token(`with ${following}`), item] : [tokens(item)];
}

const EXPRESSION: Readonly<Record<Field['kind'], string>> = {
  text: '{{ . | toJson }}',
  choice: '{{ . | toJson }}',
  list: '{{ join "," . | toJson }}',
  number: '{{ . | int | toString | toJson }}',
  switch: '',
};

/** The YAML with expressions in place of tokens. Other programs have templates in the same braces: those stay as they are. */
const expressions = (yaml: string): string[] =>
  yaml.trimEnd().split('\n').map(verbatim).flatMap(expressionsOf);

/** Two braces would begin an expression of Helm: so they become an expression that prints two braces. */
const verbatim = (line: string): string => line.replaceAll('{{', '{{ "{{" }}');

function expressionsOf(line: string): string[] {
  const [, before = '', what = '', name = ''] = /^(.*?)["']?@@([a-z]+) ?([A-Za-z]*)@@["']?$/.exec(line) ?? [];
  const indent = /^ */.exec(line)?.[0] ?? '';
  switch (what) {
    case '':
      return [line];
    case 'range':
    case 'with':
      return [`${indent}{{- ${what} .Values.${name} }}`];
    case 'end':
      return [`${indent}{{- end }}`];
    case 'item':
      return [`${indent}- {{ . | toJson }}`];
    case 'argument':
      return [`${indent}- ${EXPRESSION[VALUES[name as ValueName].kind]}`];
    case 'number':
      return numberField(before, name as ValueName);
    default:
      return textField(before, name as ValueName);
  }
}

/** A number that is not chosen has no field. */
function numberField(before: string, name: ValueName): string[] {
  const value = `.Values.${name}`;
  if (VALUES[name].default !== 0) return [`${before}{{ ${value} | int }}`];
  const indent = /^ */.exec(before)?.[0] ?? '';
  return [`${indent}{{- with ${value} }}`, `${before}{{ . | int }}`, `${indent}{{- end }}`];
}

/** Likewise a text that need not be chosen. */
function textField(before: string, name: ValueName): string[] {
  if (name === 'peeringTrafficPolicy') return trafficPolicyField(before);
  const field = VALUES[name];
  const text = field.kind === 'number' ? ' | int | toString' : '';
  const line = `${before}{{ .Values.${name}${text} | toJson }}`;
  if (field.kind !== 'text' || field.form?.pattern.startsWith('^$') !== true) return [line];
  const indent = /^ */.exec(before)?.[0] ?? '';
  return [`${indent}{{- with .Values.${name} }}`, `${before}{{ . | toJson }}`, `${indent}{{- end }}`];
}

/** As `forgePeeringService` decides it: by the type of the Service, where it is not chosen. */
function trafficPolicyField(before: string): string[] {
  const indent = /^ */.exec(before)?.[0] ?? '';
  const byType = 'ternary "Local" "Cluster" (eq .Values.peeringService "LoadBalancer")';
  const isAuto = '(eq .Values.peeringTrafficPolicy "Auto")';
  return [
    `${indent}{{- if ne .Values.peeringService "ClusterIP" }}`,
    `${before}{{ ternary (${byType}) .Values.peeringTrafficPolicy ${isAuto} | toJson }}`,
    `${indent}{{- end }}`,
  ];
}

/** What Helm needs besides what the program installs: it does by a hook what the program does itself. */
const everythingFrom = (values: InstallValues): Manifest[] => [
  ...forgeInstallation(values),
  ...forgeUninstallHook(values),
];

interface Template {
  object: Manifest;
  lines: string[];
}

/** By key of the object, in the order of application. */
function templates(): Map<string, Template> {
  const printed = new Map<string, string[]>();
  /** The same object comes in most combinations. */
  const linesOf = (object: Manifest): string[] => {
    const text = JSON.stringify(object);
    const lines = printed.get(text) ?? expressions(printYaml([tokens(object) as Manifest]));
    printed.set(text, lines);
    return lines;
  };
  const all = combinations().map((switches) => ({
    switches,
    objects: new Map(everythingFrom(marks(switches)).map((object) => [keyOf(object), object])),
  }));
  // The last combination has all switches on, and so the most objects; others may have some that it has not.
  const found = new Map(all.toReversed().flatMap(({ objects }) => [...objects]));
  return new Map(
    [...found].map(([key, object]) => {
      const forms = all.map(({ switches, objects }): Switched<readonly string[]> => {
        const one = objects.get(key);
        return { switches, form: one === undefined ? [] : linesOf(one) };
      });
      return [key, { object, lines: joined(SWITCHES, forms) }];
    }),
  );
}

function combinations(): Partial<Record<ValueName, boolean>>[] {
  const none: Partial<Record<ValueName, boolean>>[] = [{}];
  return SWITCHES.reduce(
    (all, name) => all.flatMap((one) => [false, true].map((value) => ({ ...one, [name]: value }))),
    none,
  );
}

/** The file that an object is printed into. */
function fileOf({ apiVersion, kind, metadata }: Manifest): string {
  if (kind === 'CustomResourceDefinition') return 'crds';
  if (kind === 'Namespace') return 'namespaces';
  if (apiVersion.startsWith('monitoring.') || metadata.labels?.['grafana_dashboard'] === '1') {
    return 'monitoring';
  }
  const instance = metadata.labels?.[LABEL_APP_INSTANCE];
  return instance === undefined ? 'common' : instance.replace(/^tributary-/, '');
}

export const MADE =
  'Made by tools/generate.ts from src/deploy/installation: edit that, then run npm run generate.';

/** Path under templates/ -> text. */
export function templateFiles(): Record<string, string> {
  const files = new Map<string, string[]>();
  for (const { object, lines } of templates().values()) {
    const file = `templates/${fileOf(object)}.yaml`;
    const before = files.get(file) ?? [`{{- /* ${MADE} */}}`];
    files.set(file, [...before, ...documentOf(lines)]);
  }
  return Object.fromEntries([...files].map(([path, lines]) => [path, `${lines.join('\n')}\n`]));
}

/** The line that separates documents belongs to the object, and is absent with it. */
const documentOf = (lines: readonly string[]): string[] =>
  lines[0]?.startsWith('{{- if ') === true && !lines.includes('{{- else }}')
    ? [lines[0] ?? '', '---', ...lines.slice(1)]
    : ['---', ...lines];
