import { CONDITION_OFFLOADED, OFFLOADED_REASONS } from '../../api/names.ts';
import type { Container, Pod, PodCondition, PodStatus } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import type { ForgeContext } from './context.ts';

/** How a kubelet shows a pod that it has accepted and that cannot begin yet (pkg/kubelet/status/generate.go). Pure. */

/**
 * Whether this node has accepted the pod, which still waits for an object that it refers to. Nothing was made for it over
 * there, although it has a start time.
 */
export const isWaiting = ({ status }: Pod): boolean =>
  status?.conditions?.some(
    ({ type, status: value, reason }) =>
      type === CONDITION_OFFLOADED && value === 'False' && reason === OFFLOADED_REASONS.missingReference,
  ) === true;

/** Only kubelets set startTime; at home that is this agent, for a remote pod that really ran, or for none yet. */
export const hasRun = (home: Pod): boolean => home.status?.startTime !== undefined && !isWaiting(home);

const ACCEPTED_CONDITIONS = ['PodReadyToStartContainers', 'Initialized', 'ContainersReady', 'Ready'] as const;
const isOfAccepted = ({ type }: PodCondition): boolean =>
  (ACCEPTED_CONDITIONS as readonly string[]).includes(type);

/** What is known of a pod, as if it had never waited here: a start time says that it has a body. */
export function statusBefore(home: Pod): PodStatus {
  if (!isWaiting(home)) return home.status ?? {};
  const {
    hostIP: _hostIP,
    hostIPs: _hostIPs,
    startTime: _startTime,
    conditions = [],
    ...rest
  } = home.status ?? {};
  return { ...rest, conditions: conditions.filter((condition) => !isOfAccepted(condition)) };
}

/** Adds to the status of a refused pod what a kubelet says of one that it has accepted. */
export function withAcceptance(
  home: Pod,
  refused: PodStatus,
  { nodeAddress }: Pick<ForgeContext, 'nodeAddress'>,
  now: string,
): PodStatus {
  const { startTime = now } = home.status ?? {};
  const observedGeneration = keptGeneration(home);
  const others = refused.conditions ?? [];
  const scheduled = others.some(({ type }) => type === 'PodScheduled');
  return {
    ...refused,
    startTime,
    hostIP: nodeAddress,
    hostIPs: [{ ip: nodeAddress }],
    conditions: [
      // No scheduler has seen pods that were bound by nodeName; for those the kubelet sets it.
      ...(scheduled ? [] : [since(home, { type: 'PodScheduled', status: 'True' }, now)]),
      ...others,
      ...acceptedConditions(home).map((condition) =>
        since(home, { ...condition, ...present({ observedGeneration }) }, now),
      ),
    ],
    ...present({ observedGeneration }),
  };
}

/** API servers before 1.34 count generations of pods, but drop what was observed: they are not asked again and again. */
const keptGeneration = ({ metadata, status }: Pod): number | undefined =>
  status?.startTime !== undefined && status.observedGeneration === undefined
    ? undefined
    : metadata.generation;

function since(home: Pod, condition: PodCondition, now: string): PodCondition {
  const before = home.status?.conditions?.find(({ type }) => type === condition.type);
  const isSame = before?.status === condition.status;
  return { ...condition, lastTransitionTime: isSame ? (before.lastTransitionTime ?? now) : now };
}

function acceptedConditions({ spec }: Pod): PodCondition[] {
  const inits = spec?.initContainers ?? [];
  const sidecars = inits.filter(({ restartPolicy }) => restartPolicy === 'Always');
  const unready = {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: ${listed([...sidecars, ...(spec?.containers ?? [])])}`,
  };
  const uninitialized = {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: ${listed(inits)}`,
  };
  return [
    { type: 'PodReadyToStartContainers', status: 'False' },
    { type: 'Initialized', ...(inits.length === 0 ? { status: 'True' } : uninitialized) },
    { type: 'ContainersReady', ...unready },
    { type: 'Ready', ...unready },
  ];
}

/** As Go prints a list. */
const listed = (containers: readonly Pick<Container, 'name'>[]): string =>
  `[${containers.map(({ name }) => name).join(' ')}]`;
