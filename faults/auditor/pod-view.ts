/** What of a pod the checks look at. Pure. */
import { DAEMON_SET, HOME_UID, OFFLOADED, RECREATED, RESULT, STATUS_CUT } from './contract.ts';

export type ContainerState = 'waiting' | 'running' | 'terminated' | 'none';

export interface ContainerView {
  readonly name: string;
  readonly id?: string;
  readonly restarts: number;
  readonly state: ContainerState;
  /** Of its state. */
  readonly reason?: string;
  readonly isReady: boolean;
}

export interface PodView {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly generation: number;
  readonly node?: string;
  readonly homeUid?: string;
  readonly isOfDaemonSet: boolean;
  /** Somebody has asked for its deletion. */
  readonly isEnding: boolean;
  readonly phase: string;
  readonly reason?: string;
  readonly isReady: boolean;
  readonly isDisrupted: boolean;
  /** Home says that it does not run over there. */
  readonly isRefused: boolean;
  /** Fields may be missing. */
  readonly isCut: boolean;
  /** Of a body that was made anew: restarts of those before it, by container. */
  readonly restartsBefore?: Readonly<Record<string, number>>;
  readonly isResult: boolean;
  /** Init containers come first. Ephemeral ones are left out: home also shows those that were refused. */
  readonly containers: readonly ContainerView[];
}

interface ContainerStatus {
  name: string;
  containerID?: string;
  restartCount?: number;
  ready?: boolean;
  state?: Partial<Record<Exclude<ContainerState, 'none'>, { reason?: string }>>;
}

export interface Pod {
  metadata: {
    uid: string;
    namespace?: string;
    name: string;
    resourceVersion: string;
    generation?: number;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: { kind: string }[];
  };
  spec?: { nodeName?: string };
  status?: {
    phase?: string;
    reason?: string;
    conditions?: { type: string; status: string; reason?: string }[];
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
  };
}

const STATES = ['terminated', 'running', 'waiting'] as const;
const given = <T>(name: string, value: T | undefined): Record<string, T> =>
  value === undefined || value === '' ? {} : { [name]: value };

function containerView({ name, containerID, restartCount, ready, state }: ContainerStatus): ContainerView {
  const kind = STATES.find((one) => state?.[one] !== undefined) ?? 'none';
  const reason = kind === 'none' ? undefined : state?.[kind]?.reason;
  return {
    name,
    ...given('id', containerID),
    restarts: restartCount ?? 0,
    state: kind,
    ...given('reason', reason),
    isReady: ready === true,
  };
}

/** What a text that cannot be read says is that there was a body before. */
function restartsIn(text: string | undefined): Readonly<Record<string, number>> | undefined {
  if (text === undefined) return undefined;
  try {
    return (JSON.parse(text) as { restarts?: Record<string, number> }).restarts ?? {};
  } catch {
    return {};
  }
}

export function podView({ metadata, spec, status = {} }: Pod): PodView {
  const { labels = {}, annotations = {}, generation = 0 } = metadata;
  const { containerStatuses = [], initContainerStatuses = [] } = status;
  return {
    uid: metadata.uid,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    version: metadata.resourceVersion,
    generation,
    ...given('node', spec?.nodeName),
    ...given('homeUid', labels[HOME_UID]),
    isEnding: metadata.deletionTimestamp !== undefined,
    phase: status.phase ?? 'Pending',
    ...given('reason', status.reason),
    ...conditionsView(metadata, status),
    ...given('restartsBefore', restartsIn(annotations[RECREATED])),
    isResult: annotations[RESULT] === 'true',
    containers: [...initContainerStatuses, ...containerStatuses].map(containerView),
  };
}

type ConditionsView = Pick<PodView, 'isOfDaemonSet' | 'isReady' | 'isDisrupted' | 'isRefused' | 'isCut'>;

function conditionsView(
  { ownerReferences = [] }: Pod['metadata'],
  { conditions = [] }: NonNullable<Pod['status']>,
): ConditionsView {
  const is = (type: string, status: string): boolean =>
    conditions.some((one) => one.type === type && one.status === status);
  return {
    isOfDaemonSet:
      ownerReferences.some(({ kind }) => kind === 'DaemonSet') ||
      conditions.some(({ type, reason }) => type === 'Ready' && reason === DAEMON_SET),
    isReady: is('Ready', 'True'),
    isDisrupted: is('DisruptionTarget', 'True'),
    isRefused: is(OFFLOADED, 'False'),
    isCut: is(STATUS_CUT, 'True'),
  };
}

export const hasEnded = ({ phase }: Pick<PodView, 'phase'>): boolean =>
  phase === 'Succeeded' || phase === 'Failed';

/** Some container runs, or the pod says that it does. */
export const runs = ({ phase, containers }: PodView): boolean =>
  phase === 'Running' || containers.some(({ state }) => state === 'running');

/** `shop/web-1 (uid 1234)`. */
export const nameOf = ({ namespace, name, uid }: Pick<PodView, 'namespace' | 'name' | 'uid'>): string =>
  `${namespace}/${name} (uid ${uid})`;

/** Its status, for people. */
export function stateText({ phase, reason, isReady, containers }: PodView): string {
  const parts = containers.map(
    ({ name, id, restarts, state }) =>
      `${name} ${state}, ${restarts} restarts${id === undefined ? '' : `, ${id}`}`,
  );
  const why = reason === undefined ? '' : ` (${reason})`;
  return `${phase}${why}, ${isReady ? 'ready' : 'not ready'}${parts.length === 0 ? '' : ` [${parts.join('; ')}]`}`;
}
