/** `tributary unoffload`: pods of a namespace come home; ends when nothing of it is left in foreign clusters. */
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  OFFLOADING_NAME,
} from '../../api/namespace-offloading.ts';
import { LABEL_OFFLOAD } from '../../api/names.ts';
import { namespaces } from '../../api/resources.ts';
import { originOf, type UnoffloadPlan, unoffloadPlan } from '../../api/unoffload-plan.ts';
import type { Pod } from '../../api/wire.ts';
import { deleteByUid } from '../../kube/write.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Command } from '../command.ts';
import { type CommandLine, EXIT } from '../command-line.ts';
import { timeoutMsOf } from '../durations.ts';
import { watchRole } from '../peering/cluster-mode.ts';
import { clusterCommand, type Session } from '../peering/environment.ts';
import { followObject } from '../peering/foreign-clusters.ts';
import { progressOf } from '../progress.ts';
import { keptAwayLines, keptAwayTitle, readKeptAway } from './kept-away.ts';
import { checkedNamespace, NAMESPACE, readNamespace, readOffloading, waitingLine } from './offloading.ts';

interface UnoffloadArguments {
  namespace: string;
  isDry: boolean;
  timeoutMs: number;
}

/** Exits with EXIT.failed where something is left after the timeout; it goes on. */
export const unoffloadCommand: Command = clusterCommand({
  name: 'unoffload',
  summary: 'Bring pods of a namespace home, and take the namespace back from foreign clusters.',
  about:
    'Pods over there are evicted as their PodDisruptionBudgets permit; those without an owner are made anew here, unless the ' +
    'NamespaceOffloading says onRemoval: End. Also removes the label tributary.dev/offload of the namespace.',
  arguments: [NAMESPACE],
  options: {
    'dry-run': { text: 'only say what would be done' },
    timeout: { value: 'DURATION', text: 'how long to wait', fallback: '120s' },
  },
  examples: [{ line: 'tributary unoffload shop --timeout 10m', does: 'Bring pods of shop home' }],
  parse: ({ positionals: [name = ''], flags, values }: CommandLine): UnoffloadArguments => ({
    namespace: checkedNamespace(name),
    isDry: flags.has('dry-run'),
    timeoutMs: timeoutMsOf({ values }, '120s'),
  }),
  run: unoffload,
});

async function unoffload(
  { namespace, isDry, timeoutMs }: UnoffloadArguments,
  session: Session,
): Promise<number> {
  const { client, io, signal } = session;
  const found = await readNamespace(namespace, 'see: kubectl get namespaces', session);
  const offloading = await readOffloading(namespace, session);
  const plan = unoffloadPlan(found, offloading);
  if (offloading === undefined && plan.label === undefined) {
    io.out(`Namespace ${namespace} is not offloaded\n`);
    return tellKeptAway(await readKeptAway(namespace, session), session);
  }
  for (const line of told(plan, namespace)) io.out(`${line}${isDry ? ' (not done: --dry-run)' : ''}\n`);
  if (isDry) return EXIT.ok;
  if (plan.label !== undefined) {
    const body = { metadata: { labels: { [LABEL_OFFLOAD]: plan.label } } };
    await client.patch(namespaces, { name: namespace }, { type: 'merge', body }, { signal });
  }
  if (plan.deletes && offloading !== undefined)
    await deleteByUid(client, namespaceOffloadings, offloading, { signal });
  return waitUntilGone(namespace, timeoutMs, session);
}

/** They run nowhere: the namespace is home, and they are not. */
function tellKeptAway(kept: readonly Pod[], { io }: Pick<Session, 'io'>): number {
  if (kept.length === 0) return EXIT.ok;
  io.err(
    `${keptAwayTitle(kept)}\n${keptAwayLines(kept)
      .map((line) => `  ${line}\n`)
      .join('')}`,
  );
  return EXIT.failed;
}

const told = ({ label, deletes }: UnoffloadPlan, namespace: string): string[] => [
  ...(label === null ? [`Label ${LABEL_OFFLOAD} of namespace ${namespace} removed`] : []),
  ...(label === 'false'
    ? [
        `Label ${LABEL_OFFLOAD}=false set on namespace ${namespace}: the operator's selector would offload it again`,
      ]
    : []),
  ...(deletes ? [`NamespaceOffloading ${namespace}/${OFFLOADING_NAME} deleted`] : []),
];

async function waitUntilGone(namespace: string, timeoutMs: number, session: Session): Promise<number> {
  const { clock, io } = session;
  const silence = await watchRole(session);
  const began = clock.monotonic();
  const last = await untilGone(namespace, began + timeoutMs, session);
  const kept = await readKeptAway(namespace, session);
  if (last === undefined) {
    const there = `nothing of it is left in foreign clusters (${((clock.monotonic() - began) / 1000).toFixed(1)} s)`;
    io.out(`Namespace ${namespace} is at home; ${there}\n`);
    return tellKeptAway(kept, session);
  }
  io.err(
    `Namespace ${namespace} is not all at home after ${timeoutMs / 1000} s: ${waitingLine(last)}. The role cluster goes on. ` +
      `To see what is left: kubectl -n ${namespace} describe namespaceoffloading\n`,
  );
  tellKeptAway(kept, session);
  io.err(await silence());
  return EXIT.failed;
}

/** Returns the object as it was last seen; undefined: it is gone. */
async function untilGone(
  namespace: string,
  untilMs: number,
  session: Session,
): Promise<NamespaceOffloading | undefined> {
  const progress = progressOf(session);
  const uids = new Set<string>();
  let last: NamespaceOffloading | undefined;
  let isTold = false;
  const isGone = await followObject(session, {
    read: async () => {
      const offloading = await readOffloading(namespace, session);
      return { offloading, kept: isTold ? [] : await readKeptAway(namespace, session) };
    },
    untilMs,
    look: ({ offloading: now, kept }) => {
      if (now === undefined) return true;
      last = now;
      uids.add(now.metadata.uid);
      if (uids.size > 1 && now.metadata.deletionTimestamp === undefined) throw offloadedAgain(now);
      const isEnding = now.metadata.deletionTimestamp !== undefined;
      if (isEnding && kept.length > 0) {
        isTold = true;
        progress.clear();
        tellKeptAway(kept, session);
      }
      progress.show(isEnding ? waitingLine(now) : 'waiting for the cluster role of Tributary');
      return undefined;
    },
  }).finally(progress.clear);
  return isGone === true ? undefined : last;
}

function offloadedAgain(now: NamespaceOffloading): TributaryError {
  const { namespace = '' } = now.metadata;
  return new TributaryError(
    'Conflict',
    `${namespace} was offloaded again meanwhile, by its ${originOf(now) ?? 'own NamespaceOffloading'}; to end that, too: tributary unoffload ${namespace}`,
  );
}
