/** `tributary untether`: takes this cluster back. */
import { CLUSTER_MODE, type ClusterMode, clusterModes } from '../../api/cluster-mode.ts';
import { namespaces } from '../../api/resources.ts';
import { LABEL_PEER, LABEL_TENANCY, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import { ANNOTATION_ON_END } from '../../hosting/annotations.ts';
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
  if (evict && !(await keepNothing(before, untilMs, session))) {
    io.err(
      `Not ended: the cluster role of Tributary has not taken up that nothing is kept here; is it running? To end it all the same: tributary untether\n`,
    );
    return EXIT.failed;
  }
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
  if (isOver === true) {
    io.out('Ended.\n');
    return EXIT.ok;
  }
  const other = before.spec?.tether?.cluster ?? before.status?.tether?.clusterID ?? 'CLUSTER';
  const what = isTold
    ? `What was made for the tether is still being removed after ${timeoutMs / 1000} s; it goes on. If ${other} is dead: tributary unpeer ${other} --force`
    : 'The cluster role of Tributary has not seen it yet: is it running?';
  io.err(`${what}\n`);
  return EXIT.failed;
}

/** Resolves once the namespaces of the other cluster here say that they go with the end; false: not in time. */
async function keepNothing(mode: ClusterMode, untilMs: number, session: Session): Promise<boolean> {
  const { client, io, signal } = session;
  const { spec, status } = mode;
  const clusterID = status?.tether?.clusterID;
  if (spec?.tether === undefined || clusterID === undefined) {
    io.err(
      'It is about to end, or has not begun: --evict comes too late, or too early, to change anything.\n',
    );
    return true;
  }
  const body = { spec: { tether: { keepForSeconds: 0 } } };
  await client.patch(clusterModes, { name: CLUSTER_MODE }, { type: 'merge', body }, { signal });
  const labelSelector = `${LABEL_PEER}=${clusterID},${LABEL_TENANCY}=${TENANCY_CONTRACT}`;
  const read = async (): Promise<string[]> => {
    const { items } = await client.list(namespaces, { labelSelector, metadataOnly: true, signal });
    return items.map(({ metadata }) => metadata.annotations?.[ANNOTATION_ON_END] ?? '');
  };
  const look = (ends: readonly string[]): true | undefined =>
    ends.every((end) => !/^Keep=[1-9]/.test(end)) || undefined;
  return (await followObject(session, { read, untilMs, look })) === true;
}

const isAutonomous = ({ spec, status }: ClusterMode): boolean =>
  spec?.tether === undefined && (status?.phase ?? 'Autonomous') === 'Autonomous';
