/** All commands of the program, in the groups in which its help shows them. */
import { systemClock } from '../lib/clock.ts';
import { type Command, type CommandSpec, defineCommand } from './command.ts';
import { type CommandIo, EXIT } from './command-line.ts';
import { COMPLETE, completed } from './completion/complete.ts';
import { completionCommand } from './completion/completion.ts';
import { dashboardCommand } from './dashboard.ts';
import { doctorCommand } from './doctor/doctor.ts';
import { supportBundleCommand } from './doctor/support-bundle.ts';
import { cleanUpCommand, kernelWireGuardCommand } from './host.ts';
import { installCommand, upgradeCommand } from './install/install.ts';
import { uninstallCommand } from './install/uninstall.ts';
import { discoverCommand } from './look/discover.ts';
import { logsCommand } from './look/logs.ts';
import { statusCommand } from './look/status.ts';
import { topCommand } from './look/top.ts';
import { manifestsCommand } from './manifests.ts';
import { offloadCommand } from './namespaces/offload.ts';
import { unoffloadCommand } from './namespaces/unoffload.ts';
import { approveCommand, renewCommand } from './peering/approve.ts';
import { openCluster, WHERE } from './peering/environment.ts';
import { idCommand } from './peering/id.ts';
import { networkKeyCommand } from './peering/network-key.ts';
import { peerCommand } from './peering/peer-command.ts';
import { peeringsCommand } from './peering/peerings.ts';
import { tetherCommand } from './peering/tether.ts';
import { tokenCommand } from './peering/token.ts';
import { unpeerCommand } from './peering/unpeer.ts';
import { untetherCommand } from './peering/untether.ts';
import { runCommand } from './run.ts';
import { policyCommand } from './sharing/policy.ts';
import { openTokenIssuer, tenantKubeconfigCommand } from './tenant-kubeconfig.ts';
import { tenantCommand } from './tenant.ts';
import { versionCommand } from './version.ts';

/** Headings of the help, with what stands under each. */
const GROUPS: Readonly<Record<string, readonly Command[]>> = {
  'Installation:': [installCommand, upgradeCommand, uninstallCommand],
  'Looking and finding faults:': [
    statusCommand,
    discoverCommand,
    dashboardCommand,
    topCommand,
    logsCommand,
    doctorCommand,
    supportBundleCommand,
  ],
  'Peering:': [
    peerCommand,
    unpeerCommand,
    peeringsCommand,
    idCommand,
    tokenCommand,
    networkKeyCommand,
    approveCommand('Approved'),
    approveCommand('Denied'),
    renewCommand,
  ],
  'Sharing:': [policyCommand],
  'Namespaces:': [offloadCommand, unoffloadCommand],
  'Tethering:': [tetherCommand, untetherCommand],
  'By hand:': [
    manifestsCommand,
    tenantCommand,
    tenantKubeconfigCommand(openTokenIssuer),
    cleanUpCommand,
    kernelWireGuardCommand,
  ],
  'The program itself:': [versionCommand, completionCommand, runCommand],
};

/** The whole program. */
export const PROGRAM: CommandSpec = {
  name: 'tributary',
  summary: 'Liquid computing for Kubernetes: a foreign cluster as a virtual node of your own.',
  about:
    'Commands speak to the cluster that kubectl would speak to. All that they change is in objects that kubectl shows. ' +
    'Exit codes: 0 done, 1 failed, 2 wrong command line, 3 somebody has to decide.',
  options: WHERE,
  children: Object.entries(GROUPS).flatMap(([group, commands]) =>
    commands.map((command) => ({ ...command, spec: { group, ...command.spec } })),
  ),
};

/** A shell asks what may follow; what has not ended by then is of no interest. */
export const isCompletion = (args: readonly string[]): boolean => args[0] === COMPLETE;

/** Whether the words call commands that there are, as far as they call commands. */
function areCommands({ children }: CommandSpec, [word, ...rest]: readonly string[]): boolean {
  if (children === undefined || word === undefined || word.startsWith('-')) return true;
  const called = children.find(({ spec }) => spec.name === word);
  return called !== undefined && areCommands(called.spec, rest);
}

/** What people also say for a command of ours. */
function asCommands(args: readonly string[]): readonly string[] {
  const [first = '', ...rest] = args;
  // A word that is none is complained of as it is without help.
  if (first === 'help') return areCommands(PROGRAM, rest) ? [...rest, '--help'] : rest;
  return first === '--version' ? ['version', ...rest] : args;
}

/** Finds the command and runs it; the first signal ends it in order. `name`: how the program is called. */
export async function runCli(
  args: readonly string[],
  io: CommandIo,
  signal: AbortSignal,
  name: string = PROGRAM.name,
): Promise<number> {
  const environment = { io, signal, clock: systemClock, open: openCluster };
  if (isCompletion(args)) {
    io.out(await completed(PROGRAM, args.slice(1), environment));
    return EXIT.ok;
  }
  const program = defineCommand({ ...PROGRAM, name }, '');
  return program.run(asCommands(args), environment);
}
