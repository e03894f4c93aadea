/** `tributary install` and `tributary upgrade`: from what was found out and chosen to roles that run. */
import { readFileSync } from 'node:fs';

import { deployments } from '../../api/resources.ts';
import { isOneProcess } from '../../api/one-process.ts';
import { CLUSTER_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { forgeInstallation } from '../../deploy/installation/objects.ts';
import type { InstallValues } from '../../deploy/installation/values.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import { VERSION } from '../../version.ts';
import { agreed, YES } from '../agreement.ts';
import type { Command, Options } from '../command.ts';
import { type CommandLine, EXIT, wrongForm } from '../command-line.ts';
import { printYaml } from '../yaml.ts';
import { timeoutMsOf } from '../durations.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { awaitAgents } from './agents.ts';
import { bring, type Bringing } from './bring.ts';
import { factsOf } from './facts.ts';
import { helmRelease } from './helm.ts';
import { checkImage } from './image-check.ts';
import { found } from './objects.ts';
import { checkFacts, checkOneProcess, checkWireGuard, foundValues, planLines } from './plan.ts';
import { type SomeValues, VALUE_OPTIONS, valuesOfOptions, valuesOfYaml, wholeValues } from './values.ts';
import {
  beforeLine,
  checkStored,
  installedOf,
  resetLine,
  storedVersions,
  unknownLine,
  valuesAfter,
} from './versions.ts';
import type { InstallSession } from './waiting.ts';

interface InstallArguments {
  readonly chosen: SomeValues;
  readonly isDry: boolean;
  readonly isSure: boolean;
  readonly isForced: boolean;
  /** Of an upgrade: what of `chosen` was not recorded, but is chosen now. */
  readonly given?: SomeValues;
  readonly timeoutMs: number;
}

const OPTIONS: Options = {
  values: { value: 'FILE', text: 'YAML with values, as for the Helm chart', names: 'files' },
  ...VALUE_OPTIONS,
  'dry-run': { text: 'print all objects as YAML, and change nothing' },
  force: { text: 'take --wireguard kernel although a gateway has found no WireGuard in its kernel' },
  yes: YES,
  timeout: { value: 'DURATION', text: 'how long each role may take to become ready', fallback: '5m' },
};

export const installCommand: Command = clusterCommand({
  name: 'install',
  summary: 'Install Tributary in a cluster, and wait until it runs.',
  about:
    'Addresses, ranges and rights are found out and shown, and you are asked before they are used; without a terminal, --yes says so. ' +
    'Run it again with other values to change them. What the values no longer ask for is removed.',
  arguments: [{ name: 'CLUSTER_NAME', text: 'what people call this cluster', isOptional: true }],
  options: OPTIONS,
  examples: [
    { line: 'tributary install rome --image IMAGE', does: 'Install it under the name rome' },
    {
      line: 'tributary install --values rome.yaml --dry-run',
      does: 'Show all objects that these values make',
    },
  ],
  parse,
  run: install,
});

export const upgradeCommand: Command = clusterCommand({
  name: 'upgrade',
  summary: 'Replace the installed version by this one, with the values that are installed.',
  about:
    'You are asked first; without a terminal, --yes says so. An image that cannot be pulled is told before anything is changed. Roles are ' +
    'replaced one after the other; where one does not become ready, upgrade without values goes back to those of before. Objects that ' +
    'this version no longer has are removed. To go back to an older version, run upgrade of the older program: it refuses where ' +
    'objects are stored in a version of their kind that it does not know.',
  options: OPTIONS,
  examples: [{ line: 'tributary upgrade --image IMAGE', does: 'Replace the program' }],
  parse,
  run: upgrade,
});

async function upgrade(args: InstallArguments, session: Session): Promise<number> {
  const installed = await installedOf(session);
  if (installed === undefined) {
    throw new TributaryError(
      'NotFound',
      'there is nothing to upgrade: this cluster has no installation that tributary install has made. To make one: tributary install',
    );
  }
  if (!args.isDry) {
    const lines = [
      `from version ${installed.version} to ${VERSION}`,
      beforeLine(installed),
      unknownLine(installed),
    ];
    for (const line of lines) if (line !== undefined) session.io.out(`${line}\n`);
  }
  return install({ ...args, given: args.chosen, chosen: valuesAfter(installed, args.chosen) }, session);
}

function parse(line: CommandLine): InstallArguments {
  const { values, flags } = line;
  const [name] = line.positionals;
  const named = values['cluster-name'];
  if (name !== undefined && named !== undefined && name !== named) {
    throw wrongForm(
      `the cluster has two names here, CLUSTER_NAME "${name}" and --cluster-name "${named}": give one`,
    );
  }
  const file = values['values'];
  const chosen = {
    ...(file !== undefined && valuesOfYaml(readFile(file), file)),
    ...valuesOfOptions(values),
    ...(name !== undefined && valuesOfOptions({ 'cluster-name': name }, 'CLUSTER_NAME')),
  };
  return {
    chosen,
    isDry: flags.has('dry-run'),
    isSure: flags.has('yes'),
    isForced: flags.has('force'),
    timeoutMs: timeoutMsOf(line, '5m'),
  };
}

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = isMissing ? `there is no file ${file} (--values)` : errorMessage(error);
    throw new TributaryError('Invalid', why);
  }
}

