/** Whether the roles of an installation run, and if not, why. */
import type { Manifest } from '../../api/manifest.ts';
import { daemonSets, deployments, pods, type ResourceType } from '../../api/resources.ts';
import { replicaFailureOf } from '../../api/replica-failure.ts';
import type { Pod } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import { found, listed, nameOf } from './objects.ts';
import { type InstallSession, mustBe, someOf } from './waiting.ts';

interface Rollout {
  readonly wanted: number;
  readonly ready: number;
  /** Why no pod comes into being. */
  readonly failure?: string;
}

export const isRole = ({ kind }: Manifest): boolean => kind === 'Deployment' || kind === 'DaemonSet';

/** `advice`: what to do where it does not become ready. */
export async function untilReady(
  session: InstallSession,
  role: Manifest,
  { timeoutMs, advice }: { timeoutMs: number; advice: string },
): Promise<void> {
  let waiting: readonly Pod[] = [];
  await mustBe(session, {
    what: `for ${role.metadata.name} to be ready`,
    timeoutMs,
    advice,
    look: async () => {
      waiting = [];
      const state = await rolloutOf(session, role);
      if (state === undefined) return 'its controller has not seen it yet';
      if (state.ready >= state.wanted) return '';
      waiting = await waitingPods(session, role);
      const why =
        waiting.length === 0
          ? (state.failure ?? 'no pod is there yet')
          : someOf([...new Set(waiting.map((pod) => waitingReason(pod)))]);
      return `${state.ready} of ${state.wanted} pods are; ${why}`;
    },
    isHopeless: () => waiting.some((pod) => pullProblem(pod) !== undefined),
  });
  session.io.out(`ready: ${nameOf(role)}\n`);
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
  const ready = replicas === updatedReplicas ? readyReplicas : 0;
  return { wanted: object?.spec?.replicas ?? 1, ready, ...present({ failure: replicaFailureOf(object) }) };
}

/** Whether all pods of a Deployment are of its newest version, and ready. */
export function isRolledOut(object: Of<typeof deployments>): boolean {
  const { ready, wanted } = ofDeployment(object) ?? { ready: 0, wanted: 1 };
  return ready >= wanted;
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

async function waitingPods(session: InstallSession, { metadata }: Manifest): Promise<Pod[]> {
  const instance = metadata.labels?.['app.kubernetes.io/instance'] ?? '';
  const labelSelector = `app.kubernetes.io/instance=${instance}`;
  const all = await listed(session, pods, { namespace: metadata.namespace ?? '', labelSelector });
  return all.filter((pod) => !isReady(pod));
}

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;

/** As kubelets name them. */
const PULL_REASONS: ReadonlySet<string> = new Set([
  'ErrImageNeverPull',
  'ErrImagePull',
  'ImageInspectError',
  'ImagePullBackOff',
  'InvalidImageName',
  'RegistryUnavailable',
]);

/** Why an image of the pod cannot be had; undefined: nothing is known against it. */
export function pullProblem({ status }: Pick<Pod, 'status'>): string | undefined {
  const states = (status?.containerStatuses ?? []).map(({ state }) => state?.waiting);
  const found = states.find((waiting) => PULL_REASONS.has(waiting?.reason ?? ''));
  return found && reasonText(found);
}

const reasonText = ({ reason, message }: { reason?: string; message?: string }): string =>
  [reason, message].filter(Boolean).join(': ');

/** Of a pod that is not ready. */
export function waitingReason({ status }: Pick<Pod, 'status'>): string {
  const container = status?.containerStatuses?.find(({ ready }) => !ready);
  const { waiting, running } = container?.state ?? {};
  if (waiting?.reason !== undefined) return reasonText(waiting);
  const unscheduled = status?.conditions?.find(
    ({ type, status: is }) => type === 'PodScheduled' && is === 'False',
  );
  if (unscheduled !== undefined) return `not scheduled: ${unscheduled.message}`;
  return running === undefined ? (status?.phase ?? 'Pending') : 'it runs, and is not ready yet';
}
