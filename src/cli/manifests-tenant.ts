/** `tributary tenant`: what to apply in the foreign cluster, so that one peer may run pods there. */
import { TributaryError } from '../lib/errors.ts';
import { parseQuota } from '../peering/tenant-quota.ts';
import { forgeTenant, type PodSecurityLevel } from '../peering/tenant.ts';
import {
  listOf,
  parseCommandLine,
  printYaml,
  required,
  runCommand,
  type CommandIo,
} from './manifests-output.ts';

export const TENANT_USAGE = `tributary tenant --peer NAME --namespace TENANT_NS[,TENANT_NS...]
                 [--quota cpu=4,memory=8Gi,pods=100] [--pod-security baseline|restricted]`;

/**
 * Prints YAML for `kubectl apply --server-side -f -`: the cluster makes the account `default` of a new namespace by
 * itself, and a client-side apply may lose the race for it.
 */
export async function tenantCommand(args: string[], io: CommandIo): Promise<number> {
  return runCommand(TENANT_USAGE, io, () => {
    const line = parseCommandLine(args, ['peer', 'namespace', 'quota', 'pod-security']);
    const [extra] = line.positionals;
    if (extra !== undefined) throw new TributaryError('Invalid', `unexpected argument "${extra}"`);
    return printYaml(
      forgeTenant({
        peer: required(line, 'peer'),
        namespaces: listOf(required(line, 'namespace')),
        quota: parseQuota(line.values['quota'] ?? ''),
        podSecurity: podSecurityLevel(line.values['pod-security'] ?? 'baseline'),
      }),
    );
  });
}

/** `privileged` is not on offer: it would hand over the nodes. */
function podSecurityLevel(text: string): PodSecurityLevel {
  if (text === 'baseline' || text === 'restricted') return text;
  throw new TributaryError('Invalid', `Pod Security level "${text}" is neither baseline nor restricted`);
}
