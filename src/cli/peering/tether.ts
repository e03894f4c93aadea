/** `tributary tether` and `untether`: hands this cluster over to another one, and takes it back. */
import {
  type AfterLoss,
  CLUSTER_MODE,
  type ClusterMode,
  clusterModes,
  TETHER_LIMITS,
  type TetherSpec,
} from '../../api/cluster-mode.ts';
import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import { ignoring, TributaryError } from '../../lib/errors.ts';
import { parseJoinToken } from '../../peering/identity/join-tokens.ts';
import { type CommandLine, EXIT, positionals } from '../command-line.ts';
import { type ClusterCommand, clusterCommand, parseSeconds, type Session } from './environment.ts';
import { findCluster, followObject, idOf, listClusters } from './foreign-clusters.ts';
import { readOwn } from './id.ts';
import { readToken } from './peer-arguments.ts';
import { giveToken } from './peer-objects.ts';
import { lineShower } from './peer.ts';

export const TETHER_USAGE = `tributary tether CLUSTER [--token TOKEN | --token -] [--evict] [--lost-after 5m]
                 [--after-loss Retether|Autonomous] [--timeout 120s] [--kubeconfig FILE] [--context NAME]`;
export const UNTETHER_USAGE = `tributary untether [--timeout 60s] [--kubeconfig FILE] [--context NAME]`;

const SEE = 'kubectl get clustermodes';

interface TetherArguments {
  wanted: string;
  token: string | undefined;
  timeoutMs: number;
  terms: Omit<TetherSpec, 'cluster'>;
}

/** Exits with EXIT.ok once the other cluster decides, and with EXIT.failed where it does not; after a refusal nothing is left. */
export const tetherCommand: ClusterCommand = clusterCommand({
  usage: TETHER_USAGE,
  options: ['token', 'lost-after', 'after-loss', 'timeout'],
  flags: ['evict'],
  parse: async (line, io): Promise<TetherArguments> => {
    const [wanted = ''] = positionals(line, ['CLUSTER']);
    const terms = termsOf(line);
    // `-` reads it, so that no list of processes shows it.
    const token = line.values['token'] === '-' ? await readToken(io) : line.values['token']?.trim();
    if (token !== undefined) parseJoinToken(token);
    return {
      wanted,
      token,
      timeoutMs: parseSeconds(line.values['timeout'] ?? '120s') * 1000,
      terms,
    };
  },
  run: tether,
});

/** Exits with EXIT.ok once nothing is left of the tether. This cluster decides again at once, whatever the other one does. */
export const untetherCommand: ClusterCommand = clusterCommand({
  usage: UNTETHER_USAGE,
  options: ['timeout'],
  parse: (line) => {
    positionals(line, []);
    return { timeoutMs: parseSeconds(line.values['timeout'] ?? '60s') * 1000 };
  },
  run: untether,
});

function termsOf({ values, flags }: CommandLine): Omit<TetherSpec, 'cluster'> {
  const { 'lost-after': lostAfter, 'after-loss': afterLoss } = values;
  if (afterLoss !== undefined && !isAfterLoss(afterLoss)) {
    throw new TributaryError('Invalid', `--after-loss is Retether or Autonomous, not "${afterLoss}"`);
  }
  return {
    ...(lostAfter !== undefined && { lostAfterSeconds: checkedLostAfter(lostAfter) }),
    ...(afterLoss !== undefined && { afterLoss }),
    ...(flags.has('evict') && { evict: true }),
  };
}

function checkedLostAfter(text: string): number {
  const { least, most } = TETHER_LIMITS.lostAfterSeconds;
  const seconds = parseSeconds(text);
  if (seconds >= least && seconds <= most) return seconds;
  throw new TributaryError(
    'Invalid',
    `--lost-after "${text}" is not from ${least}s to ${most / DAY_SECONDS}d`,
  );
}

const DAY_SECONDS = 86_400;

const isAfterLoss = (text: string): text is AfterLoss => text === 'Retether' || text === 'Autonomous';

async function tether(args: TetherArguments, session: Session): Promise<number> {
  const { wanted, token, timeoutMs, terms } = args;
  const { clock, io } = session;
  const cluster = findCluster(await listClusters(session), wanted);
  const { name } = cluster.metadata;
  const before = (await readMode(session))?.spec?.tether;
  const problem =
    before !== undefined && before.cluster !== name
      ? `this cluster is tethered to ${before.cluster}, or about to be; end that first with: tributary untether`
      : await problemWith(cluster, token, session);
  if (problem !== undefined) {
    io.err(`Not begun: ${problem}\n`);
    return EXIT.failed;
  }
  const began = clock.monotonic();
  const takeBack = token === undefined ? undefined : await giveToken(cluster, token, session);
  const written = await write({ cluster: name, ...terms }, session);
  const end = await followTether(
    written,
    { untilMs: began + timeoutMs, isPatient: token !== undefined },
    session,
  );
  if (end === undefined) {
    io.err(`Not tethered within ${timeoutMs / 1000} s; ${GOES_ON}`);
    return EXIT.failed;
  }
  if (end === 'Tethered') {
    const seconds = ((clock.monotonic() - began) / 1000).toFixed(1);
    io.out(`Tethered in ${seconds} s: ${name} decides what runs on the nodes here\n`);
    return EXIT.ok;
  }
  if (before === undefined) {
    await giveUp(session);
    await takeBack?.();
    io.err('Refused; this cluster stays autonomous, and nothing was left behind.\n');
  } else {
    io.err('Refused; it is asked for until: tributary untether\n');
  }
  return EXIT.failed;
}

