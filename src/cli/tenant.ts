/** `tributary tenant`: what to apply in the foreign cluster, so that one peer may run pods there. */
import { checkedSubdomain } from '../api/manifest.ts';
import { POD_SECURITY_LEVELS, type PodSecurityLevel } from '../api/offer.ts';
import { NEVER_TOLERATED } from '../api/taints.ts';
import type { Toleration } from '../api/wire.ts';
import type { TenantTerms } from '../hosting/annotations.ts';
import type { Isolation } from '../hosting/tenants/isolation.ts';
import { forgeManualTenant, type ManualTenant } from '../hosting/tenants/manual-tenant.ts';
import { parseQuota } from '../hosting/tenants/quota.ts';
import { TributaryError } from '../lib/errors.ts';
import { formatPrefix, parsePrefix } from '../lib/prefix.ts';
import { type Command, defineCommand } from './command.ts';
import { chosen, type CommandLine, EXIT, listOf, required } from './command-line.ts';
import { printYaml } from './yaml.ts';
import { parseSeconds } from './durations.ts';

/** A label's or taint's key: an optional DNS name, a slash, a name. */
const KEY = /^(?=.{1,317}$)([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const EFFECTS: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);
const MAX_NAME = 253;

/** `key=value,...`; undefined without any. */
export function parseNodeSelector(text: string | undefined): Record<string, string> | undefined {
  const entries = listOf(text).map((part): [string, string] => {
    const [key = '', value, ...rest] = part.split('=');
    if (value === undefined || rest.length > 0 || !KEY.test(key) || !VALUE.test(value)) {
      throw new TributaryError(
        'Invalid',
        `node selector "${part}" is not of the form label=value, as in example.com/lends=yes`,
      );
    }
    return [key, value];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** `key[=value][:Effect],...`: without a value any, without an effect all. */
export const parseTolerations = (text: string | undefined): Toleration[] =>
  listOf(text).map((part): Toleration => {
    const [taint = '', effect, ...more] = part.split(':');
    const [key = '', value, ...rest] = taint.split('=');
    const isEffect = effect === undefined || EFFECTS.has(effect);
    if (more.length + rest.length > 0 || !isEffect || !KEY.test(key) || !VALUE.test(value ?? '')) {
      throw new TributaryError(
        'Invalid',
        `toleration "${part}" is not of the form key[=value][:Effect], as in example.com/guests:NoSchedule`,
      );
    }
    return {
      key,
      operator: value === undefined ? 'Exists' : 'Equal',
      ...(value !== undefined && { value }),
      ...(effect !== undefined && { effect }),
    };
  });

const parseTaintKeys = (text: string | undefined): string[] =>
  listOf(text).map((key) => {
    const never = NEVER_TOLERATED.find((prefix) => key.startsWith(prefix));
    if (never !== undefined) {
      throw new TributaryError(
        'Invalid',
        `own toleration "${key}": taints of ${never} are opened to no peer`,
      );
    }
    if (key === '*' || KEY.test(key)) return key;
    throw new TributaryError('Invalid', `own toleration "${key}" is no key of a taint, and not *`);
  });

export const parseClasses = (what: string, text: string | undefined): string[] =>
  listOf(text).map((name) => checkedSubdomain(what, name, MAX_NAME));

/** CIDRs; undefined without any. */
export function parseCidrs(text: string | undefined): string[] | undefined {
  const cidrs = listOf(text).map((cidr) => formatPrefix(parsePrefix(cidr)));
  return cidrs.length === 0 ? undefined : cidrs;
}

/**
 * Prints YAML for `kubectl apply --server-side -f -`: the cluster makes the account `default` of a new namespace by
 * itself, and a client-side apply may lose the race for it.
 */
export const tenantCommand: Command = defineCommand({
  name: 'tenant',
  summary: 'Print what lets one peer run pods here, without peering (docs/by-hand.md).',
  options: {
    peer: { value: 'NAME', text: 'whom it is for', isRequired: true },
    namespace: { value: 'TENANT_NS,...', text: 'namespaces to make', isRequired: true },
    quota: { value: 'RESOURCE=AMOUNT,...', text: 'of each of them, such as cpu=4,memory=8Gi,pods=100' },
    'pod-security': {
      value: 'LEVEL',
      text: 'of its pods: baseline, restricted or privileged',
      fallback: 'baseline',
    },
    'runtime-class': { value: 'NAME', text: 'forced on its pods' },
    'node-selector': { value: 'LABEL=VALUE,...', text: 'nodes that its pods are held to' },
    tolerations: { value: 'KEY[=VALUE][:EFFECT],...', text: 'taints that its pods tolerate' },
    'own-tolerations': { value: 'KEY,...', text: 'taints that its pods may tolerate themselves; * for most' },
    'image-pulls': {
      value: 'HOW',
      text: 'Always: forced on its pods; needs role cluster here',
      choices: ['Always', 'AsAsked'],
      fallback: 'AsAsked',
    },
    'external-names': { text: 'its Services may be of type ExternalName' },
    'priority-class': { value: 'NAME,...', text: 'that its pods may name; with preemptionPolicy: Never' },
    'storage-class': { value: 'NAME,...', text: 'that it may use; each needs a quota' },
    'keep-for': { value: 'DURATION', text: 'how long its pods outlive an absent home', fallback: '24h' },
    isolation: { value: 'tenant|none', text: 'none: no NetworkPolicy around it', fallback: 'tenant' },
    'own-cidrs': { value: 'CIDR,...', text: 'own ranges that its pods must not reach' },
  },
  act: async (line, { io }) => {
    io.out(printYaml(forgeManualTenant({ ...tenantOf(line), ...termsOf(line) })));
    return Promise.resolve(EXIT.ok);
  },
});

function tenantOf(line: CommandLine): ManualTenant {
  const { values } = line;
  const ownCidrs = parseCidrs(values['own-cidrs']);
  return {
    peer: required(line, 'peer'),
    namespaces: listOf(required(line, 'namespace')),
    quota: parseQuota(values['quota'] ?? ''),
    podSecurity: podSecurityLevel(values['pod-security'] ?? 'baseline'),
    keepForSeconds: parseSeconds(values['keep-for'] ?? '24h', { option: 'keep-for', least: 0 }),
    isolation: isolationOf(values['isolation'] ?? 'tenant'),
    ...(ownCidrs && { ownCidrs }),
  };
}

function termsOf({ values, flags }: CommandLine): TenantTerms {
  const [runtimeClassName, another] = parseClasses('runtime class', values['runtime-class']);
  if (another !== undefined) throw new TributaryError('Invalid', 'a pod has one runtime class');
  const nodeSelector = parseNodeSelector(values['node-selector']);
  return {
    ...(runtimeClassName !== undefined && { runtimeClassName }),
    ...(nodeSelector && { nodeSelector }),
    tolerations: parseTolerations(values['tolerations']),
    ownTolerations: parseTaintKeys(values['own-tolerations']),
    ...chosen<TenantTerms>(values['image-pulls'], 'imagePullPolicy'),
    ...(flags.has('external-names') && { externalNames: 'Allow' as const }),
    priorityClasses: parseClasses('priority class', values['priority-class']),
    storageClasses: parseClasses('storage class', values['storage-class']),
  };
}

function isolationOf(text: string): Isolation {
  if (text === 'tenant') return 'Tenant';
  if (text === 'none') return 'None';
  throw new TributaryError('Invalid', `isolation "${text}" is neither tenant nor none`);
}

function podSecurityLevel(text: string): PodSecurityLevel {
  const level = POD_SECURITY_LEVELS.find((one) => one === text);
  if (level !== undefined) return level;
  throw new TributaryError(
    'Invalid',
    `Pod Security level "${text}" is none of ${POD_SECURITY_LEVELS.join(', ')}`,
  );
}
