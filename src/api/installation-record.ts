/**
 * The ConfigMap in which `tributary install` and `tributary upgrade` record what is installed. While they change it, the record also
 * says what they want, so that a run that was killed can be noticed and gone on with.
 */
import { SYSTEM_NAMESPACE } from './manifest.ts';

export const INSTALLATION_REF: { readonly namespace: string; readonly name: string } = {
  namespace: SYSTEM_NAMESPACE,
  name: 'tributary-installation',
};

/** UnderWay: it runs, or was killed. Failed: it has said why, and the next one goes back. */
export type ChangeState = (typeof STATES)[number];
const STATES = ['UnderWay', 'Failed'] as const;

/** What somebody has begun to make of an installation. */
export interface Change {
  readonly version: string;
  /** YAML. */
  readonly values: string;
  readonly state: ChangeState;
  /** As in 2026-01-01T12:00:00Z. */
  readonly since: string;
}

export interface InstallationRecord {
  readonly version: string;
  /** YAML. */
  readonly values: string;
  readonly change?: Change;
}

type Data = Readonly<Record<string, string>>;

/** Written with every record, so that a change that was under way has ended whatever else stays of it. */
const FINISHED = 'Finished';

export const installationData = ({
  version,
  values,
  change,
}: InstallationRecord): Record<string, string> => ({
  version,
  values,
  changeState: change?.state ?? FINISHED,
  ...(change !== undefined && {
    changeTo: change.version,
    changeValues: change.values,
    changeSince: change.since,
  }),
});

export function readInstallation(data: Data = {}): InstallationRecord {
  const { version = '', values = '', changeState, changeTo, changeValues, changeSince = '' } = data;
  const state = STATES.find((one) => one === changeState);
  if (state === undefined || changeTo === undefined || changeValues === undefined) return { version, values };
  return { version, values, change: { version: changeTo, values: changeValues, state, since: changeSince } };
}

/** What people are told of a change that has not ended. One that still runs says so itself, where it runs. */
export function changeText({ version, values, change }: InstallationRecord): string | undefined {
  if (change === undefined) return undefined;
  const isFirst = change.version === version && change.values === values;
  const what = `${isFirst ? 'the installation of' : 'the upgrade to'} Tributary ${change.version}, begun at ${change.since},`;
  return change.state === 'Failed'
    ? `${what} has failed half-way: go back to the values of before, or repeat it with its values`
    : `${what} was not finished: unless it still runs, repeat it; without values it goes on with those that it had`;
}
