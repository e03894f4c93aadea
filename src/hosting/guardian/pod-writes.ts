import { timestamp } from '../../api/conditions.ts';
import { ANNOTATION_RECREATED, ANNOTATION_RESULT, ANNOTATION_RESULT_LOGS } from '../../api/names.ts';
import { type Recreated, recreatedText } from '../../api/recreated.ts';
import { pods } from '../../api/resources.ts';
import type { Draft, Pod, PodStatus } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { ignoring } from '../../lib/errors.ts';
import type { Action } from './decide.ts';
import { type JournalEntry, recreatedNext } from './journal-entry.ts';
import { lostResult, RESULT_GATE } from './result.ts';

interface PodWritesOptions {
  client: KubeClient;
  clock: Clock;
  namespace: string;
  /** Whether the home is still away; asked before each write. */
  mayWrite: () => boolean;
  /** The value of ANNOTATION_RESULT_LOGS, where the log was read in time. */
  logsOf: (entry: JournalEntry) => string | undefined;
}

/** `Contradicted`: the pod is no longer as it was when it was decided. `Stopped`: the home is back. */
export type Outcome = 'Done' | 'Contradicted' | 'Stopped' | { result: PodStatus };

const MAKING: ReadonlySet<Action> = new Set(['Recreate', 'PutBack', 'GiveUp']);

/** Carries out one decision about one pod, after a live read: a cache is not enough to make or end a pod. */
export class PodWrites {
  readonly #options: PodWritesOptions;

  constructor(options: PodWritesOptions) {
    this.#options = options;
  }

  async carryOut(action: Action, entry: JournalEntry, signal: AbortSignal): Promise<Outcome> {
    const { client, clock, namespace, mayWrite } = this.#options;
    const { name } = entry;
    const pod = await client.get(pods, { namespace, name }, { signal }).catch(ignoring('NotFound'));
    if (MAKING.has(action) ? pod !== undefined : !isAsDecided(action, entry, pod)) return 'Contradicted';
    if (action === 'GiveUp') return { result: lostResult(timestamp(clock.now())) };
    if (!mayWrite()) return 'Stopped';
    if (action === 'WriteResult') return this.#writeResult(entry, pod, signal);
    if (action === 'PutBack') {
      const made = await client.create(pods, resultPod(entry, namespace, this.#options.logsOf(entry)), {
        signal,
      });
      // Written even if the home is back by now, and without our signal: nobody else would ever say how that pod ended.
      return this.#writeResult(entry, made);
    }
    if (action === 'Recreate') {
      await client.create(pods, recreatedPod(entry, namespace, recreatedNext(entry)), { signal });
    } else {
      const force = action === 'ForceDelete' && { gracePeriodSeconds: 0 };
      await client.delete(pods, { namespace, name }, { uid: entry.uid, ...force, signal });
    }
    return 'Done';
  }

  async #writeResult({ result }: JournalEntry, pod: Pod | undefined, signal?: AbortSignal): Promise<Outcome> {
    if (pod === undefined || result === undefined) return 'Contradicted';
    const { client } = this.#options;
    const body = { metadata: { uid: pod.metadata.uid }, status: result };
    const options = { subresource: 'status', ...(signal && { signal }) };
    await client.patch(pods, pod.metadata, { type: 'merge', body }, options);
    return 'Done';
  }
}

function isAsDecided(action: Action, { uid }: JournalEntry, pod: Pod | undefined): boolean {
  if (pod?.metadata.uid !== uid) return false;
  if (action === 'ForceDelete') return pod.metadata.deletionTimestamp !== undefined;
  return action !== 'Clear' || pod.status?.phase === 'Failed';
}

/** The lost pod, to be created again. */
function recreatedPod(entry: JournalEntry, namespace: string, recreated: Recreated): Draft<Pod> {
  return podOf(entry, namespace, { [ANNOTATION_RECREATED]: recreatedText(recreated) });
}

/** A pod that bears a result and never runs. Its status is written after it is made. */
function resultPod(entry: JournalEntry, namespace: string, logs: string | undefined): Draft<Pod> {
  const pod = podOf(entry, namespace, {
    [ANNOTATION_RESULT]: 'true',
    // A result without its log is better than none.
    ...(logs !== undefined && hasRoom(entry.annotations, logs) && { [ANNOTATION_RESULT_LOGS]: logs }),
  });
  return { ...pod, spec: { ...entry.spec, schedulingGates: [{ name: RESULT_GATE }] } };
}

/** An API server takes 256 KiB of annotations, keys and values together; the rest is for what is added to these. */
const MOST_ANNOTATIONS = 255 * 1024;

function hasRoom(annotations: Readonly<Record<string, string>>, more: string): boolean {
  const texts = Object.entries(annotations).flat();
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), more.length) <= MOST_ANNOTATIONS;
}

const podOf = (
  { name, labels, annotations, spec }: JournalEntry,
  namespace: string,
  more: Record<string, string>,
): Draft<Pod> => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, labels, annotations: { ...annotations, ...more } },
  spec,
});
