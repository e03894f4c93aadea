/** `tributary offload`: a namespace stretches to foreign clusters; ends when its pods can run there. */
import { amountOf } from '../../api/amounts.ts';
import {
  NAMESPACE_OFFLOADING_REASONS as REASONS,
  type NamespaceOffloading,
  namespaceOffloadings,
  type NamespaceOffloadingSpec,
  OFFLOADING_NAME,
  type OffloadedCluster,
} from '../../api/namespace-offloading.ts';
import { LABEL_OFFLOADING_ORIGIN } from '../../api/names.ts';
import { DEFAULT_PLACEMENT } from '../../api/placement.ts';
import { originOf } from '../../api/unoffload-plan.ts';
import { API_VERSION, closedCondition, virtualNodes } from '../../api/virtual-node.ts';
import type { Draft } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { printYaml } from '../yaml.ts';
import { freeOf, isReadyNode, type NodeUse, readUse, shown } from '../look/use.ts';
import { watchRole } from '../peering/cluster-mode.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { followObject } from '../peering/foreign-clusters.ts';
import { printable, table } from '../peering/terminal-text.ts';
import { differing } from '../overwrite.ts';
import { progressOf } from '../progress.ts';
import {
  NO_CLUSTER,
  OFFLOAD_OPTIONS,
  type OffloadArguments,
  parseOffload,
  selectorOf,
} from './offload-arguments.ts';
import { NAMESPACE, nameOf, readNamespace, readOffloading, readyOf, waitingLine } from './offloading.ts';

/** Exits with EXIT.failed where some of the clusters do not have the namespace in time; what was written stays. */
export const offloadCommand: Command = clusterCommand({
  name: 'offload',
  summary: 'Let pods of a namespace run in foreign clusters.',
  about:
    'Writes the NamespaceOffloading "offloading" of the namespace, and ends when the clusters have it. What somebody has set ' +
    'otherwise is changed with --overwrite only; what you do not say stays as it is.',
  arguments: [NAMESPACE],
  options: OFFLOAD_OPTIONS,
  examples: [
    { line: 'tributary offload shop', does: 'Pods go wherever the scheduler finds a place' },
    {
      line: 'tributary offload batch --strategy Remote --clusters milan',
      does: 'Pods run in milan only, and those that are here already stay',
    },
  ],
  parse: parseOffload,
  run: offload,
});

async function offload(args: OffloadArguments, session: Session): Promise<number> {
  const { client, io, signal } = session;
  const { namespace, isDry, timeoutMs } = args;
  await readNamespace(namespace, `make it with: kubectl create namespace ${namespace}`, session);
  const { items: all } = await client.list(virtualNodes, { signal });
  if (all.length === 0 && !isDry) throw new TributaryError('NotFound', NO_CLUSTER);
  const clusterSelector = selectorOf(args.clusters, all);
  const wanted = { ...args.spec, ...(clusterSelector && { clusterSelector }) };
  const { object, before } = await write(wanted, args, session);
  if (isDry) {
    io.out(printYaml([present(object)]));
    return EXIT.ok;
  }
  const what =
    before === undefined
      ? 'made'
      : object.metadata.generation === before.metadata.generation
        ? 'is unchanged'
        : 'changed';
  io.out(`NamespaceOffloading ${namespace}/${OFFLOADING_NAME} ${what}\n`);
  io.out(session.pastable(placementNote(object, before)));
  return waitUntilReady(object, timeoutMs, session);
}

const draftOf = (namespace: string, spec: NamespaceOffloadingSpec): Draft<NamespaceOffloading> => ({
  apiVersion: API_VERSION,
  kind: 'NamespaceOffloading',
  metadata: { name: OFFLOADING_NAME, namespace },
  spec: { podStrategy: 'LocalAndRemote', ...spec },
});

/** Cannot be changed; the CRD refuses it. */
const FIXED: readonly (keyof NamespaceOffloadingSpec)[] = ['naming', 'remoteName'];

