/** `tributary unpeer`: ends a peering from this side. */
import { advertisements } from '../../api/advertisement.ts';
import {
  type Direction,
  DIRECTIONS,
  type ForeignCluster,
  foreignClusters,
} from '../../api/foreign-cluster.ts';
import { ANNOTATION_FORCE, LABEL_MANAGED_BY, LABEL_PROVIDER } from '../../api/names.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import { namespaces, persistentVolumes, type ResourceType } from '../../api/resources.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { Condition, KubeObject } from '../../api/wire.ts';
import type { Command } from '../command.ts';
import { type CommandLine, EXIT } from '../command-line.ts';
import { timeoutMsOf } from '../durations.ts';
import { ignoring } from '../../lib/errors.ts';
import { clusterCommand, type Session } from './environment.ts';
import {
  findCluster,
  follow,
  followObject,
  idOf,
  isEnded,
  listClusters,
  stateLine,
} from './foreign-clusters.ts';
import { readOwn } from './id.ts';
import { removeMadePolicies, tellLeft } from './made-policies.ts';
import { lineShower } from './peer.ts';

/** In a message. */
const MOST_NAMED = 5;

interface UnpeerArguments {
  wanted: string;
  directions: readonly Direction[];
  isForced: boolean;
  /** Volumes in the foreign cluster are deleted with the peering, with their contents. */
  mayDeleteVolumes: boolean;
  timeoutMs: number;
  /** The other cluster, where whoever calls may end it too. */
  toContext: string | undefined;
  kubeconfig: string | undefined;
}

/** Exits with EXIT.ok once nothing is left of it here, and with EXIT.failed where something is after the timeout. */
export const unpeerCommand: Command = clusterCommand({
  name: 'unpeer',
  summary: 'End a peering from this side, and wait until nothing is left of it.',
  about:
    'Pods over there are drained first, as their PodDisruptionBudgets permit. The ForeignCluster stays, and says not to peer. ' +
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
    timeoutMs: timeoutMsOf(line, '60s'),
    toContext: line.values['to-context'],
    kubeconfig: line.values['kubeconfig'],
  };
}

async function run(args: UnpeerArguments, session: Session): Promise<number> {
  const { toContext, kubeconfig } = args;
  if (toContext === undefined) return end(args, session);
  const { clusterID } = await readOwn(session);
  const at = { kubeconfig, context: toContext };
  const client = await session.open(at);
  try {
    const code = await end(args, session);
    session.io.out(`In context ${toContext}:\n`);
    const directions = args.directions.map((direction) => SEEN_FROM_THERE[direction]);
    const codeThere = await end({ ...args, wanted: clusterID, directions }, session.on(at, client));
    return code === EXIT.ok ? codeThere : code;
  } finally {
    await client.close();
  }
}

const SEEN_FROM_THERE: Readonly<Record<Direction, Direction>> = {
  outgoing: 'incoming',
  incoming: 'outgoing',
};

/** On this side. */
async function end(args: UnpeerArguments, session: Session): Promise<number> {
  const { wanted, directions, isForced, mayDeleteVolumes, timeoutMs } = args;
  const { client, clock, io, signal } = session;
  const cluster = findCluster(await listClusters(session), wanted);
  const { name } = cluster.metadata;
  const volumes = directions.includes('outgoing') ? await claimsOverThere(idOf(cluster), session) : [];
  if (volumes.length > 0 && !mayDeleteVolumes) {
    io.err(
      `Nothing was changed: what is in ${volumes.length} volume(s) over there would be lost, of the claims ${volumes.slice(0, MOST_NAMED).join(', ')}` +
        `${volumes.length > MOST_NAMED ? ', ...' : ''}. Save what you need and delete the claims (where one is gone, the PersistentVolume), or add --delete-volumes.\n`,
    );
    return EXIT.failed;
  }
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
  const clusterID = idOf(cluster);
  const look = async (): Promise<Remnant[]> =>
    clusterID === undefined ? [] : remains(clusterID, directions, session);
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
  { directions, timeoutMs, toContext }: UnpeerArguments,
  { look, ...waiting }: Looking,
  session: Session,
): Promise<number> {
  const { io, pastable } = session;
  const terminating = await terminated(look, waiting, session);
  if (terminating.length > 0) {
    io.err(
      `The peering has ended, but some of its objects are still there after ${timeoutMs / 1000} s. They go by themselves.\n`,
    );
    for (const { what, why } of terminating) io.err(`  still terminating: ${what}${why}\n`);
    return EXIT.failed;
  }
  for (const { what, why } of await look()) io.out(`  stays: ${what}${why}\n`);
  if (directions.includes('incoming')) await removeMadePolicies(idOf(cluster), session);
  if (toContext === undefined && directions.includes('outgoing')) await tellLeft([cluster], session);
  const { name } = cluster.metadata;
  io.out(
    pastable(
      `Ended. ForeignCluster ${name} stays and says not to peer. To remove it: kubectl delete foreigncluster ${name}\n`,
    ),
  );
  return EXIT.ok;
}

