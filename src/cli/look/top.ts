/** `tributary top`: what is used of what is lent, and what goes through tunnels; the most used first. */
import { amountOf } from '../../api/amounts.ts';
import { foreignClusters, peerIDOf } from '../../api/foreign-cluster.ts';
import { type Tunnel, tunnels } from '../../api/tunnel.ts';
import { ignoring, TributaryError } from '../../lib/errors.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { formatOf, OUTPUT, printedAs } from '../output.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { findCluster } from '../peering/foreign-clusters.ts';
import { table } from '../peering/terminal-text.ts';
import { clusterNameOf, type NodeUse, providerOf, readUse, shown } from './use.ts';
import { showPage, WATCH } from './watching.ts';

const RESOURCES = ['cpu', 'memory', 'pods', 'ephemeral-storage'] as const;

export const topCommand: Command = clusterCommand({
  name: 'top',
  summary: 'Show what is used of what foreign clusters lend, and of the tunnels.',
  about:
    'Used are the requests of pods, as the scheduler counts them. The most used virtual node comes first.',
  arguments: [
    {
      name: 'PEER',
      text: 'only this cluster, by name or ClusterID',
      isOptional: true,
      names: 'foreignclusters',
    },
  ],
  options: { ...OUTPUT, ...WATCH },
  examples: [{ line: 'tributary top --watch', does: 'Follow the use of all peers' }],
  parse: (line) => ({
    format: formatOf(line),
    isWatched: line.flags.has('watch'),
    peer: line.positionals[0],
  }),
  run: async ({ format, isWatched, peer }, session) =>
    showPage(isWatched, session, async () => {
      const top = await readTop(peer, session);
      return { text: printedAs(format, top, () => textOf(top)), code: EXIT.ok };
    }),
});

interface Amount {
  used: string;
  lent: string;
  percent: number;
}

interface NodeTop {
  name: string;
  cluster: string;
  use: Record<string, Amount>;
}

interface TunnelTop {
  cluster: string;
  rttMs?: number;
  lossPercent?: number;
  receivedBytes: number;
  sentBytes: number;
}

interface Top {
  virtualNodes: NodeTop[];
  tunnels: TunnelTop[];
}

async function readTop(peer: string | undefined, session: Session): Promise<Top> {
  const { client, signal } = session;
  const [use, { items: links }, { items: clusters }] = await Promise.all([
    readUse(session),
    client.list(tunnels, { signal }),
    client
      .list(foreignClusters, { signal })
      .catch(ignoring('Forbidden'))
      .then((list) => list ?? { items: [] }),
  ]);
  const names = new Map(clusters.map((one) => [peerIDOf(one) ?? '', one.metadata.name]));
  const isMeant = (one: NodeUse): boolean =>
    [one.virtualNode.metadata.name, clusterNameOf(one.virtualNode)].includes(peer ?? '');
  const byHand = use.filter(isMeant);
  const id = peer === undefined || byHand.length > 0 ? undefined : peerIDOf(findCluster(clusters, peer));
  if (peer !== undefined && byHand.length === 0 && id === undefined) {
    throw new TributaryError(
      'NotFound',
      `it is not known yet which cluster ${peer} is, so nothing of it is used`,
    );
  }
  const ids = new Set(id === undefined ? byHand.map(({ virtualNode }) => providerOf(virtualNode)) : [id]);
  const isWanted = (one: string | undefined): boolean => peer === undefined || ids.has(one);
  return {
    virtualNodes: use
      .filter((one) => (byHand.length > 0 ? isMeant(one) : isWanted(providerOf(one.virtualNode))))
      .map(nodeTop)
      .toSorted((a, b) => fullest(b) - fullest(a)),
    tunnels: links
      .filter(({ metadata }) => isWanted(metadata.name))
      .map((one) => tunnelTop(one, names))
      .toSorted((a, b) => b.receivedBytes + b.sentBytes - a.receivedBytes - a.sentBytes),
  };
}

const fullest = ({ use }: NodeTop): number => Math.max(...Object.values(use).map(({ percent }) => percent));

/** Pure. */
export const nodeTop = ({ virtualNode, lent, used }: NodeUse): NodeTop => ({
  name: virtualNode.metadata.name,
  cluster: clusterNameOf(virtualNode),
  use: Object.fromEntries(
    RESOURCES.map((resource) => {
      const [taken, all] = [amountOf(used, resource), amountOf(lent, resource)];
      const percent = all === 0n ? 0 : Number((taken * 100n) / all);
      return [resource, { used: shown(resource, taken), lent: shown(resource, all), percent }];
    }),
  ),
});

function tunnelTop({ metadata, spec, status }: Tunnel, names: ReadonlyMap<string, string>): TunnelTop {
  const { rttMs, lossPercent, receivedBytes = 0, sentBytes = 0 } = status?.connection ?? {};
  return {
    cluster: names.get(metadata.name) ?? spec.clusterName ?? metadata.name,
    ...(rttMs !== undefined && { rttMs }),
    ...(lossPercent !== undefined && { lossPercent }),
    receivedBytes,
    sentBytes,
  };
}

const KILO = 1024;
const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `12.3 MiB`. */
export function bytesText(bytes: number): string {
  const at = bytes < 1 ? 0 : Math.min(Math.floor(Math.log(bytes) / Math.log(KILO)), SIZES.length - 1);
  const amount = bytes / KILO ** at;
  return `${at === 0 ? amount : amount.toFixed(1)} ${SIZES[at]}`;
}

function textOf({ virtualNodes, tunnels: links }: Top): string {
  const amount = ({ used, lent, percent }: Amount): string => `${used}/${lent} (${percent} %)`;
  const nodeRows = virtualNodes.map(({ name, cluster, use }) => [
    name,
    cluster,
    ...RESOURCES.map((resource) => (use[resource] === undefined ? '-' : amount(use[resource]))),
  ]);
  const linkRows = links.map(({ cluster, rttMs, lossPercent, receivedBytes, sentBytes }) => [
    cluster,
    rttMs === undefined ? '-' : `${rttMs} ms`,
    lossPercent === undefined ? '-' : `${lossPercent} %`,
    bytesText(receivedBytes),
    bytesText(sentBytes),
  ]);
  return [
    nodeRows.length === 0
      ? 'No virtual node: nothing is lent to this cluster.\n'
      : table(['VIRTUAL NODE', 'CLUSTER', 'CPU', 'MEMORY', 'PODS', 'STORAGE'], nodeRows),
    ...(linkRows.length === 0
      ? []
      : ['\n', table(['TUNNEL TO', 'RTT', 'LOSS', 'RECEIVED', 'SENT'], linkRows)]),
  ].join('');
}