/** The object with what is wanted in it. Throws where a person has to say that more. Pure. */
export function changed(
  before: NamespaceOffloading,
  wanted: NamespaceOffloadingSpec,
  { namespace, mayOverwrite }: Pick<OffloadArguments, 'namespace' | 'mayOverwrite'>,
): NamespaceOffloading {
  const { metadata, spec } = before;
  const origin = originOf(before);
  if (metadata.deletionTimestamp !== undefined) {
    throw new TributaryError(
      'Conflict',
      `pods of ${namespace} are just coming home; to wait until they are there: tributary unoffload ${namespace}`,
    );
  }
  if (origin === 'tether' && !deepEqual({ ...spec, ...wanted }, spec)) {
    throw new TributaryError('Conflict', `the tether of this cluster decides where pods of ${namespace} run`);
  }
  const differs = differing(wanted, spec);
  const fixed = FIXED.find((field) => differs.includes(field));
  if (fixed !== undefined) {
    throw new TributaryError(
      'Conflict',
      `${fixed} of ${namespace} is ${JSON.stringify(spec[fixed])} and cannot be changed; first: tributary unoffload ${namespace}`,
    );
  }
  const [first] = differs;
  if (first !== undefined && !mayOverwrite) {
    const by = origin === undefined ? '' : `, by its ${origin}`;
    const now = JSON.stringify(spec[first]);
    throw new TributaryError(
      'Conflict',
      `${namespace} is offloaded already with ${first} ${now}${by}; to change that, add --overwrite`,
    );
  }
  // The strategy follows the label as long as the object is the label's.
  const isTakenOver = origin !== undefined && differs.includes('podStrategy');
  const { [LABEL_OFFLOADING_ORIGIN]: _, ...labels } = metadata.labels ?? {};
  return {
    ...before,
    metadata: { ...metadata, ...(isTakenOver && { labels }) },
    spec: { ...spec, ...wanted },
  };
}

const present = ({ apiVersion, kind, metadata, spec }: Draft<NamespaceOffloading>): object => {
  const { name, namespace, labels } = metadata;
  const shownLabels = labels !== undefined && Object.keys(labels).length > 0;
  return {
    apiVersion: apiVersion ?? API_VERSION,
    kind: kind ?? 'NamespaceOffloading',
    metadata: { name, namespace, ...(shownLabels && { labels }) },
    spec,
  };
};

interface Written {
  object: NamespaceOffloading;
  /** Undefined: it was made. */
  before: NamespaceOffloading | undefined;
}

/** The role writes too (finalizer, status): then it is read anew, and looked at again. */
const TRIES = 4;

/** With the resourceVersion, so that nothing is overwritten that nobody has looked at. */
async function write(
  wanted: NamespaceOffloadingSpec,
  args: OffloadArguments,
  { client, signal }: Session,
): Promise<Written> {
  const { namespace, isDry } = args;
  for (let left = TRIES; ; left--) {
    const before = await readOffloading(namespace, { client, signal });
    const draft = before === undefined ? draftOf(namespace, wanted) : changed(before, wanted, args);
    const object = draft as NamespaceOffloading;
    if (isDry || (before !== undefined && deepEqual(object, before))) return { object, before };
    try {
      if (before === undefined)
        return { object: await client.create(namespaceOffloadings, draft, { signal }), before };
      return { object: await client.replace(namespaceOffloadings, object, { signal }), before };
    } catch (error) {
      if (left <= 1 || !hasCode(error, 'Conflict', 'AlreadyExists')) throw error;
    }
  }
}

/** Nothing that time would change: a person has to act. */
const LASTING = new Set<string>([REASONS.nameTaken, REASONS.namingRefused, REASONS.notMapped]);

const current = ({ status }: NamespaceOffloading): OffloadedCluster[] =>
  (status?.clusters ?? []).filter(({ phase }) => phase !== 'Ending');

/** Whether there is nothing left to wait for. Pure. */
export function isSettled(offloading: NamespaceOffloading, generation: number): boolean {
  if ((offloading.status?.observedGeneration ?? 0) < generation) return false;
  if (readyOf(offloading)?.reason === REASONS.systemNamespace) return true;
  const clusters = current(offloading);
  const isDone = ({ phase, reason }: OffloadedCluster): boolean =>
    phase === 'Ready' || (phase === 'Failed' && LASTING.has(reason));
  return clusters.length > 0 && clusters.every(isDone);
}

