/** Which version is installed, with which values, and whether another one may take its place. */
import {
  APP_NAME,
  LABEL_APP_NAME,
  type ManifestOf,
  SYSTEM_NAMESPACE,
  type Manifest,
} from '../../api/manifest.ts';
import { configMaps, definitions } from '../../api/resources.ts';
import type { ConfigMap } from '../../api/wire.ts';
import type { InstallValues } from '../../deploy/installation/values.ts';
import { TributaryError } from '../../lib/errors.ts';
import { printYaml } from '../yaml.ts';
import { found, listed } from './objects.ts';
import { checkedSome, type SomeValues, uncheckedOfYaml } from './values.ts';
import type { InstallSession } from './waiting.ts';

const REF = { namespace: SYSTEM_NAMESPACE, name: 'tributary-installation' };

export interface Installed {
  readonly version: string;
  readonly values: Readonly<Record<string, unknown>>;
}

const WHERE = `ConfigMap ${REF.namespace}/${REF.name}`;

/** Undefined where `tributary install` has not been here. */
export async function installedOf(session: InstallSession): Promise<Installed | undefined> {
  const map = await found(session, configMaps, REF);
  if (map === undefined) return undefined;
  const { version = '', values = '' } = map.data ?? {};
  return { version, values: uncheckedOfYaml(values, WHERE) };
}

/** What is chosen now takes the place of what was installed, also where that is no longer permitted. */
export const valuesAfter = ({ values }: Installed, chosen: SomeValues): SomeValues =>
  checkedSome({ ...values, ...chosen }, (name) => `${WHERE}: ${name}`);

/** What the next `tributary upgrade` begins with. */
export const forgeInstalled = (version: string, values: InstallValues): ManifestOf<ConfigMap> => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...REF, labels: { [LABEL_APP_NAME]: APP_NAME } },
  data: { version, values: printYaml([values]) },
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
