/** The rooms, src/<room>: who may import whom, and what is wrong with the imports as they are. */
import { circlesOf, type Import } from './import-graph.ts';

const BASE = ['lib', 'api', 'kube'];
const FEATURES = [
  'provider',
  'offloading',
  'hosting',
  'peering',
  'network',
  'discovery',
  'server',
  'certificates',
  'dashboard',
  'doctor',
];

/** Each room with the rooms that it may import, from the bottom up. Features do not import each other. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  version: [],
  lib: [],
  api: ['lib'],
  kube: ['lib', 'api'],
  config: ['lib', 'api'],
  provider: BASE,
  offloading: BASE,
  hosting: BASE,
  // Lending, a part of peering, also sets up what is lent.
  peering: [...BASE, 'hosting'],
  network: BASE,
  discovery: BASE,
  server: BASE,
  certificates: BASE,
  dashboard: BASE,
  doctor: BASE,
  deploy: [...BASE, ...FEATURES],
  agent: [...BASE, ...FEATURES, 'deploy', 'config', 'version'],
  cli: [...BASE, ...FEATURES, 'deploy', 'agent', 'config', 'version'],
  main: ['cli'],
};

/** `src/kube/informer.ts` is in `kube`, `src/main.ts` in `main`. */
export const roomOf = (path: string): string => path.split('/')[1]?.replace(/\.ts$/, '') ?? path;

export interface Arrow {
  readonly from: string;
  readonly to: string;
  /** Number of import statements. */
  readonly count: number;
  readonly isPermitted: boolean;
}

/** The imports between rooms, in the order of the table. */
export function arrowsOf(imports: readonly Import[]): Arrow[] {
  const rooms = Object.keys(MAY_IMPORT);
  const between = Object.groupBy(imports, ({ from, to }) => `${roomOf(from)} ${roomOf(to)}`);
  return Object.entries(between)
    .map(([key, group]) => ({ from: key.split(' ')[0] ?? '', to: key.split(' ')[1] ?? '', group }))
    .filter(({ from, to }) => from !== to)
    .map(({ from, to, group }) => ({
      from,
      to,
      count: group?.length ?? 0,
      isPermitted: MAY_IMPORT[from]?.includes(to) === true,
    }))
    .toSorted(
      (a, b) => rooms.indexOf(a.from) - rooms.indexOf(b.from) || rooms.indexOf(a.to) - rooms.indexOf(b.to),
    );
}

/** One line for each import or circle that is not permitted. */
export function wrongs(imports: readonly Import[]): string[] {
  const isForbidden = ({ from, to }: Import): boolean =>
    roomOf(from) !== roomOf(to) && MAY_IMPORT[roomOf(from)]?.includes(roomOf(to)) !== true;
  return [
    ...imports
      .filter(isForbidden)
      .map(({ from, to }) => `${from} imports ${to}: ${roomOf(from)} may not import ${roomOf(to)}`),
    ...circlesOf(imports).map((circle) => `these files import each other: ${circle.join(', ')}`),
  ];
}

/**
 * Programs that judge ours from outside. A mistake in what they share with it would be repeated there, so they import only packages and
 * files of their own folder; and nothing of ours imports them.
 */
export const OUTSIDERS: readonly string[] = ['faults/auditor/'];

/** One line for each import that crosses the border of an outsider; tests may import both. */
export const crossings = (imports: readonly Import[]): string[] =>
  OUTSIDERS.flatMap((folder) =>
    imports
      .filter(({ from, to }) => from.startsWith(folder) !== to.startsWith(folder))
      .map(({ from, to }) => `${from} imports ${to}: ${folder} and the rest do not import each other`),
  );

/** A Mermaid flowchart; an arrow that is not permitted is dotted. */
export const flowchart = (arrows: readonly Arrow[]): string =>
  [
    'flowchart TD',
    ...arrows.map(
      ({ from, to, count, isPermitted }) => `  ${from} ${isPermitted ? '-->' : '-.->'}|${count}| ${to}`,
    ),
  ].join('\n');

export interface RoomSize {
  readonly room: string;
  readonly files: number;
  readonly lines: number;
  /** Median of the lines of a file. */
  readonly median: number;
}

/** The size of each room, in the order of the table, and the sum. */
export function sizesOf(lines: ReadonlyMap<string, number>): RoomSize[] {
  const size = (room: string, counts: readonly number[]): RoomSize => ({
    room,
    files: counts.length,
    lines: counts.reduce((sum, count) => sum + count, 0),
    median: counts.toSorted((a, b) => a - b)[Math.floor(counts.length / 2)] ?? 0,
  });
  const byRoom = Map.groupBy(lines, ([path]) => roomOf(path));
  const rooms = [...new Set([...Object.keys(MAY_IMPORT), ...byRoom.keys()])];
  return [
    ...rooms.map((room) =>
      size(
        room,
        (byRoom.get(room) ?? []).map(([, count]) => count),
      ),
    ),
    size('all', [...lines.values()]),
  ];
}
