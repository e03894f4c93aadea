/** What the record of an installation says to `status` and `doctor`: which roles must be there, and whether a change has ended. Pure. */
import { changeText, readInstallation } from '../../api/installation-record.ts';
import type { ConfigMap } from '../../api/wire.ts';
import { forgeInstallation } from '../../deploy/installation/objects.ts';
import { defaultValues } from '../../deploy/installation/values.ts';
import type { InstallationFacts } from '../../doctor/facts.ts';
import { hasCode } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { isRole } from './rollout.ts';
import { uncheckedOfYaml } from './values.ts';

/** `map`: the ConfigMap; undefined where `tributary install` has not made the installation, and where it cannot be read. */
export function recordedIn(map: ConfigMap | undefined): InstallationFacts | undefined {
  if (map === undefined) return undefined;
  const record = readInstallation(map.data);
  // What a change was to make is what was applied last.
  const roles = rolesOf(record.change?.values ?? record.values);
  return { roles, ...present({ unfinished: changeText(record) }) };
}

/** Two values say which there are; the others, which another version may have written, make no difference. */
function rolesOf(text: string): InstallationFacts['roles'] {
  const { oneProcess, network } = valuesIn(text);
  const values = { ...defaultValues(), image: 'none', oneProcess: oneProcess === true };
  return forgeInstallation({ ...values, network: network !== false })
    .filter(isRole)
    .map(({ kind, metadata: { namespace = '', name = '' } }) => ({ kind, namespace, name }));
}

function valuesIn(text: string): Readonly<Record<string, unknown>> {
  try {
    return uncheckedOfYaml(text, '');
  } catch (error) {
    if (hasCode(error, 'Invalid')) return {};
    throw error;
  }
}
