/** The arguments of `tributary policy share` and `accept`, and the specs that they ask for. */
import type { AcceptancePolicySpec } from '../../api/acceptance-policy.ts';
import { parseAmounts } from '../../api/amounts.ts';
import { isClusterID } from '../../api/forms.ts';
import { type ForeignCluster, peerIDOf } from '../../api/foreign-cluster.ts';
import { checkedSubdomain } from '../../api/manifest.ts';
import { DISCOVERY_SOURCES, type DiscoverySource, type PeerSelector } from '../../api/peer-selector.ts';
import type { SharingPolicySpec } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { ArgumentSpec, Options } from '../command.ts';
import { chosen, type CommandLine, listOf, wrongForm } from '../command-line.ts';
import { OVERWRITE } from '../overwrite.ts';
import { pricesFrom } from './prices.ts';
import { findCluster } from '../peering/foreign-clusters.ts';

export interface PolicyArguments<Spec> {
  name: string;
  /** What is said, without whom it is about. */
  spec: Partial<Spec>;
  /** Undefined: nothing is said; a new policy needs it. */
  peers: (PeerSelector & { names?: readonly string[] }) | undefined;
  mayOverwrite: boolean;
  isDry: boolean;
}

export const POLICY_NAME: ArgumentSpec = { name: 'NAME', text: 'name of the policy', names: 'policies' };

const WHO: Options = {
  peers: { value: 'CLUSTER,...', text: 'these clusters, by name or ClusterID', names: 'foreignclusters' },
  'network-key': { value: 'SECRET', text: 'clusters that hold the key in this Secret of tributary-system' },
  anyone: { text: 'every cluster with an ID of its own, strangers too' },
  'found-by': { value: 'LAN,WAN,...', text: `only of those found so: ${DISCOVERY_SOURCES.join(', ')}` },
};

const WRITING: Options = { ...OVERWRITE, 'dry-run': { text: 'only print what would be written' } };

export const SHARE_OPTIONS: Options = {
  ...WHO,
  percent: { value: 'N', text: 'percent of what is free', fallback: '50' },
  cpu: { value: 'AMOUNT', text: 'never more CPU than this' },
  memory: { value: 'AMOUNT', text: 'never more memory than this' },
  pods: { value: 'N', text: 'never more pods than this' },
  storage: { value: 'AMOUNT', text: 'volumes, in all; none without this' },
  prices: {
    value: 'RESOURCE=PRICE,...',
    text: 'what is asked for a core, a GiB or a piece and hour, such as cpu=0.02EUR,memory=0.005EUR',
  },
  approval: {
    value: 'HOW',
    text: 'who decides when one of them asks',
    choices: ['Manual', 'Automatic', 'Token'],
    fallback: 'Manual',
  },
  'pod-security': {
    value: 'LEVEL',
    text: 'what their pods must satisfy',
    choices: ['baseline', 'restricted', 'privileged'],
    fallback: 'baseline',
  },
  ...WRITING,
};

export const ACCEPT_OPTIONS: Options = {
  ...WHO,
  namespaces: { value: 'NS,...', text: 'namespaces of ours that are to run there', names: 'namespaces' },
  'min-cpu': { value: 'AMOUNT', text: 'refuse offers with less CPU' },
  'min-memory': { value: 'AMOUNT', text: 'refuse offers with less memory' },
  cpu: { value: 'AMOUNT', text: 'take no more CPU of an offer than this' },
  memory: { value: 'AMOUNT', text: 'take no more memory of an offer than this' },
  pods: { value: 'N', text: 'take no more pods of an offer than this' },
  'max-prices': {
    value: 'RESOURCE=PRICE,...',
    text: 'refuse offers that ask more for a core, a GiB or a piece and hour, such as cpu=0.03EUR',
  },
  approval: {
    value: 'HOW',
    text: 'Automatic asks for offers and takes them',
    choices: ['Manual', 'Automatic'],
    fallback: 'Manual',
  },
  shape: {
    value: 'SHAPE',
    text: 'one virtual node for all, or one for each node over there',
    choices: ['Aggregate', 'PerNode'],
    fallback: 'Aggregate',
  },
  ...WRITING,
};

