/** The values of an installation, from a file, from the command line, and from an earlier installation; checked. */
import { parse } from 'yaml';

import type { Role } from '../../agent/roles.ts';
import { parseConfig } from '../../config.ts';
import {
  argumentsFor,
  defaultValues,
  type Field,
  type Form,
  INSTALLED_ROLES,
  type InstallValues,
  VALUE_NAMES,
  type ValueName,
  VALUES,
} from '../../deploy/installation/values.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import { nearestOf } from '../../lib/nearest.ts';
import type { Options } from '../command.ts';
import { listOf } from '../command-line.ts';
import { isOptionOf, optionsOf } from '../role-options.ts';

export type SomeValues = Partial<InstallValues>;

/** `podCidrs` is `--pod-cidrs`. */
export const optionOf = (name: ValueName): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const WORDS: Readonly<Record<Field['kind'], string>> = {
  text: 'TEXT',
  choice: 'WORD',
  number: 'NUMBER',
  switch: 'BOOLEAN',
  list: 'LIST',
};

/** Each value as an option. */
export const VALUE_OPTIONS: Options = Object.fromEntries(
  VALUE_NAMES.map((name) => {
    const field = VALUES[name];
    const fallback = String(field.default);
    return [
      optionOf(name),
      {
        value: WORDS[field.kind],
        text: (field.onLine ?? field.what)
          .replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())
          .replace(/\.$/, ''),
        ...(fallback !== '' && fallback !== '0' && { fallback }),
        ...(field.kind === 'choice' && { choices: field.choices }),
        ...(field.kind === 'switch' && { choices: ['true', 'false'] }),
      },
    ];
  }),
);

/** Those that are given on the command line; `where`: not as an option. */
export function valuesOfOptions(
  given: Readonly<Record<string, string | undefined>>,
  where?: string,
): SomeValues {
  const named = VALUE_NAMES.flatMap((name): [ValueName, unknown][] => {
    const text = given[optionOf(name)];
    return text === undefined ? [] : [[name, ofText(VALUES[name], text)]];
  });
  return checkedSome(Object.fromEntries(named), (name) => where ?? `--${optionOf(name)}`);
}

/** Left as it is where it cannot be read, so that the check names it. */
function ofText({ kind }: Field, text: string): unknown {
  if (kind === 'list') return listOf(text);
  if (kind === 'number') return /^\d+$/.test(text) ? Number(text) : text;
  if (kind === 'switch') return { true: true, false: false }[text] ?? text;
  return text;
}

/** Of a values file: the same as for the chart. */
export const valuesOfYaml = (text: string, file: string): SomeValues =>
  checkedSome(uncheckedOfYaml(text, file), (name) => `${file}: ${name}`);

/** What was right for the version that has written it need not be so for this one. */
export function uncheckedOfYaml(text: string, file: string): Readonly<Record<string, unknown>> {
  let object: unknown;
  try {
    object = parse(text) ?? {};
  } catch (error) {
    throw new TributaryError('Invalid', `${file} is no YAML: ${errorMessage(error)}`, { cause: error });
  }
  if (typeof object !== 'object' || object === null || Array.isArray(object)) {
    throw new TributaryError('Invalid', `${file} does not hold values, such as "clusterName: rome"`);
  }
  return object as Record<string, unknown>;
}

export const isValueName = (name: string): name is ValueName => Object.hasOwn(VALUES, name);

export function checkedSome(
  values: Readonly<Record<string, unknown>>,
  whereOf: (name: ValueName) => string,
): SomeValues {
  const mistakes = Object.entries(values).flatMap(([name, value]) => {
    if (!isValueName(name)) return [`${whereOf(name as ValueName)} is no value; ${meantBy(name)}`];
    const wrong = wrongIn(VALUES[name], value);
    return wrong === undefined ? [] : [`${whereOf(name)}: ${wrong}`];
  });
  if (mistakes.length > 0) throw new TributaryError('Invalid', mistakes.join('; '));
  return values;
}

