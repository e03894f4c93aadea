/** `tributary peerings`: all clusters that are known, and where each peering stands. */
import { type Direction, FOREIGN_CLUSTER_REASONS, type ForeignCluster } from '../../api/foreign-cluster.ts';
import { EXIT, positionals } from '../command-line.ts';
import { type ClusterCommand, clusterCommand } from './environment.ts';
import { listClusters } from './foreign-clusters.ts';
import { table } from './terminal-text.ts';

export const PEERINGS_USAGE = 'tributary peerings [--kubeconfig FILE] [--context NAME]';

const HEAD = ['NAME', 'CLUSTER', 'FOUND BY', 'LINK', 'OUTGOING', 'INCOMING'];

export const peeringsCommand: ClusterCommand = clusterCommand({
  usage: PEERINGS_USAGE,
  parse: (line) => positionals(line, []),
  run: async (_, session) => {
    const clusters = await listClusters(session);
    session.io.out(clusters.length === 0 ? 'No other cluster is known.\n' : table(HEAD, clusters.map(row)));
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
    state(cluster, 'outgoing'),
    state(cluster, 'incoming'),
  ];
}

function state({ status }: ForeignCluster, direction: Direction): string {
  const { phase = 'None', reason } = status?.[direction] ?? {};
  const isPlain = reason === undefined || reason === FOREIGN_CLUSTER_REASONS.ok || phase === 'None';
  return isPlain ? phase : `${phase} (${reason})`;
}
