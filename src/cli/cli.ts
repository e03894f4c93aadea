import { VERSION } from '../version.ts';
import { AGENT_USAGE, agentCommand } from './agent.ts';
import { MANIFESTS_USAGE, manifestsCommand } from './manifests.ts';
import type { CommandIo } from './manifests-output.ts';
import { EXIT } from './manifests-output.ts';
import { TENANT_KUBECONFIG_USAGE, tenantKubeconfigCommand } from './manifests-tenant-kubeconfig.ts';
import { TENANT_USAGE, tenantCommand } from './manifests-tenant.ts';
import { openTokenIssuer } from './manifests-token-issuer.ts';

/** One sub-command: its arguments without its own name in, an exit code out. */
type Command = (args: string[], io: CommandIo, signal: AbortSignal) => Promise<number>;

const COMMANDS: Readonly<Record<string, Command>> = {
  cluster: async (args, io, signal) => agentCommand('cluster', args, io, signal),
  peer: async (args, io, signal) => agentCommand('peer', args, io, signal),
  manifests: async (args, io) => manifestsCommand(args, io),
  tenant: async (args, io) => tenantCommand(args, io),
  'tenant-kubeconfig': async (args, io) => tenantKubeconfigCommand(args, io, openTokenIssuer),
  version: async (_args, io) => {
    io.out(`tributary ${VERSION}\n`);
    return Promise.resolve(EXIT.ok);
  },
};

const USAGE = `usage: ${AGENT_USAGE}
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
