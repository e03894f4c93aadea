/** `tributary tether`: hands this cluster over to another one. */
import {
  CLUSTER_MODE,
  type ClusterMode,
  clusterModes,
  TETHER_LIMITS,
  type TetherSpec,
} from '../../api/cluster-mode.ts';
import { type ForeignCluster, peerIDOf } from '../../api/foreign-cluster.ts';
import { OFFER_LIMITS } from '../../api/limits.ts';
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import { ignoring } from '../../lib/errors.ts';
import { parseJoinToken } from '../../peering/identity/join-tokens.ts';
import type { Command } from '../command.ts';
import { chosen, type CommandLine, EXIT } from '../command-line.ts';
import { parseSeconds, timeoutMsOf } from '../durations.ts';
import { followMode, isSeen, lineOf, readMode, unwant, watchRole } from './cluster-mode.ts';
import { clusterCommand, type Session } from './environment.ts';
import { findCluster, listClusters, orTell } from './foreign-clusters.ts';
import { readOwn } from './id.ts';
import { readToken } from './peer-arguments.ts';
import { giveToken, permit } from './peer-objects.ts';
import { lineShower } from './peer.ts';

const SEE = 'kubectl get clustermodes';
const AFTER_LOSS = ['Retether', 'Autonomous'] as const;
const WHEN_LOST = ['Stay', 'RunLocally'] as const;

interface TetherArguments {
  wanted: string;
  token: string | undefined;
  timeoutMs: number;
  terms: Omit<TetherSpec, 'cluster'>;
}

/** Exits with EXIT.ok once the other cluster decides, and with EXIT.failed where it does not; after a refusal nothing is left. */
export const tetherCommand: Command = clusterCommand({
  name: 'tether',
  summary: 'Hand the nodes of this cluster over to another one, which then decides what runs on them.',
  arguments: [{ name: 'CLUSTER', text: 'name or ClusterID of the other cluster', names: 'foreignclusters' }],
  options: {
    token: { value: 'TOKEN', text: 'join token of the other cluster; - reads it from standard input' },
    evict: {
      text: 'pods that ran here before leave, as their budgets permit; otherwise they stay until they end',
    },
    'lost-after': { value: 'DURATION', text: 'contact counts as lost after this time', fallback: '5m' },
    'after-loss': {
      value: 'WHAT',
      text: 'what happens once the other cluster is back',
      choices: AFTER_LOSS,
      fallback: 'Retether',
    },
    'when-lost': {
      value: 'WHAT',
      text: 'what becomes of forwarded pods without contact',
      choices: WHEN_LOST,
      fallback: 'Stay',
    },
    'keep-for': {
      value: 'DURATION',
      text: 'how long pods of the other cluster go on here after the end or without contact',
      fallback: '1d',
    },
    timeout: { value: 'DURATION', text: 'how long to wait', fallback: '120s' },
  },
  examples: [{ line: 'tributary tether company', does: 'Let the cluster "company" decide' }],
  parse: async (line, io): Promise<TetherArguments> => {
    const [wanted = ''] = line.positionals;
    const terms = termsOf(line);
    // `-` reads it, so that no list of processes shows it.
    const token = line.values['token'] === '-' ? await readToken(io) : line.values['token']?.trim();
    if (token !== undefined) parseJoinToken(token);
    return {
      wanted,
      token,
      timeoutMs: timeoutMsOf(line, '120s'),
      terms,
    };
  },
  run: tether,
});

