/** The arguments of `tributary offload`, and the spec that they ask for. */
import type { LabelSelector } from '../../api/label-selector.ts';
import { matchesSelector } from '../../api/label-selector.ts';
import { LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN } from '../../api/limits.ts';
import { checkedLabel } from '../../api/manifest.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { type NamespaceOffloadingSpec, POD_STRATEGIES } from '../../api/namespace-offloading.ts';
import { DEFAULT_PLACEMENT, PLACEMENTS } from '../../api/placement.ts';
import { nodeLabelsOf } from '../../api/node-labels.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Options } from '../command.ts';
import { chosen, type CommandLine, listOf, wrongForm } from '../command-line.ts';
import { parseSeconds, timeoutMsOf } from '../durations.ts';
import { clusterNameOf, providerOf } from '../look/use.ts';
import { OVERWRITE } from '../overwrite.ts';
import { checkedNamespace } from './offloading.ts';

/** By labels, or by names, which are looked up. */
type Clusters = { labels: Record<string, string> } | { names: readonly string[] };

export interface OffloadArguments {
  namespace: string;
  /** What is said, and nothing else: what is not said stays as it is. */
  spec: NamespaceOffloadingSpec;
  clusters: Clusters | undefined;
  mayOverwrite: boolean;
  isDry: boolean;
  timeoutMs: number;
}

export const OFFLOAD_OPTIONS: Options = {
  strategy: {
    value: 'STRATEGY',
    text: 'where pods run',
    choices: POD_STRATEGIES,
    fallback: 'LocalAndRemote',
  },
  clusters: {
    value: 'NAME,...|LABEL=VALUE,...',
    text: 'only these clusters, or those whose virtual nodes have all of these labels',
    fallback: 'all that lend to us',
    names: 'foreignclusters',
  },
  'name-mapping': {
    value: 'Suffixed|Same|NAME',
    text: 'what the namespace is called over there; cannot be changed later',
    fallback: 'what the provider chooses',
  },
  'existing-pods': {
    value: 'WHAT',
    text: 'what happens to pods that are here already',
    choices: ['Stay', 'Move'],
    fallback: 'Stay',
  },
  'when-away': {
    value: 'Stay|Anywhere:DURATION|Home:DURATION',
    text: 'what becomes of pods over there when their cluster is away: they stay, or go elsewhere or home after that time',
    fallback: 'as Kubernetes does: anywhere after 5m',
  },
  placement: {
    value: 'HOW',
    text: 'how rules about hosts and zones travel',
    choices: PLACEMENTS,
    fallback: DEFAULT_PLACEMENT,
  },
  ...OVERWRITE,
  'dry-run': { text: 'only print what would be written' },
  timeout: { value: 'DURATION', text: 'how long to wait', fallback: '60s' },
};

export function parseOffload({ values, flags, positionals: [name = ''] }: CommandLine): OffloadArguments {
  return {
    namespace: checkedNamespace(name),
    spec: {
      ...chosen<NamespaceOffloadingSpec>(values['strategy'], 'podStrategy'),
      ...naming(values['name-mapping']),
      ...chosen<NamespaceOffloadingSpec>(values['existing-pods'], 'existingPods'),
      ...whenAway(values['when-away']),
      ...chosen<NamespaceOffloadingSpec>(values['placement'], 'placement'),
    },
    clusters: clustersOf(values['clusters']),
    mayOverwrite: flags.has('overwrite'),
    isDry: flags.has('dry-run'),
    timeoutMs: timeoutMsOf({ values }, '60s'),
  };
}

function naming(text: string | undefined): NamespaceOffloadingSpec {
  if (text === undefined) return {};
  if (text === 'Suffixed' || text === 'Same') return { naming: text };
  return { naming: 'Selected', remoteName: checkedLabel('--name-mapping', text) };
}

/** Kubernetes asks for whole seconds; the CRD has the same bound. */
const LONGEST_STAY = 30 * 86_400;

function whenAway(text: string | undefined): NamespaceOffloadingSpec {
  if (text === undefined) return {};
  if (text === 'Stay') return { whenAway: { pods: 'Stay' } };
  const [, to, after = ''] = /^(Anywhere|Home):(.*)$/u.exec(text) ?? [];
  if (to !== 'Anywhere' && to !== 'Home') {
    throw wrongForm(
      `--when-away: "${text}" is not Stay, Anywhere:DURATION or Home:DURATION, such as Home:5m`,
    );
  }
  const afterSeconds = parseSeconds(after, { option: 'when-away', least: 0, most: LONGEST_STAY });
  return { whenAway: { pods: 'Move', afterSeconds, to } };
}

const KEY = new RegExp(LABEL_KEY_PATTERN, 'u');
const VALUE = new RegExp(LABEL_VALUE_PATTERN, 'u');

function clustersOf(text: string | undefined): Clusters | undefined {
  if (text === undefined) return undefined;
  const words = listOf(text);
  if (words.length === 0) throw wrongForm('--clusters needs a name, or LABEL=VALUE');
  const pairs = words.filter((word) => word.includes('='));
  if (pairs.length === 0) return { names: words };
  if (pairs.length < words.length) throw wrongForm('--clusters takes names or LABEL=VALUE, not both at once');
  const labels: Record<string, string> = {};
  for (const pair of pairs) {
    const [key = '', ...rest] = pair.split('=');
    const value = rest.join('=');
    if (!KEY.test(key) || !VALUE.test(value)) throw wrongForm(`--clusters: "${pair}" is not LABEL=VALUE`);
    if (Object.hasOwn(labels, key) && labels[key] !== value) {
      throw wrongForm(`--clusters: a node has one value of ${key}, not both "${labels[key]}" and "${value}"`);
    }
    labels[key] = value;
  }
  return { labels };
}

/** Throws where no virtual node is meant: its pods could run nowhere. Undefined: all are. Pure. */
export function selectorOf(
  clusters: Clusters | undefined,
  all: readonly VirtualNode[],
): LabelSelector | undefined {
  if (clusters === undefined) return undefined;
  if ('labels' in clusters) {
    const selector = { matchLabels: clusters.labels };
    if (all.some((one) => matchesSelector(selector, nodeLabelsOf(one)))) return selector;
    throw new TributaryError('NotFound', `no virtual node has the labels of --clusters; ${known(all)}`);
  }
  return { matchExpressions: [{ key: LABEL_PROVIDER, operator: 'In', values: idsOf(clusters.names, all) }] };
}

/** The ClusterIDs behind names: the only label that no provider can choose. */
function idsOf(names: readonly string[], all: readonly VirtualNode[]): string[] {
  const ids = names.flatMap((name) => {
    const own = all.filter((one) => [clusterNameOf(one), providerOf(one), one.metadata.name].includes(name));
    if (own.length === 0) {
      throw new TributaryError('NotFound', `no cluster "${name}" has a virtual node here; ${known(all)}`);
    }
    return own.map((one) => {
      const id = providerOf(one);
      if (id !== undefined) return id;
      const advice = `--clusters tributary.dev/virtual-node=${one.metadata.name}`;
      throw new TributaryError(
        'Invalid',
        `VirtualNode ${one.metadata.name} was made by hand: select it with ${advice}`,
      );
    });
  });
  return [...new Set(ids)].toSorted();
}

const known = (all: readonly VirtualNode[]): string =>
  all.length === 0 ? NO_CLUSTER : `there are: ${[...new Set(all.map(clusterNameOf))].toSorted().join(', ')}`;

export const NO_CLUSTER =
  'there is no virtual node, so no foreign cluster would take pods; peer with one first: tributary peer --help';