/**
 * Claims whose volumes are in that cluster, as `namespace/name`: they end with its tenant namespaces. Also of claims that
 * are gone where somebody has said Retain, and so that the data are to stay.
 */
async function claimsOverThere(
  clusterID: string | undefined,
  { client, signal }: Session,
): Promise<string[]> {
  if (clusterID === undefined) return [];
  const labelSelector = `${LABEL_MANAGED_BY}=${clusterID}`;
  const { items } = await client.list(persistentVolumes, { labelSelector, signal });
  return items
    .filter(
      ({ spec, status }) =>
        status?.phase === 'Bound' ||
        (status?.phase === 'Released' && spec?.persistentVolumeReclaimPolicy === 'Retain'),
    )
    .map(({ spec }) => `${spec?.claimRef?.namespace}/${spec?.claimRef?.name}`)
    .toSorted();
}

interface Remnant {
  what: string;
  /** What is known of it, with what is before it; empty: nothing. */
  why: string;
  /** It is being deleted: it goes by itself. */
  isEnding: boolean;
}

/** Waits until nothing is being deleted any more; returns what is when the time is up. */
async function terminated(
  look: () => Promise<Remnant[]>,
  { untilMs, shown }: { untilMs: number; shown: (line: string) => void },
  session: Session,
): Promise<readonly Remnant[]> {
  let left: Remnant[] = [];
  await followObject(session, {
    untilMs,
    read: look,
    look: (now) => {
      left = now.filter(({ isEnding }) => isEnding);
      if (left.length === 0) return true;
      const names = left.slice(0, MOST_NAMED).map(({ what, why }) => what + why);
      shown(`ended; still terminating: ${names.join(', ')}${left.length > MOST_NAMED ? ', ...' : ''}`);
      return undefined;
    },
  });
  return left;
}

/** What was made for the peering and is still there. */
async function remains(
  clusterID: string,
  directions: readonly Direction[],
  { client, signal }: Session,
): Promise<Remnant[]> {
  const found: Remnant[] = [];
  const note = ({ kind }: { kind: string }, object: KubeObject): void =>
    void found.push(remnant(kind, object));
  const add = async <T extends KubeObject>(type: ResourceType<T>, labelSelector: string): Promise<void> => {
    const { items } = await client.list(type, { labelSelector, signal });
    for (const object of items) note(type, object);
  };
  const addOne = async <T extends KubeObject>(type: ResourceType<T>): Promise<void> => {
    const object = await client.get(type, { name: clusterID }, { signal }).catch(ignoring('NotFound'));
    if (object !== undefined) note(type, object);
  };
  if (directions.includes('outgoing')) {
    await addOne(advertisements);
    await add(virtualNodes, `${LABEL_PROVIDER}=${clusterID}`);
  }
  if (directions.includes('incoming')) {
    await addOne(peeringRequests);
    await add(namespaces, `${LABEL_PEER}=${clusterID}`);
  }
  return found;
}

/** A namespace says what is left in it: `Some resources are remaining: pods. has 2 resource instances`. */
function remnant(kind: string, object: KubeObject & { status?: object }): Remnant {
  const { name, deletionTimestamp } = object.metadata;
  const isEnding = deletionTimestamp !== undefined;
  const { conditions = [] } = (object.status ?? {}) as { conditions?: readonly Partial<Condition>[] };
  const told = conditions.find(
    ({ type, status }) => type === 'NamespaceContentRemaining' && status === 'True',
  );
  const kept = kind === 'Namespace' && !isEnding ? ' (its SharingPolicy keeps it for a while: onEnd)' : '';
  const why = told?.message === undefined ? kept : ` (${told.message})`;
  return { what: `${kind} ${name}`, why, isEnding };
}
