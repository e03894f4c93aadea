/** Which version is installed, with which values, and whether another one may take its place. */
import {
  type Change,
  INSTALLATION_REF,
  installationData,
  readInstallation,
} from '../../api/installation-record.ts';
import { APP_NAME, LABEL_APP_NAME, type Manifest, type ManifestOf } from '../../api/manifest.ts';
import { configMaps, definitions } from '../../api/resources.ts';
import type { ConfigMap } from '../../api/wire.ts';
import { type InstallValues, VALUE_NAMES, VALUES } from '../../deploy/installation/values.ts';
import { TributaryError } from '../../lib/errors.ts';
import { printYaml } from '../yaml.ts';
import { found, listed } from './objects.ts';
import { checkedSome, isValueName, optionOf, type SomeValues, uncheckedOfYaml } from './values.ts';
import type { InstallSession } from './waiting.ts';

export interface Installed {
  readonly version: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** What somebody has begun to make of it, and has not finished. */
  readonly change?: Omit<Change, 'values'> & { readonly values: Readonly<Record<string, unknown>> };
}

const WHERE = `ConfigMap ${INSTALLATION_REF.namespace}/${INSTALLATION_REF.name}`;

/** Undefined where `tributary install` has not been here. */
export async function installedOf(session: InstallSession): Promise<Installed | undefined> {
  const map = await found(session, configMaps, INSTALLATION_REF);
  if (map === undefined) return undefined;
  const { version, values, change } = readInstallation(map.data);
  return {
    version,
    values: uncheckedOfYaml(values, WHERE),
    ...(change !== undefined && { change: { ...change, values: uncheckedOfYaml(change.values, WHERE) } }),
  };
}

/** A change that was interrupted is gone on with; one that has failed is gone back from. */
const recordedIn = ({ values, change }: Installed): Installed['values'] =>
  change?.state === 'UnderWay' ? change.values : values;

/**
 * What is chosen now takes the place of what was installed, also where that is no longer permitted. What another version knows and this
 * one does not is left out.
 */
export const valuesAfter = (installed: Installed, chosen: SomeValues): SomeValues =>
  checkedSome(
    {
      ...Object.fromEntries(Object.entries(recordedIn(installed)).filter(([name]) => isValueName(name))),
      ...chosen,
    },
    (name) => `${WHERE}: ${name}`,
  );

/** What an upgrade says of values that it leaves out; undefined: there are none. */
export function unknownLine(installed: Installed): string | undefined {
  const names = Object.keys(recordedIn(installed)).filter((name) => !isValueName(name));
  return names.length === 0 ? undefined : `not known to this version, left out: ${names.join(', ')}`;
}

/** What an installation over one that is there says of values that it forgets; undefined: it forgets none. */
export function resetLine(
  installed: Installed,
  chosen: SomeValues,
  values: InstallValues,
): string | undefined {
  const recorded = recordedIn(installed);
  const reset = VALUE_NAMES.flatMap((name) => {
    const was = recorded[name];
    const isReset =
      !Object.hasOwn(chosen, name) &&
      isEqual(values[name], VALUES[name].default) &&
      !isEqual(was, values[name]);
    return was === undefined || !isReset ? [] : [`--${optionOf(name)} (was ${shown(was)})`];
  });
  if (reset.length === 0) return undefined;
  return `back to default: ${reset.join(', ')}. To keep what is not named, run instead: tributary upgrade`;
}

/** As it is given on the command line. */
const shown = (value: unknown): string =>
  Array.isArray(value) ? value.join(',') : typeof value === 'string' ? value : JSON.stringify(value);

const isEqual = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** What an upgrade says of the one before it; undefined: that one has ended. */
export function beforeLine({ change }: Installed): string | undefined {
  if (change === undefined) return undefined;
  return change.state === 'UnderWay'
    ? `the change to version ${change.version} that began at ${change.since} was not finished: going on with its values`
    : `the change to version ${change.version} that began at ${change.since} has failed: going back to the values of before it`;
}

/** What the next `tributary upgrade` begins with; `change`: what is being made of it. */
export const forgeInstalled = (
  version: string,
  values: Readonly<Record<string, unknown>> | InstallValues,
  change?: Installed['change'],
): ManifestOf<ConfigMap> => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...INSTALLATION_REF, labels: { [LABEL_APP_NAME]: APP_NAME } },
  data: installationData({
    version,
    values: printYaml([values]),
    ...(change !== undefined && { change: { ...change, values: printYaml([change.values]) } }),
  }),
});

interface Stored {
  readonly name: string;
  readonly versions: readonly string[];
}

/**
 * Objects are stored in versions of their kind. A program whose kinds lack one of these would lose the objects. Throws Conflict.
 */
export function checkStored(stored: readonly Stored[], wanted: readonly Manifest[]): void {
  const known = new Map(
    wanted
      .filter(({ kind }) => kind === 'CustomResourceDefinition')
      .map((object) => {
        const { spec } = object as Manifest & { spec: { versions: { name: string }[] } };
        return [object.metadata.name ?? '', new Set(spec.versions.map(({ name }) => name))] as const;
      }),
  );
  const lost = stored.flatMap(({ name, versions }) =>
    versions
      .filter((version) => known.get(name)?.has(version) === false)
      .map((version) => `${name} ${version}`),
  );
  if (lost.length === 0) return;
  throw new TributaryError(
    'Conflict',
    `objects are stored here in versions that this program does not know: ${lost.join(', ')}. A newer version has written them: ` +
      'take that one, or uninstall first, which deletes these objects',
  );
}

export async function storedVersions(session: InstallSession): Promise<Stored[]> {
  const all = await listed(session, definitions, { labelSelector: `${LABEL_APP_NAME}=${APP_NAME}` });
  return all.map(({ metadata, status }) => ({ name: metadata.name, versions: status?.storedVersions ?? [] }));
}