export async function install(args: InstallArguments, session: Session): Promise<number> {
  const { chosen, isDry, isSure, timeoutMs } = args;
  const { io } = session;
  if (chosen.image === undefined || chosen.image === '') {
    throw new TributaryError(
      'Invalid',
      'name the image, with --image: none is published yet; make image builds one',
    );
  }
  const release = await helmRelease(session);
  if (release !== undefined && !isDry) {
    throw new TributaryError(
      'Conflict',
      `Helm has installed it: run helm upgrade ${release.name} --namespace ${release.namespace}`,
    );
  }
  const facts = await factsOf(session, forgeInstallation(wholeValues(chosen)));
  const values = wholeValues(foundValues(facts, chosen), chosen);
  const objects = forgeInstallation(values);
  if (isDry) {
    io.out(printYaml(objects));
    return EXIT.ok;
  }
  checkFacts(facts);
  checkOneProcess(facts, values, args.given !== undefined && args.given.oneProcess === undefined);
  if (!args.isForced) checkWireGuard(facts, values);
  checkStored(await storedVersions(session), objects);
  io.out(`${planLines(facts, values, VERSION).join('\n')}\n`);
  if (args.given === undefined) await tellReset(session, chosen, values);
  if (!isSure && !(await agreed(session, { question: 'Install this?' }))) {
    io.err('Nothing was changed.\n');
    return EXIT.failed;
  }
  await bring(session, { objects, values, timeoutMs, ...(await replacementBy(session, values, timeoutMs)) });
  await awaitAgents(session, values, timeoutMs);
  const done = args.given === undefined ? 'Installed' : 'Upgraded';
  io.out(session.pastable(`${done}. To see how it is: tributary status\n`));
  return EXIT.ok;
}

/** An upgrade forgets nothing. */
async function tellReset(session: Session, chosen: SomeValues, values: InstallValues): Promise<void> {
  const installed = await installedOf(session);
  const line = installed && resetLine(installed, chosen, values);
  if (line !== undefined) session.io.out(session.pastable(`${line}\n`));
}

/** What is to be replaced, after the other image was tried. */
async function replacementBy(
  session: InstallSession,
  { image, oneProcess }: InstallValues,
  timeoutMs: number,
): Promise<Pick<Bringing, 'isReplacement' | 'isInTurn'>> {
  const running = await found(session, deployments, { namespace: SYSTEM_NAMESPACE, name: CLUSTER_NAME });
  const before = running?.spec?.template.spec?.containers[0]?.image;
  if (before === undefined) return { isReplacement: false, isInTurn: false };
  if (before !== image) await checkImage(session, { image, timeoutMs });
  return { isReplacement: true, isInTurn: isOneProcess(running) === oneProcess };
}
