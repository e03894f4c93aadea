/** `tributary untether`: takes this cluster back. */
import type { ClusterMode } from '../../api/cluster-mode.ts';
import { namespaces } from '../../api/resources.ts';
import { LABEL_PEER, LABEL_TENANCY, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import { ANNOTATION_KEEP_UNTIL } from '../../hosting/annotations.ts';
import type { KubeObject } from '../../api/wire.ts';
import { deleteByUid } from '../../kube/write.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { timeoutMsOf } from '../durations.ts';
import { followMode, isSeen, lineOf, readMode, unwant, watchRole } from './cluster-mode.ts';
import { clusterCommand, type Session } from './environment.ts';
import { followObject } from './foreign-clusters.ts';
import { lineShower } from './peer.ts';

interface UntetherArguments {
  /** What runs here for the other cluster ends at once, with its volumes. */
  deleteGuests: boolean;
  timeoutMs: number;
}

/** Exits with EXIT.ok once nothing is left of the tether. This cluster decides again at once, whatever the other one does. */
export const untetherCommand: Command = clusterCommand({
  name: 'untether',
  summary: 'Take this cluster back from the one that it is tethered to.',
  options: {
    'delete-guests': { text: 'what runs here for the other cluster ends at once, with its volumes' },
    timeout: { value: 'DURATION', text: 'how long to wait', fallback: '60s' },
  },
  examples: [{ line: 'tributary untether', does: 'Decide about the own nodes again' }],
  parse: (line): UntetherArguments => ({
    deleteGuests: line.flags.has('delete-guests'),
    timeoutMs: timeoutMsOf(line, '60s'),
  }),
  run: untether,
});

async function untether({ deleteGuests, timeoutMs }: UntetherArguments, session: Session): Promise<number> {
  const { clock, io } = session;
  const before = await readMode(session);
  if (before === undefined || isAutonomous(before)) {
    io.out('This cluster is not tethered.\n');
    return deleteGuests ? tellKept(session) : EXIT.ok;
  }
  const untilMs = clock.monotonic() + timeoutMs;
  const isOver = await end(before, { untilMs, timeoutMs }, session);
  const { clusterID } = before.status?.tether ?? {};
  const left = deleteGuests && clusterID !== undefined ? await endGuests(clusterID, untilMs, session) : [];
  if (left.length > 0) {
    const later = `As soon as it has no rights in these namespaces any more, delete them: kubectl delete namespaces ${left.join(' ')}`;
    io.err(`Pods of the other cluster still run here. ${later}\n`);
  }
  if (!isOver || left.length > 0) return EXIT.failed;
  io.out('Ended.\n');
  return deleteGuests && clusterID === undefined ? tellKept(session) : EXIT.ok;
}

/** Whether nothing of the tether is left in time; else it says why. */
async function end(
  before: ClusterMode,
  { untilMs, timeoutMs }: { untilMs: number; timeoutMs: number },
  session: Session,
): Promise<boolean> {
  const { io } = session;
  const roleProblem = await watchRole(session);
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
  if (isOver === true) return true;
  io.err(
    isTold
      ? goesOn(before, timeoutMs, await roleProblem())
      : 'The cluster role of Tributary has not seen it yet: is it running?\n',
  );
  return false;
}

function goesOn({ spec, status }: ClusterMode, timeoutMs: number, roleProblem: string): string {
  const other = spec?.tether?.cluster ?? status?.tether?.clusterID ?? 'CLUSTER';
  const what = `Some of what was made for the tether is still there after ${timeoutMs / 1000} s`;
  if (roleProblem !== '') return `${what}. ${roleProblem}`;
  return `${what}. The role cluster goes on removing it. If ${other} is dead: tributary unpeer ${other} --force\n`;
}

const OF_PEERS = `${LABEL_TENANCY}=${TENANCY_CONTRACT}`;
/** A contract about it has ended, and what is in it is kept for a while. */
const isKept = ({ metadata }: Pick<KubeObject, 'metadata'>): boolean =>
  metadata.annotations?.[ANNOTATION_KEEP_UNTIL] !== undefined;

/**
 * Deletes the namespaces of the other cluster that would be kept, once its rights in them have ended. Returns the names of those
 * in which they have not ended in time.
 */
async function endGuests(clusterID: string, untilMs: number, session: Session): Promise<readonly string[]> {
  const { client, io, signal } = session;
  const labelSelector = `${LABEL_PEER}=${clusterID},${OF_PEERS}`;
  let left: string[] = [];
  const read = async (): Promise<void> => {
    const { items } = await client.list(namespaces, { labelSelector, metadataOnly: true, signal });
    const alive = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    for (const namespace of alive.filter(isKept)) {
      await deleteByUid(client, namespaces, namespace, { signal });
      io.out(`  deleted: namespace ${namespace.metadata.name}\n`);
    }
    left = alive.filter((namespace) => !isKept(namespace)).map(({ metadata }) => metadata.name);
  };
  await followObject(session, { read, untilMs, look: () => left.length === 0 || undefined });
  return left;
}

/** For who wants guests deleted where no tether says whose: they may be those of another peering. */
async function tellKept({ client, io, signal }: Session): Promise<number> {
  const { items } = await client.list(namespaces, { labelSelector: OF_PEERS, metadataOnly: true, signal });
  const names = items.filter(isKept).map(({ metadata }) => metadata.name);
  if (names.length === 0) return EXIT.ok;
  io.err(
    `Nothing was deleted, since no tether says which cluster is meant. These namespaces are kept for clusters whose peerings have ended. To delete them: kubectl delete namespaces ${names.join(' ')}\n`,
  );
  return EXIT.failed;
}

const isAutonomous = ({ spec, status }: ClusterMode): boolean =>
  spec?.tether === undefined && (status?.phase ?? 'Autonomous') === 'Autonomous';
