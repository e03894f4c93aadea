/** Whether the roles of an installation run, and if not, why. */
import type { Manifest } from '../../api/manifest.ts';
import { daemonSets, deployments, pods, type ResourceType } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { found, listed, nameOf } from './objects.ts';
import { type InstallSession, mustBe, someOf } from './waiting.ts';

interface Rollout {
  readonly wanted: number;
  readonly ready: number;
}

export async function untilReady(
  session: InstallSession,
  objects: readonly Manifest[],
  timeoutMs: number,
): Promise<void> {
  for (const object of objects.filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet')) {
    const { name = '' } = object.metadata;
    await mustBe(session, {
      what: `for ${name} to be ready`,
      timeoutMs,
      advice:
        'All objects are applied, and nothing was taken back: it becomes ready by itself when the cause is gone. Or give other values, ' +
        'such as --image, and run the same command again',
      look: async () => {
        const state = await rolloutOf(session, object);
        if (state === undefined) return 'its controller has not seen it yet';
        if (state.ready >= state.wanted) return '';
        return `${state.ready} of ${state.wanted} pods are; ${await reasons(session, object)}`;
      },
    });
    session.io.out(`ready: ${nameOf(object)}\n`);
  }
}

/** Undefined while the status is about an older version of the object. */
async function rolloutOf(
  session: InstallSession,
  { kind, metadata }: Manifest,
): Promise<Rollout | undefined> {
  const ref = { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
  if (kind === 'Deployment') return ofDeployment(await found(session, deployments, ref));
  return ofDaemonSet(await found(session, daemonSets, ref));
}

type Of<Type> = Type extends ResourceType<infer T> ? T | undefined : never;

function ofDeployment(object: Of<typeof deployments>): Rollout | undefined {
  if (!isSeen(object)) return undefined;
  const { updatedReplicas = 0, readyReplicas = 0, replicas = 0 } = object?.status ?? {};
  // Old pods that are ready do not count, and must be gone.
  return { wanted: object?.spec?.replicas ?? 1, ready: replicas === updatedReplicas ? readyReplicas : 0 };
}

function ofDaemonSet(object: Of<typeof daemonSets>): Rollout | undefined {
  if (!isSeen(object)) return undefined;
  const {
    desiredNumberScheduled: wanted = 0,
    updatedNumberScheduled = 0,
    numberReady = 0,
  } = object?.status ?? {};
  return { wanted, ready: Math.min(updatedNumberScheduled, numberReady) };
}

const isSeen = (
  object: { metadata: { generation?: number }; status?: { observedGeneration?: number } } | undefined,
): boolean => (object?.status?.observedGeneration ?? 0) >= (object?.metadata.generation ?? 1);

/** Of the pods that are not ready. */
async function reasons(session: InstallSession, { metadata }: Manifest): Promise<string> {
  const instance = metadata.labels?.['app.kubernetes.io/instance'] ?? '';
  const labelSelector = `app.kubernetes.io/instance=${instance}`;
  const all = await listed(session, pods, { namespace: metadata.namespace ?? '', labelSelector });
  const waiting = all.filter((pod) => !isReady(pod));
  return waiting.length === 0 ? 'no pod is there yet' : someOf([...new Set(waiting.map(reasonOf))]);
}

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;

function reasonOf({ status }: Pod): string {
  const container = status?.containerStatuses?.find(({ ready }) => !ready);
  const { waiting, running } = container?.state ?? {};
  if (waiting?.reason !== undefined) return [waiting.reason, waiting.message].filter(Boolean).join(': ');
  const unscheduled = status?.conditions?.find(
    ({ type, status: is }) => type === 'PodScheduled' && is === 'False',
  );
  if (unscheduled !== undefined) return `not scheduled: ${unscheduled.message}`;
  return running === undefined ? `${status?.phase}` : 'it runs, and is not ready yet';
}
