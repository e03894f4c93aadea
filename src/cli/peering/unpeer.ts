/** `tributary unpeer`: ends a peering from this side. */
import { claimsAbroad } from '../../api/claims-abroad.ts';
import {
  type Direction,
  DIRECTIONS,
  disabledIn,
  type ForeignCluster,
  foreignClusters,
  isPeer,
  peerIDOf,
} from '../../api/foreign-cluster.ts';
import { ANNOTATION_FORCE, LABEL_MANAGED_BY } from '../../api/names.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import { persistentVolumes } from '../../api/resources.ts';
import type { Command } from '../command.ts';
import { type CommandLine, EXIT } from '../command-line.ts';
import { timeoutMsOf } from '../durations.ts';
import { mayEndPods } from './ending-pods.ts';
import { clusterCommand, type Session } from './environment.ts';
import { findCluster, follow, isEnded, listClusters, stateLine } from './foreign-clusters.ts';
import { readOwn } from './id.ts';
import { forgetMadePolicy, removeMadePolicies, tellLeft } from './made-policies.ts';
import { lineShower } from './peer.ts';
import { MOST_NAMED, type Remnant, remnantsOf, terminated } from './remnants.ts';

interface UnpeerArguments {
  wanted: string;
  directions: readonly Direction[];
  isForced: boolean;
  /** Volumes in the foreign cluster are deleted with the peering, with their contents. */
  mayDeleteVolumes: boolean;
  /** Nobody is asked about pods that end for good. */
  isSure: boolean;
  timeoutMs: number;
  /** The other cluster, where whoever calls may end it too. */
  toContext: string | undefined;
  /** The other side has ended it before this one does. */
  peerHasEnded?: boolean;
  kubeconfig: string | undefined;
}

/** Exits with EXIT.ok once nothing is left of it here, and with EXIT.failed where something is after the timeout. */
export const unpeerCommand: Command = clusterCommand({
  name: 'unpeer',
  summary:
    'End a peering from this side, and wait until nothing is left of it here; with --to-context, there too.',
  about:
    'Pods over there are drained first, as their PodDisruptionBudgets permit. Those without a controller are made anew here, where a ' +
    'NamespaceOffloading brings them home; those that end for good are named before, and a person is asked. The ForeignCluster ' +
    'stays, and says not to peer. ' +
    'Without --outgoing and --incoming both directions end. A SharingPolicy that tributary peer --to-context has made for that cluster ' +
    'goes with the direction that it is for.',
  arguments: [{ name: 'NAME|CLUSTER_ID', text: 'the other cluster', names: 'foreignclusters' }],
  options: {
    outgoing: { text: 'end only that our pods run over there' },
    incoming: { text: 'end only that its pods run here' },
    'delete-volumes': { text: 'volumes over there are deleted with their contents' },
    force: { text: 'do not wait for the other cluster: it is dead. Also deletes volumes' },
    'to-context': {
      value: 'NAME',
      text: 'context of the other cluster in the same kubeconfig, in which the peering is ended too',
      names: 'contexts',
    },
    timeout: { value: 'DURATION', text: 'how long to wait', fallback: '60s' },
    yes: { text: 'do not ask, although pods end for good; nobody is asked where there is no terminal' },
  },
  examples: [
    { line: 'tributary unpeer milan', does: 'End the peering with milan, in both directions' },
    { line: 'tributary unpeer milan --force', does: 'End it although milan does not answer any more' },
  ],
  parse,
  run,
});

function parse(line: CommandLine): UnpeerArguments {
  const [wanted = ''] = line.positionals;
  const named = DIRECTIONS.filter((direction) => line.flags.has(direction));
  return {
    wanted,
    directions: named.length === 0 ? DIRECTIONS : named,
    isForced: line.flags.has('force'),
    mayDeleteVolumes: line.flags.has('delete-volumes') || line.flags.has('force'),
    isSure: line.flags.has('yes'),
    timeoutMs: timeoutMsOf(line, '60s'),
    toContext: line.values['to-context'],
    kubeconfig: line.values['kubeconfig'],
  };
}

async function run(args: UnpeerArguments, session: Session): Promise<number> {
  const { toContext, kubeconfig } = args;
  if (toContext === undefined) return (await mayBegin(args, session)) ? end(args, session) : EXIT.failed;
  const { clusterID } = await readOwn(session);
  const at = { kubeconfig, context: toContext };
  const client = await session.open(at);
  try {
    const there = session.on(at, client);
    const directions = args.directions.map((direction) => SEEN_FROM_THERE[direction]);
    const argsThere = { ...args, wanted: clusterID, directions, peerHasEnded: true };
    const isKnownThere = (await listClusters(there)).some((cluster) => peerIDOf(cluster) === clusterID);
    if (!(await mayBegin(args, session))) return EXIT.failed;
    if (isKnownThere && !(await mayBegin(argsThere, there))) return EXIT.failed;
    const code = await end(args, session);
    session.io.out(`In context ${toContext}:\n`);
    const codeThere = await end(argsThere, there);
    if (codeThere === EXIT.ok && args.directions.includes('outgoing')) {
      const here = findCluster(await listClusters(session), args.wanted);
      await forgetMadePolicy(here.metadata.name, session);
    }
    if (code !== EXIT.ok) return code;
    return codeThere === EXIT.ok ? await requestGone(args, session) : codeThere;
  } finally {
    await client.close();
  }
}