const PATIENCE_MS = 10_000;
const GOES_ON = `it goes on. See: ${SEE}; to give it up: tributary untether\n`;

/** Why there is no use in asking; undefined: there may be. */
async function problemWith(
  cluster: ForeignCluster,
  token: string | undefined,
  session: Session,
): Promise<string | undefined> {
  const { name } = cluster.metadata;
  const clusterID = idOf(cluster);
  if (clusterID === (await readOwn(session)).clusterID)
    return `${name} is this cluster, which cannot be tethered to itself`;
  const meant = token === undefined ? undefined : parseJoinToken(token).clusterID;
  return meant === undefined || clusterID === undefined || meant === clusterID
    ? undefined
    : `the token is of cluster ${meant}, but ${name} is cluster ${clusterID}; ask there for one: tributary token create`;
}

/** Shows how it goes until it is tethered or refused; undefined: neither in time. */
async function followTether(
  { metadata: { generation = 0 } }: ClusterMode,
  { untilMs, isPatient }: { untilMs: number; isPatient: boolean },
  session: Session,
): Promise<'Tethered' | 'Refused' | undefined> {
  const { clock, io, signal } = session;
  const shown = lineShower(session);
  const began = clock.monotonic();
  try {
    return await followMode(session, untilMs, (mode) => {
      if ((mode?.status?.observedGeneration ?? 0) < generation) return undefined;
      shown(lineOf(mode));
      const phase = mode?.status?.phase;
      // A refusal that is older than the token may be overcome by it.
      const mayChange = isPatient && clock.monotonic() - began < PATIENCE_MS;
      return phase === 'Tethered' || (phase === 'Refused' && !mayChange) ? phase : undefined;
    });
  } catch (error) {
    if (signal.aborted) io.err(`Not waited for any longer; ${GOES_ON}`);
    throw error;
  }
}

/** Resolves once nothing of it is left here, or else after a while: it goes by itself. */
async function giveUp(session: Session): Promise<void> {
  const { client, clock, signal } = session;
  const { metadata } = await client.patch(clusterModes, { name: CLUSTER_MODE }, WITHOUT, { signal });
  await followMode(session, clock.monotonic() + PATIENCE_MS, (mode) => {
    const isSeen = (mode?.status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
    return (isSeen && mode?.status?.phase === 'Autonomous') || undefined;
  });
}

const WITHOUT = { type: 'merge', body: { spec: { tether: null } } } as const;

async function untether({ timeoutMs }: { timeoutMs: number }, session: Session): Promise<number> {
  const { client, clock, io, signal } = session;
  const before = await readMode(session);
  const { tether: named } = before?.spec ?? {};
  if (before === undefined || isAutonomous(before)) {
    io.out('This cluster is not tethered.\n');
    return EXIT.ok;
  }
  const { metadata } = await client.patch(clusterModes, { name: CLUSTER_MODE }, WITHOUT, { signal });
  const shown = lineShower(session);
  let isTold = false;
  const isOver = await followMode(session, clock.monotonic() + timeoutMs, (mode) => {
    if ((mode?.status?.observedGeneration ?? 0) < (metadata.generation ?? 0)) return undefined;
    if (!isTold) io.out('This cluster decides again what runs on its nodes.\n');
    isTold = true;
    shown(lineOf(mode));
    return mode?.status?.phase === 'Autonomous' || undefined;
  });
  if (isOver === true) {
    io.out('Ended.\n');
    return EXIT.ok;
  }
  const other = named?.cluster ?? before.status?.tether?.clusterID ?? 'CLUSTER';
  const what = isTold
    ? `What was made for the tether is still being removed after ${timeoutMs / 1000} s; it goes on. If ${other} is dead: tributary unpeer ${other} --force`
    : 'The cluster role of Tributary has not seen it yet: is it running?';
  io.err(`${what}\n`);
  return EXIT.failed;
}

const isAutonomous = ({ spec, status }: ClusterMode): boolean =>
  spec?.tether === undefined && (status?.phase ?? 'Autonomous') === 'Autonomous';

const lineOf = (mode: ClusterMode | undefined): string => {
  const { phase = 'unknown', conditions: [condition] = [] } = mode?.status ?? {};
  return `${phase}: ${condition?.message ?? 'waiting for the cluster role of Tributary'}`;
};

async function readMode({ client, signal }: Session): Promise<ClusterMode | undefined> {
  return client.get(clusterModes, { name: CLUSTER_MODE }, { signal }).catch(ignoring('NotFound'));
}

async function write(wanted: TetherSpec, { client, signal }: Session): Promise<ClusterMode> {
  const body = { spec: { tether: wanted } };
  const patched = await client
    .patch(clusterModes, { name: CLUSTER_MODE }, { type: 'merge', body }, { signal })
    .catch(ignoring('NotFound'));
  if (patched !== undefined) return patched;
  const { kind } = clusterModes;
  const draft = { apiVersion: API_VERSION, kind, metadata: { name: CLUSTER_MODE }, ...body };
  return client.create(clusterModes, draft, { signal });
}

/** Reads the mode until `look` returns something, or the time is up: then undefined. */
const followMode = async <Result>(
  session: Session,
  untilMs: number,
  look: (mode: ClusterMode | undefined) => Result | undefined,
): Promise<Result | undefined> =>
  followObject(session, { read: async () => readMode(session), untilMs, look });
