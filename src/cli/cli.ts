import { systemClock } from '../lib/clock.ts';
import { VERSION } from '../version.ts';
import { AGENT_USAGE, agentCommand } from './agent.ts';
import { type CommandIo, EXIT } from './command-line.ts';
import { CLEAN_UP_USAGE, cleanUpCommand, KERNEL_WIREGUARD_USAGE, kernelWireGuardCommand } from './host.ts';
import { MANIFESTS_USAGE, manifestsCommand } from './manifests.ts';
import { APPROVE_USAGE, approveCommand, RENEW_USAGE, renewCommand } from './peering/approve.ts';
import { type ClusterCommand, openCluster } from './peering/environment.ts';
import { ID_USAGE, idCommand } from './peering/id.ts';
import { NETWORK_KEY_USAGE, networkKeyCommand } from './peering/network-key.ts';
import { isUserCommand } from './peering/peer-arguments.ts';
import { PEER_USAGE, peerCommand } from './peering/peer.ts';
import { PEERINGS_USAGE, peeringsCommand } from './peering/peerings.ts';
import { TETHER_USAGE, tetherCommand } from './peering/tether.ts';
import { TOKEN_USAGE, tokenCommand } from './peering/token.ts';
import { UNPEER_USAGE, unpeerCommand } from './peering/unpeer.ts';
import { UNTETHER_USAGE, untetherCommand } from './peering/untether.ts';
import { openTokenIssuer, TENANT_KUBECONFIG_USAGE, tenantKubeconfigCommand } from './tenant-kubeconfig.ts';
import { TENANT_USAGE, tenantCommand } from './tenant.ts';

/** One sub-command: its arguments without its own name in, an exit code out. */
type Command = (args: string[], io: CommandIo, signal: AbortSignal) => Promise<number>;

/** One that speaks to a running cluster as its user. */
const onCluster =
  (command: ClusterCommand): Command =>
  async (args, io, signal) =>
    command(args, { io, signal, clock: systemClock, open: openCluster });

const peerAsUser = onCluster(peerCommand);

const COMMANDS: Readonly<Record<string, Command>> = {
  cluster: async (args, io, signal) => agentCommand('cluster', args, io, signal),
  all: async (args, io, signal) => agentCommand('all', args, io, signal),
  gateway: async (args, io, signal) => agentCommand('gateway', args, io, signal),
  node: async (args, io, signal) => agentCommand('node', args, io, signal),
  // With an endpoint it is a command for people, without one it is the role.
  peer: async (args, io, signal) =>
    isUserCommand(args) ? peerAsUser(args, io, signal) : agentCommand('peer', args, io, signal),
  unpeer: onCluster(unpeerCommand),
  tether: onCluster(tetherCommand),
  untether: onCluster(untetherCommand),
  peerings: onCluster(peeringsCommand),
  id: onCluster(idCommand),
  token: onCluster(tokenCommand),
  'network-key': onCluster(networkKeyCommand),
  approve: onCluster(approveCommand('Approved')),
  deny: onCluster(approveCommand('Denied')),
  renew: onCluster(renewCommand),
  'clean-up': async (args, io) => cleanUpCommand(args, io),
  'kernel-wireguard': async (args, io) => kernelWireGuardCommand(args, io),
  manifests: async (args, io) => manifestsCommand(args, io),
  tenant: async (args, io) => tenantCommand(args, io),
  'tenant-kubeconfig': async (args, io) => tenantKubeconfigCommand(args, io, openTokenIssuer),
  version: async (_args, io) => {
    io.out(`tributary ${VERSION}\n`);
    return Promise.resolve(EXIT.ok);
  },
};

const USAGE = `usage: ${[
  PEER_USAGE,
  UNPEER_USAGE,
  TETHER_USAGE,
  UNTETHER_USAGE,
  PEERINGS_USAGE,
  ID_USAGE,
  TOKEN_USAGE,
  NETWORK_KEY_USAGE,
  APPROVE_USAGE,
  RENEW_USAGE,
].join('\n       ')}
       ${AGENT_USAGE}
       ${CLEAN_UP_USAGE}
       ${KERNEL_WIREGUARD_USAGE}
       ${MANIFESTS_USAGE}
       ${TENANT_USAGE}
       ${TENANT_KUBECONFIG_USAGE}
       tributary version
`;

/** Finds the sub-command and runs it; the first signal ends an agent in order. */
export async function runCli(args: string[], io: CommandIo, signal: AbortSignal): Promise<number> {
  const [name = 'help', ...rest] = args;
  if (name === 'help' || name === '--help' || name === '-h') {
    io.out(USAGE);
    return EXIT.ok;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    io.err(`tributary: unknown command "${name}"\n${USAGE}`);
    return EXIT.usage;
  }
  return command(rest, io, signal);
}
