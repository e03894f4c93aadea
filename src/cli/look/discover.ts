/** `tributary discover`: the clusters that can be seen, and the command that peers with each. */
import { DIRECTIONS, disabledIn, type ForeignCluster, peerIDOf } from '../../api/foreign-cluster.ts';
import { DISCOVERY_SOURCES, type DiscoverySource } from '../../api/peer-selector.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { formatOf, printedAs, WIDE_OUTPUT } from '../output.ts';
import { clusterCommand } from '../peering/environment.ts';
import { listClusters } from '../peering/foreign-clusters.ts';
import { table } from '../peering/terminal-text.ts';
import { showPage, WATCH } from './watching.ts';

interface SeenCluster {
  name: string;
  clusterName: string;
  clusterID: string;
  foundBy: DiscoverySource[];
  endpoint: string;
  /** RFC 3339; of sightings that count no longer nothing is known. */
  since: string;
  expires: string;
  peering: string;
  /** What peers with it; empty where it is a peer, or has no endpoint. */
  command: string;
}

export const discoverCommand: Command = clusterCommand({
  name: 'discover',
  summary: 'List the clusters that can be seen, and how to peer with each.',
  about:
    'Clusters are found on the local network (LAN), in domains that a SearchDomain names (WAN), by hand, or because they have ' +
    'dialled this one. A cluster that was found is not trusted: nothing happens before a policy or a person wants it.',
  options: {
    ...WIDE_OUTPUT,
    lan: { text: 'only those found on the local network' },
    wan: { text: 'only those found in search domains' },
    ...WATCH,
  },
  examples: [
    { line: 'tributary discover', does: 'List who is there' },
    { line: 'tributary discover --lan --watch', does: 'Wait for a cluster to appear on the local network' },
  ],
  parse: (line) => ({
    format: formatOf(line),
    isWatched: line.flags.has('watch'),
    only: (['LAN', 'WAN'] as const).filter((source) => line.flags.has(source.toLowerCase())),
  }),
  run: async ({ format, isWatched, only }, session) =>
    showPage(isWatched, session, async () => {
      const now = session.clock.now();
      const all = (await listClusters(session)).map((cluster) => {
        const one = seenOf(cluster);
        return { ...one, command: session.pastable(one.command) };
      });
      const seen = all.filter(
        ({ foundBy }) => only.length === 0 || only.some((source) => foundBy.includes(source)),
      );
      const text = (isWide: boolean): string =>
        seen.length === 0 ? session.pastable(NOBODY) : textOf(seen, now, isWide);
      return { text: printedAs(format, seen, text), code: EXIT.ok };
    }),
});

/** Pure. */
export function seenOf(cluster: ForeignCluster): SeenCluster {
  const { metadata, spec, status = {} } = cluster;
  const sightings = Object.values(status.sightings ?? {});
  const endpoint = spec?.endpoint ?? sightings.flatMap(({ endpoints }) => endpoints)[0] ?? '';
  const clusterID = peerIDOf(cluster) ?? '';
  const peering = peeringOf(cluster);
  return {
    name: metadata.name,
    clusterName: status.clusterName ?? sightings.map((one) => one.clusterName).find(Boolean) ?? '',
    clusterID,
    foundBy: DISCOVERY_SOURCES.filter((source) => (status.foundBy ?? '').split(',').includes(source)),
    endpoint,
    since: sightings.map(({ firstSeen }) => firstSeen).toSorted()[0] ?? metadata.creationTimestamp,
    expires:
      sightings
        .map(({ expires }) => expires)
        .toSorted()
        .at(-1) ?? '',
    peering,
    command: peering === 'no' || peering.startsWith('not wanted') ? commandOf(endpoint, clusterID) : '',
  };
}

const commandOf = (endpoint: string, clusterID: string): string =>
  endpoint === '' ? '' : `tributary peer ${endpoint}${clusterID === '' ? '' : ` --id ${clusterID}`}`;

function peeringOf(cluster: ForeignCluster): string {
  const { status } = cluster;
  const phases = DIRECTIONS.map((direction) => [direction, status?.[direction]?.phase ?? 'None'] as const);
  const isThere = phases.filter(([, phase]) => phase !== 'None' && phase !== 'Denied');
  if (isThere.length > 0) return isThere.map(([direction, phase]) => `${direction} ${phase}`).join(', ');
  return disabledIn(cluster).length > 0 ? 'not wanted (unpeer)' : 'no';
}

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
];

/** `5m`, as kubectl shows ages. */
export function ageOf(time: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return '-';
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ['s', 1];
  return `${Math.floor(Math.abs(seconds) / size)}${unit}`;
}

const NOBODY =
  'No other cluster is seen. The role gateway looks for clusters on the local network. To find others, make a SearchDomain, or peer ' +
  'with one that you know: tributary peer ENDPOINT\n';

function textOf(seen: readonly SeenCluster[], now: number, isWide: boolean): string {
  const head = ['NAME', 'CLUSTER', 'FOUND BY', 'ENDPOINT', 'SEEN FOR', 'PEERING'];
  const rows = seen.map((one) => [
    one.name,
    one.clusterName,
    one.foundBy.join(','),
    one.endpoint,
    ageOf(one.since, now),
    one.peering,
    ...(isWide ? [one.clusterID, one.expires === '' ? '-' : ageOf(one.expires, now)] : []),
  ]);
  const commands = seen.filter(({ command }) => command !== '').map(({ command }) => [command]);
  return [
    table(isWide ? [...head, 'CLUSTER ID', 'COUNTS FOR'] : head, rows),
    ...(commands.length === 0 ? [] : ['\n', table(['TO PEER WITH THEM'], commands)]),
  ].join('');
}
