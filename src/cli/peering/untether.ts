/** `tributary untether`: takes this cluster back. */
import type { ClusterMode } from '../../api/cluster-mode.ts';
import { namespaces } from '../../api/resources.ts';
import { LABEL_PEER, LABEL_TENANCY, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import { ANNOTATION_KEEP_UNTIL } from '../../hosting/annotations.ts';
import { deleteByUid } from '../../kube/write.ts';
import { EXIT, positionals } from '../command-line.ts';
import { parseSeconds } from '../durations.ts';
import { followMode, isSeen, lineOf, readMode, unwant } from './cluster-mode.ts';
import { type ClusterCommand, clusterCommand, type Session } from './environment.ts';
import { followObject } from './foreign-clusters.ts';
import { lineShower } from './peer.ts';

export const UNTETHER_USAGE = `tributary untether [--evict] [--timeout 60s] [--kubeconfig FILE] [--context NAME]`;

interface UntetherArguments {
  /** What runs here for the other cluster leaves with the end. */
  evict: boolean;
  timeoutMs: number;
}

/** Exits with EXIT.ok once nothing is left of the tether. This cluster decides again at once, whatever the other one does. */
export const untetherCommand: ClusterCommand = clusterCommand({
  usage: UNTETHER_USAGE,
  options: ['timeout'],
  flags: ['evict'],
  parse: (line): UntetherArguments => {
    positionals(line, []);
    return {
      evict: line.flags.has('evict'),
      timeoutMs: parseSeconds(line.values['timeout'] ?? '60s') * 1000,
    };
  },
  run: untether,
});

async function untether({ evict, timeoutMs }: UntetherArguments, session: Session): Promise<number> {
  const { clock, io } = session;
  const before = await readMode(session);
  if (before === undefined || isAutonomous(before)) {
    io.out('This cluster is not tethered.\n');
    return EXIT.ok;
  }
  const untilMs = clock.monotonic() + timeoutMs;
  const wanted = await unwant(session);
  const shown = lineShower(session);
  let isTold = false;
  const isOver = await followMode(session, untilMs, (mode) => {
    if (!isSeen(mode, wanted)) return undefined;
    if (!isTold) io.out('This cluster decides again what runs on its nodes.\n');
    isTold = true;
    shown(lineOf(mode));
    return mode?.status?.phase === 'Autonomous' || undefined;
  });
  const clusterID = before.status?.tether?.clusterID;
  if (evict && clusterID !== undefined && !(await endGuests(clusterID, untilMs, session))) return EXIT.failed;
  if (isOver === true) {
    io.out('Ended.\n');
    return EXIT.ok;
  }
  io.err(
    isTold
      ? goesOn(before, timeoutMs)
      : 'The cluster role of Tributary has not seen it yet: is it running?\n',
  );
  return EXIT.failed;
}

function goesOn({ spec, status }: ClusterMode, timeoutMs: number): string {
  const other = spec?.tether?.cluster ?? status?.tether?.clusterID ?? 'CLUSTER';
  return `What was made for the tether is still being removed after ${timeoutMs / 1000} s; it goes on. If ${other} is dead: tributary unpeer ${other} --force\n`;
}

/** Deletes the namespaces of the other cluster that would be kept, once its rights in them have ended; false: not in time. */
async function endGuests(clusterID: string, untilMs: number, session: Session): Promise<boolean> {
  const { client, io, signal } = session;
  const labelSelector = `${LABEL_PEER}=${clusterID},${LABEL_TENANCY}=${TENANCY_CONTRACT}`;
  const read = async (): Promise<number> => {
    const { items } = await client.list(namespaces, { labelSelector, metadataOnly: true, signal });
    const left = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const kept = left.filter(({ metadata }) => metadata.annotations?.[ANNOTATION_KEEP_UNTIL] !== undefined);
    for (const namespace of kept) await deleteByUid(client, namespaces, namespace, { signal });
    return left.length - kept.length;
  };
  const look = (left: number): true | undefined => left === 0 || undefined;
  if ((await followObject(session, { read, untilMs, look })) === true) return true;
  const own = `kubectl delete namespaces -l ${labelSelector}`;
  io.err(`What runs here for the other cluster goes on: its rights have not ended yet. Later: ${own}\n`);
  return false;
}

const isAutonomous = ({ spec, status }: ClusterMode): boolean =>
  spec?.tether === undefined && (status?.phase ?? 'Autonomous') === 'Autonomous';