async function waitUntilReady(
  { metadata }: NamespaceOffloading,
  timeoutMs: number,
  session: Session,
): Promise<number> {
  const { clock, io } = session;
  const { namespace = '', generation = 1 } = metadata;
  const progress = progressOf(session);
  const silence = await watchRole(session);
  let last: NamespaceOffloading | undefined;
  const settled = await followObject(session, {
    read: async () => readOffloading(namespace, session),
    untilMs: clock.monotonic() + timeoutMs,
    look: (now) => {
      if (now === undefined)
        throw new TributaryError('NotFound', `the NamespaceOffloading of ${namespace} was deleted meanwhile`);
      last = now;
      if (isSettled(now, generation)) return now;
      progress.show(
        waitingLine((now.status?.observedGeneration ?? 0) < generation ? { ...now, status: {} } : now),
      );
      return undefined;
    },
  }).finally(progress.clear);
  const offloading = settled ?? last;
  if (offloading !== undefined) io.out(session.pastable(await placesOf(offloading, session)));
  if (settled === undefined) {
    io.err(
      `Namespace ${namespace} is not ready in every cluster after ${timeoutMs / 1000} s. The role cluster goes on trying. To see why: ` +
        `kubectl -n ${namespace} describe namespaceoffloading\n`,
    );
    io.err(await silence());
    return EXIT.failed;
  }
  const isReady = current(settled).some(({ phase }) => phase === 'Ready');
  const failed = current(settled).filter(({ phase }) => phase !== 'Ready');
  if (!isReady && failed.length === 0) io.err(`Refused: ${printable(readyOf(settled)?.message ?? '')}\n`);
  for (const one of failed)
    io.err(`Not in ${printable(`${nameOf(one)}: ${one.reason}: ${one.message ?? ''}`)}\n`);
  return isReady && failed.length === 0 ? EXIT.ok : EXIT.failed;
}

const HEAD = ['CLUSTER', 'NAMESPACE THERE', 'STATE', 'PODS FREE', 'CPU FREE', 'MEMORY FREE'];

/** Where its pods can run, and how many; what cannot be read is left out. */
async function placesOf(offloading: NamespaceOffloading, session: Session): Promise<string> {
  const clusters = current(offloading);
  if (clusters.length === 0) return '';
  const use = await readUse(session).catch(() => []);
  const rows = clusters.map((cluster) => {
    const own = use.filter(
      (one) => cluster.virtualNodes.includes(one.virtualNode.metadata.name) && isOpenNode(one),
    );
    const free = (resource: string): string =>
      own.length === 0
        ? ''
        : shown(
            resource,
            own.reduce((sum, one) => sum + freeOf(one, resource), 0n),
          );
    const isKnown = own.some(({ lent }) => amountOf(lent, 'pods') > 0n);
    const amounts = ['pods', 'cpu', 'memory'].map((resource) => (isKnown ? free(resource) : ''));
    return [
      nameOf(cluster),
      cluster.remoteNamespace ?? '',
      isClosed(cluster) ? 'closed' : cluster.phase,
      ...amounts,
    ];
  });
  return table(HEAD, rows) + clusters.map(closedNote).join('') + atHomeNote(offloading);
}

/** Kubernetes holds new pods to the rules of those that are there, so a rollout may stand still. */
function placementNote(now: NamespaceOffloading, before: NamespaceOffloading | undefined): string {
  const [is = DEFAULT_PLACEMENT, was = DEFAULT_PLACEMENT] = [now.spec.placement, before?.spec.placement];
  if (before === undefined || is === was) return '';
  const { namespace = '' } = now.metadata;
  return (
    `Placement ${is} is for new pods. Pods of before keep the rules of ${was}, and where these leave new ones no place, a rollout stands ` +
    `still: delete them, as their controllers make new ones: kubectl -n ${namespace} delete pod NAME\n`
  );
}

const isOpenNode = (one: NodeUse): boolean =>
  isReadyNode(one) && closedCondition(one.virtualNode) === undefined;

const isClosed = ({ reason }: OffloadedCluster): boolean => reason === REASONS.closed;

const closedNote = (cluster: OffloadedCluster): string =>
  isClosed(cluster) ? `${printable(`${nameOf(cluster)}: ${cluster.message ?? ''}`)}\n` : '';

function atHomeNote({ metadata, spec, status }: NamespaceOffloading): string {
  const count = status?.podsAtHome ?? 0;
  if (count === 0) return '';
  const { namespace = '' } = metadata;
  const how =
    spec.existingPods === 'Move'
      ? 'they are being moved, one of each controller at a time'
      : `they stay; to move them: tributary offload ${namespace} --existing-pods Move --overwrite`;
  return `${count} pod(s) that were made earlier are on nodes here: ${how}\n`;
}
