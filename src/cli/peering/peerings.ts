/** `tributary peerings`: all clusters that are known, and where each peering stands. */
import {
  type Direction,
  FOREIGN_CLUSTER_CONDITIONS,
  FOREIGN_CLUSTER_REASONS,
  type ForeignCluster,
  takesNoNewPods,
} from '../../api/foreign-cluster.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { clusterCommand } from './environment.ts';
import { formatOf, OUTPUT, printedAs } from '../output.ts';
import { listClusters } from './foreign-clusters.ts';
import { table } from './terminal-text.ts';

const HEAD = ['NAME', 'CLUSTER', 'FOUND BY', 'LINK', 'TUNNEL', 'OUTGOING', 'INCOMING'];

export const peeringsCommand: Command = clusterCommand({
  name: 'peerings',
  summary: 'List the clusters that are known, and where each peering stands.',
  options: OUTPUT,
  parse: formatOf,
  run: async (format, session) => {
    const clusters = await listClusters(session);
    const text = (): string =>
      clusters.length === 0 ? 'No other cluster is known.\n' : table(HEAD, clusters.map(row));
    session.io.out(printedAs(format, clusters, text));
    return EXIT.ok;
  },
});

function row(cluster: ForeignCluster): string[] {
  const { metadata, status = {} } = cluster;
  const { link } = status;
  return [
    metadata.name,
    status.clusterName ?? '',
    status.foundBy ?? '',
    link?.connected === true
      ? `${link.dialledBy === 'Them' ? 'from' : 'to'} ${link.endpoint ?? '?'}`
      : 'none',
    tunnelState(cluster),
    state(cluster, 'outgoing'),
    state(cluster, 'incoming'),
  ];
}

/** As in `kubectl get foreignclusters -o wide`, in one word where all is well. */
export function tunnelState({ status }: ForeignCluster): string {
  const network = status?.conditions?.find(({ type }) => type === FOREIGN_CLUSTER_CONDITIONS.network);
  if (network === undefined) return 'none';
  if (network.status === 'True') return 'up';
  return `${network.status === 'False' ? 'down' : 'unknown'} (${network.reason ?? '?'})`;
}

function state({ status }: ForeignCluster, direction: Direction): string {
  const { phase = 'None', reason, message = '' } = status?.[direction] ?? {};
  if (takesNoNewPods(status?.[direction])) return `closed (${message})`;
  const isPlain = reason === undefined || reason === FOREIGN_CLUSTER_REASONS.ok || phase === 'None';
  return isPlain ? phase : `${phase} (${reason})`;
}