export function parseShare(line: CommandLine): PolicyArguments<SharingPolicySpec> {
  const { values } = line;
  const limits = amounts(line, { cpu: 'cpu', memory: 'memory', pods: 'pods', storage: 'storage' });
  return common<SharingPolicySpec>(line, {
    ...(values['percent'] !== undefined && { sharePercent: percent(values['percent']) }),
    ...(limits && { limits }),
    ...(values['prices'] !== undefined && { prices: pricesFrom('--prices', values['prices']) }),
    ...chosen<SharingPolicySpec>(values['approval'], 'approval'),
    ...chosen<SharingPolicySpec>(values['pod-security'], 'podSecurity'),
  });
}

export function parseAccept(line: CommandLine): PolicyArguments<AcceptancePolicySpec> {
  const { values } = line;
  const ceilings = amounts(line, { cpu: 'cpu', memory: 'memory', pods: 'pods' });
  const minimum = amounts(line, { 'min-cpu': 'cpu', 'min-memory': 'memory' });
  const namespaces = listOf(values['namespaces']);
  return common<AcceptancePolicySpec>(line, {
    ...(namespaces.length > 0 && {
      namespaces: namespaces.map((one) => checkedSubdomain('--namespaces', one)),
    }),
    ...(minimum && { minimum }),
    ...(ceilings && { ceilings }),
    ...(values['max-prices'] !== undefined && {
      maxPrices: pricesFrom('--max-prices', values['max-prices']),
    }),
    ...chosen<AcceptancePolicySpec>(values['approval'], 'approval'),
    ...chosen<AcceptancePolicySpec>(values['shape'], 'shape'),
  });
}

const common = <Spec>(line: CommandLine, spec: Partial<Spec>): PolicyArguments<Spec> => ({
  name: checkedSubdomain('NAME', line.positionals[0] ?? ''),
  spec,
  peers: whoOf(line),
  mayOverwrite: line.flags.has('overwrite'),
  isDry: line.flags.has('dry-run'),
});

function whoOf({ values, flags }: CommandLine): PolicyArguments<never>['peers'] {
  const names = listOf(values['peers']);
  const key = values['network-key'];
  const discovery = listOf(values['found-by']).map(sourceOf);
  const isAnyone = flags.has('anyone');
  if (isAnyone && (names.length > 0 || key !== undefined)) {
    throw wrongForm('--anyone is every cluster: leave out --peers and --network-key, or --anyone');
  }
  const isSaid = isAnyone || names.length > 0 || key !== undefined;
  if (!isSaid && discovery.length > 0)
    throw wrongForm('--found-by narrows --peers, --network-key or --anyone: add one');
  if (!isSaid) return undefined;
  // With the default key, as the API server stores it: else the same command again would seem to change it.
  return {
    ...(names.length > 0 && { names }),
    ...(key !== undefined && {
      networkKeySecretRef: { name: checkedSubdomain('--network-key', key), key: 'key' },
    }),
    ...(isAnyone && { anyone: true }),
    ...(discovery.length > 0 && { discovery }),
  };
}

function sourceOf(text: string): DiscoverySource {
  const found = DISCOVERY_SOURCES.find((source) => source.toLowerCase() === text.toLowerCase());
  if (found !== undefined) return found;
  throw wrongForm(`--found-by must be some of ${DISCOVERY_SOURCES.join(', ')}, not "${text}"`);
}

function percent(text: string): number {
  const value = Number(text);
  if (/^\d{1,3}$/.test(text) && value <= 100) return value;
  throw wrongForm(`--percent must be a whole number from 0 to 100, not "${text}"`);
}

/** By resource, of the options that are given. */
function amounts(
  { values }: CommandLine,
  options: Readonly<Record<string, string>>,
): ResourceList | undefined {
  const list: ResourceList = {};
  for (const [option, resource] of Object.entries(options)) {
    const value = values[option];
    if (value === undefined) continue;
    try {
      parseAmounts({ [resource]: value });
    } catch (error) {
      throw wrongForm(`--${option}: ${errorMessage(error)}`);
    }
    list[resource] = value;
  }
  return Object.keys(list).length === 0 ? undefined : list;
}

/** Names of clusters as their ClusterIDs: policies believe nothing else. Throws NotFound. Pure. */
export function selectorOf(
  { names, ...rest }: NonNullable<PolicyArguments<never>['peers']>,
  clusters: readonly ForeignCluster[],
): PeerSelector {
  if (names === undefined) return rest;
  const ids = names.map((name) => {
    if (isClusterID(name)) return name;
    const id = peerIDOf(findCluster(clusters, name));
    if (id === undefined) throw wrongForm(`the ClusterID of ${name} is not known yet: name it by its ID`);
    return id;
  });
  return { ...rest, clusterIDs: [...new Set(ids)].toSorted() };
}