function meantBy(name: string): string {
  const near = nearestOf(name, VALUE_NAMES);
  return near === undefined ? `there are ${VALUE_NAMES.join(', ')}` : `did you mean ${near}?`;
}

/** The value and what is wrong with it; undefined: nothing is. */
function wrongIn(field: Field, value: unknown): string | undefined {
  const told = (why: string | undefined): string | undefined => why && `${JSON.stringify(value)} ${why}`;
  switch (field.kind) {
    case 'switch':
      return told(typeof value === 'boolean' ? undefined : 'is neither true nor false');
    case 'number': {
      const isNumber =
        Number.isInteger(value) && (value as number) >= field.least && (value as number) <= field.most;
      return told(isNumber ? undefined : `is no number from ${field.least} to ${field.most}`);
    }
    case 'choice':
      return told(
        field.choices.includes(value as string) ? undefined : `is none of ${field.choices.join(', ')}`,
      );
    case 'list':
      return Array.isArray(value) ? wrongInList(field, value) : told('is no list');
    default:
      return wrongText(field.form, value);
  }
}

const wrongInList = ({ form }: { form?: Form }, all: readonly unknown[]): string | undefined =>
  all.map((one) => wrongText(form, one)).find((wrong) => wrong !== undefined);

function wrongText(form: Form | undefined, value: unknown): string | undefined {
  if (typeof value !== 'string') return `${JSON.stringify(value)} is no text`;
  if (form === undefined) return undefined;
  const isWellFormed = new RegExp(form.pattern, 'u').test(value);
  const why = isWellFormed ? value !== '' && form.problem?.(value) : `is not ${form.says}`;
  return why ? `"${value}" ${why}` : undefined;
}

/** Later ones win. The roles themselves must be able to start with them. */
export function wholeValues(...parts: readonly SomeValues[]): InstallValues {
  const values = Object.assign({}, defaultValues(), ...parts) as InstallValues;
  for (const role of INSTALLED_ROLES) {
    const name = `${role}Args` as const;
    // One process takes the options of all.
    const further = furtherOptions(values[name], values.oneProcess ? 'all' : role, `--${optionOf(name)}`);
    const args = argumentsFor(role, values);
    const own = args.flatMap((arg, at) => (at % 2 === 0 ? [[arg.slice(2), args[at + 1]]] : []));
    checkRole(Object.fromEntries([...own, ...further]) as Record<string, string>);
  }
  return values;
}

/** What somebody has added by hand. A role ends at what is no option of its own: its pod would come back again and again. */
function furtherOptions(args: readonly string[], role: Role, where: string): [string, string][] {
  const options: [string, string][] = [];
  const wrong = (why: string): TributaryError => new TributaryError('Invalid', `${where}: ${why}`);
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    const [, name = '', inline] = /^--([^=]+)(?:=(.*))?$/su.exec(arg) ?? [];
    if (!isOptionOf(role, name)) {
      const near = nearestOf(name, optionsOf(role));
      const meant =
        near === undefined
          ? `what it has is shown by: tributary run ${role} --help`
          : `did you mean --${near}?`;
      throw wrong(`"${arg}" is no option of role ${role}; ${meant}`);
    }
    const value = inline ?? args[++at];
    if (value === undefined) throw wrong(`--${name} needs a value`);
    if (inline === undefined && value.startsWith('--'))
      throw wrong(`--${name} needs a value; "${value}" follows it`);
    options.push([name, value]);
  }
  return options;
}

/** Roles call some options otherwise than a person who installs does. */
function checkRole(options: Readonly<Record<string, string>>): void {
  try {
    parseConfig({ options, env: {}, hostname: '' });
  } catch (error) {
    if (!hasCode(error, 'Invalid')) throw error;
    const said = errorMessage(error).replaceAll(/--([a-z-]+)/g, (typed, option: string) => {
      const name = VALUE_NAMES.find((one) => VALUES[one].option?.name === option);
      return name === undefined ? typed : `--${optionOf(name)}`;
    });
    // Its message has the other names: it is not a cause that people should read.
    throw new TributaryError('Invalid', said);
  }
}