function termsOf({ values, flags }: CommandLine): Omit<TetherSpec, 'cluster'> {
  const {
    'lost-after': lostAfter,
    'after-loss': afterLoss,
    'when-lost': whenLost,
    'keep-for': keepFor,
  } = values;
  return {
    ...(lostAfter !== undefined && {
      lostAfterSeconds: parseSeconds(lostAfter, { option: 'lost-after', ...TETHER_LIMITS.lostAfterSeconds }),
    }),
    ...chosen<TetherSpec>(afterLoss, 'afterLoss'),
    ...chosen<TetherSpec>(whenLost, 'whenLost'),
    ...(keepFor !== undefined && {
      keepForSeconds: parseSeconds(keepFor, {
        option: 'keep-for',
        least: 0,
        most: OFFER_LIMITS.keepForSeconds,
      }),
    }),
    ...(flags.has('evict') && { evict: true }),
  };
}

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
    io.err(`Nothing was changed: ${problem}\n`);
    return EXIT.failed;
  }
  const began = clock.monotonic();
  const roleProblem = await watchRole(session);
  const { takeBack, hasChanged } = await prepare(cluster, token, session);
  const written = await write({ cluster: name, ...terms }, session);
  const end = await followTether(written, { untilMs: began + timeoutMs, isPatient: hasChanged }, session);
  if (end === undefined) {
    io.err(`This cluster is not tethered after ${timeoutMs / 1000} s. ${GOES_ON}${await roleProblem()}`);
    return EXIT.failed;
  }
  if (end === 'Tethered') {
    const seconds = ((clock.monotonic() - began) / 1000).toFixed(1);
    io.out(`Tethered in ${seconds} s: ${name} decides what runs on the nodes here\n`);
    return EXIT.ok;
  }
  const isGone = before === undefined && (await giveUp(session));
  await takeBack();
  io.err(
    `${name} has refused. ${before === undefined ? outcome(isGone) : 'This cluster goes on asking. To end that: tributary untether'}\n`,
  );
  if (token === undefined) tellOfToken(cluster, session);
  return EXIT.failed;
}

/** What has to be there before the wish. `takeBack` makes it as it was. */
async function prepare(
  cluster: ForeignCluster,
  token: string | undefined,
  session: Session,
): Promise<{ takeBack: () => Promise<void>; hasChanged: boolean }> {
  const forbid = await permit(cluster, session);
  if (forbid !== undefined)
    session.io.out(`ForeignCluster ${cluster.metadata.name} said not to peer. It no longer does.\n`);
  const takeToken = token === undefined ? undefined : await giveToken(cluster, token, session);
  const takeBack = async (): Promise<void> => {
    await takeToken?.();
    await forbid?.();
  };
  return { takeBack, hasChanged: takeToken !== undefined || forbid !== undefined };
}

const outcome = (isGone: boolean): string =>
  isGone
    ? 'This cluster stays autonomous, and nothing was left behind.'
    : `This cluster stays autonomous. What was made for the tether is still being removed: ${SEE}`;

/** It may be the one that the other cluster does not take. */
function tellOfToken({ spec }: ForeignCluster, { io }: Session): void {
  const { name } = spec?.joinTokenSecretRef ?? {};
  if (name === undefined) return;
  io.err(
    `It was given the join token of Secret ${SYSTEM_NAMESPACE}/${name}. To give it another one: --token -\n`,
  );
}

const PATIENCE_MS = 10_000;
const GOES_ON = `The role cluster goes on trying. To see how far it is: ${SEE}. To give it up: tributary untether\n`;

/** Why there is no use in asking; undefined: there may be. */
async function problemWith(
  cluster: ForeignCluster,
  token: string | undefined,
  session: Session,
): Promise<string | undefined> {
  const { name } = cluster.metadata;
  const clusterID = peerIDOf(cluster);
  if (clusterID === (await readOwn(session)).clusterID)
    return `${name} is this cluster, which cannot be tethered to itself`;
  const meant = token === undefined ? undefined : parseJoinToken(token).clusterID;
  return meant === undefined || clusterID === undefined || meant === clusterID
    ? undefined
    : `the token is of cluster ${meant}, but ${name} is cluster ${clusterID}. To get one of it, over there: tributary token create`;
}

/** Shows how it goes until it is tethered or refused; undefined: neither in time. */
async function followTether(
  written: ClusterMode,
  { untilMs, isPatient }: { untilMs: number; isPatient: boolean },
  session: Session,
): Promise<'Tethered' | 'Refused' | undefined> {
  const { clock } = session;
  const shown = lineShower(session);
  const began = clock.monotonic();
  return followMode(session, untilMs, (mode) => {
    if (!isSeen(mode, written)) return undefined;
    shown(lineOf(mode));
    const phase = mode?.status?.phase;
    // A refusal that is older than what was changed may be overcome by that.
    const mayChange = isPatient && clock.monotonic() - began < PATIENCE_MS;
    return phase === 'Tethered' || (phase === 'Refused' && !mayChange) ? phase : undefined;
  }).catch(orTell(session, GOES_ON));
}

/** Whether nothing of it is left here after a while: it goes by itself. */
async function giveUp(session: Session): Promise<boolean> {
  const wanted = await unwant(session);
  const isGone = await followMode(
    session,
    session.clock.monotonic() + PATIENCE_MS,
    (mode) => (isSeen(mode, wanted) && mode?.status?.phase === 'Autonomous') || undefined,
  );
  return isGone === true;
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