/** Both have ended it by now: the other cluster's request here goes as well. */
async function requestGone(
  { wanted, directions, timeoutMs }: UnpeerArguments,
  session: Session,
): Promise<number> {
  const clusterID = peerIDOf(findCluster(await listClusters(session), wanted));
  if (clusterID === undefined) return EXIT.ok;
  const incoming = directions.filter((direction) => direction === 'incoming');
  const look = remnantsOf({ clusterID, directions: incoming, peerHasEnded: true }, session);
  const waiting = { untilMs: session.clock.monotonic() + timeoutMs, shown: lineShower(session) };
  return tellTerminating(await terminated(look, waiting, session), timeoutMs, session);
}

const SEEN_FROM_THERE: Readonly<Record<Direction, Direction>> = {
  outgoing: 'incoming',
  incoming: 'outgoing',
};

/** On this side: nothing is lost that a person does not know of. What is in the way is told. */
async function mayBegin(
  { wanted, directions, mayDeleteVolumes, isSure }: UnpeerArguments,
  session: Session,
): Promise<boolean> {
  const clusterID = peerIDOf(findCluster(await listClusters(session), wanted));
  if (clusterID === undefined || !directions.includes('outgoing')) return true;
  const volumes = await claimsOverThere(clusterID, session);
  if (volumes.length > 0 && !mayDeleteVolumes) {
    session.io.err(
      `Nothing was changed: what is in ${volumes.length} volume(s) over there would be lost, of the claims ${volumes.slice(0, MOST_NAMED).join(', ')}` +
        `${volumes.length > MOST_NAMED ? ', ...' : ''}. Save what you need and delete the claims (where one is gone, the PersistentVolume), or add --delete-volumes.\n`,
    );
    return false;
  }
  return mayEndPods(clusterID, { isSure }, session);
}

/** On this side. */
async function end(args: UnpeerArguments, session: Session): Promise<number> {
  const { wanted, directions, isForced, timeoutMs, peerHasEnded = false } = args;
  const { client, clock, io, signal } = session;
  const cluster = findCluster(await listClusters(session), wanted);
  const { name } = cluster.metadata;
  const body = {
    spec: Object.fromEntries(directions.map((direction) => [direction, 'Disabled'])),
    ...(isForced && { metadata: { annotations: { [ANNOTATION_FORCE]: 'true' } } }),
  };
  await client.patch(foreignClusters, { name }, { type: 'merge', body }, { signal });
  const shown = lineShower(session);
  const untilMs = clock.monotonic() + timeoutMs;
  const isGone = await follow(name, session, {
    untilMs,
    look: (now) => {
      shown(stateLine(now, directions));
      return isEnded(now, directions) || undefined;
    },
  });
  const clusterID = peerIDOf(cluster);
  const look =
    clusterID === undefined
      ? async (): Promise<Remnant[]> => Promise.resolve([])
      : remnantsOf({ clusterID, directions, peerHasEnded }, session);
  if (isGone !== undefined) return ended(cluster, args, { look, shown, untilMs }, session);
  const more = isForced ? '' : ' If the other cluster is dead, run the same command with --force.';
  io.err(
    `The peering has not ended after ${timeoutMs / 1000} s. The role cluster goes on ending it.${more}\n`,
  );
  for (const { what } of await look()) io.err(`  still there: ${what}\n`);
  return EXIT.failed;
}

interface Looking {
  look: () => Promise<Remnant[]>;
  shown: (line: string) => void;
  untilMs: number;
}

/** Returns the exit code, having said what stays. */
async function ended(
  cluster: ForeignCluster,
  args: UnpeerArguments,
  { look, ...waiting }: Looking,
  session: Session,
): Promise<number> {
  const { directions, timeoutMs, toContext, peerHasEnded } = args;
  const { io, pastable } = session;
  const code = tellTerminating(await terminated(look, waiting, session), timeoutMs, session);
  if (code !== EXIT.ok) return code;
  // Where the other side is ended next, its request goes with that.
  const goesLater = toContext !== undefined && peerHasEnded !== true;
  for (const { kind, what, why } of await look())
    if (!goesLater || kind !== peeringRequests.kind) io.out(`  stays: ${what}${why}\n`);
  if (directions.includes('incoming')) await removeMadePolicies(peerIDOf(cluster), session);
  if (toContext === undefined && directions.includes('outgoing')) {
    await tellLeft([cluster], session);
    if (wasUsed(cluster)) io.out(THEIR_SIDE);
  }
  const { name } = cluster.metadata;
  // Also by an earlier command, whose end this one has waited for.
  const wasPeered = isPeer(cluster) || disabledIn(cluster).length > 0;
  io.out(
    pastable(
      `${wasPeered ? 'Ended.' : 'There was nothing to end.'} ForeignCluster ${name} stays and says not to peer. To remove it: kubectl delete foreigncluster ${name}\n`,
    ),
  );
  return EXIT.ok;
}

function tellTerminating(left: readonly Remnant[], timeoutMs: number, { io }: Session): number {
  if (left.length === 0) return EXIT.ok;
  io.err(
    `The peering has ended, but some of its objects are still there after ${timeoutMs / 1000} s. They go by themselves.\n`,
  );
  for (const { what, why } of left) io.err(`  still terminating: ${what}${why}\n`);
  return EXIT.failed;
}

const wasUsed = ({ status }: ForeignCluster): boolean => (status?.outgoing?.phase ?? 'None') !== 'None';

const THEIR_SIDE =
  '  Over there, the provider removes the request, the account and the namespaces of this cluster now: that takes some seconds ' +
  'while it can be reached. To wait for it, too: --to-context\n';

/** They end with the tenant namespaces of that cluster. */
async function claimsOverThere(clusterID: string, { client, signal }: Session): Promise<string[]> {
  const labelSelector = `${LABEL_MANAGED_BY}=${clusterID}`;
  const { items } = await client.list(persistentVolumes, { labelSelector, signal });
  return claimsAbroad(items);
}
