/** `tributary tenant`: what to apply in the foreign cluster, so that one peer may run pods there. */
import type { PodSecurityLevel } from '../api/offer.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Isolation } from '../hosting/tenants/isolation.ts';
import { parseQuota } from '../hosting/tenants/quota.ts';
import type { TenantTerms } from '../hosting/annotations.ts';
import { forgeManualTenant, type ManualTenant } from '../hosting/tenants/manual-tenant.ts';
import {
  listOf,
  parseCommandLine,
  printYaml,
  required,
  runCommand,
  type CommandIo,
  type CommandLine,
} from './manifests-output.ts';
import {
  parseCidrs,
  parseClasses,
  parseKeepFor,
  parseNodeSelector,
  parseTolerations,
} from './tenant-terms.ts';

export const TENANT_USAGE = `tributary tenant --peer NAME --namespace TENANT_NS[,TENANT_NS...]
                 [--quota cpu=4,memory=8Gi,pods=100] [--pod-security baseline|restricted]
                 [--runtime-class NAME] [--node-selector LABEL=VALUE,...] [--tolerations KEY[=VALUE][:EFFECT],...]
                 [--storage-class NAME,... --quota requests.storage=10Gi,...] [--keep-for 24h]
                 [--isolation tenant|none] [--own-cidrs CIDR,...]`;

const OPTIONS = [
  'peer',
  'namespace',
  'quota',
  'pod-security',
  'runtime-class',
  'node-selector',
  'tolerations',
  'storage-class',
  'keep-for',
  'isolation',
  'own-cidrs',
];

/**
 * Prints YAML for `kubectl apply --server-side -f -`: the cluster makes the account `default` of a new namespace by
 * itself, and a client-side apply may lose the race for it.
 */
export async function tenantCommand(args: string[], io: CommandIo): Promise<number> {
  return runCommand(TENANT_USAGE, io, () => {
    const line = parseCommandLine(args, OPTIONS);
    const [extra] = line.positionals;
    if (extra !== undefined) throw new TributaryError('Invalid', `unexpected argument "${extra}"`);
    return printYaml(forgeManualTenant({ ...tenantOf(line), ...termsOf(line) }));
  });
}

function tenantOf(line: CommandLine): ManualTenant {
  const { values } = line;
  const ownCidrs = parseCidrs(values['own-cidrs']);
  return {
    peer: required(line, 'peer'),
    namespaces: listOf(required(line, 'namespace')),
    quota: parseQuota(values['quota'] ?? ''),
    podSecurity: podSecurityLevel(values['pod-security'] ?? 'baseline'),
    keepForSeconds: parseKeepFor(values['keep-for'] ?? '24h'),
    isolation: isolationOf(values['isolation'] ?? 'tenant'),
    ...(ownCidrs && { ownCidrs }),
  };
}

function termsOf({ values }: CommandLine): TenantTerms {
  const [runtimeClassName, another] = parseClasses('runtime class', values['runtime-class']);
  if (another !== undefined) throw new TributaryError('Invalid', 'a pod has one runtime class');
  const nodeSelector = parseNodeSelector(values['node-selector']);
  return {
    ...(runtimeClassName !== undefined && { runtimeClassName }),
    ...(nodeSelector && { nodeSelector }),
    tolerations: parseTolerations(values['tolerations']),
    storageClasses: parseClasses('storage class', values['storage-class']),
  };
}

function isolationOf(text: string): Isolation {
  if (text === 'tenant') return 'Tenant';
  if (text === 'none') return 'None';
  throw new TributaryError('Invalid', `isolation "${text}" is neither tenant nor none`);
}

/** `privileged` is not on offer: it would hand over the nodes. */
function podSecurityLevel(text: string): PodSecurityLevel {
  if (text === 'baseline' || text === 'restricted') return text;
  throw new TributaryError('Invalid', `Pod Security level "${text}" is neither baseline nor restricted`);
}
