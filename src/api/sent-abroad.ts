/** Pods of namespaces that are not offloaded, on virtual nodes: what of their own sends them there, and what to change. Pure. */
import {
  ANNOTATION_STRATEGY,
  CONDITION_OFFLOADED,
  NAME_PREFIX,
  OFFLOADED_REASONS,
  TAINT_VIRTUAL_NODE,
} from './names.ts';
import { HOSTNAME } from './placement.ts';
import { controllerOf, isFinished, isOfDaemonSet } from './pod.ts';
import type { Pod } from './wire.ts';

const REFUSED_FOR_GOOD = new Set<string | undefined>([
  OFFLOADED_REASONS.namespaceNotOffloaded,
  OFFLOADED_REASONS.daemonSet,
]);

/** Why its virtual node does not run it; undefined where it does, or has not said. */
export const refusalOf = ({ status }: Pod): string | undefined => {
  const condition = status?.conditions?.find(({ type }) => type === CONDITION_OFFLOADED);
  return condition?.status === 'False' ? condition.reason : undefined;
};

/** The agent of its virtual node has said that it begins nothing for this pod over there. */
export const isRefusedForGood = (pod: Pod): boolean => REFUSED_FOR_GOOD.has(refusalOf(pod));

/** On a virtual node, where it does not run, since its namespace is not offloaded. */
export const isNotOffloaded = (pod: Pod): boolean =>
  refusalOf(pod) === OFFLOADED_REASONS.namespaceNotOffloaded;

/**
 * It waits on a virtual node, or for one, although nobody has let it out: as long as its template says so, it does not run.
 * To be asked about pods of namespaces that are not offloaded.
 */
export function isKeptAway(pod: Pod): boolean {
  const { metadata } = pod;
  if (isFinished(pod) || isOfDaemonSet(pod) || metadata.deletionTimestamp !== undefined) return false;
  if (isNotOffloaded(pod)) return true;
  const isLetIn = metadata.annotations?.[ANNOTATION_STRATEGY] !== undefined;
  return !isLetIn && pod.status?.phase === 'Pending' && !hasStarted(pod) && selectorsOf(pod).length > 0;
}

/** Its containers may have begun: only kubelets set a start time. */
const hasStarted = ({ status }: Pod): boolean => status?.startTime !== undefined;

/** A pod of which a body runs: its node has accepted it and has not refused it since. */
export const hasBody = (pod: Pod): boolean => hasStarted(pod) && refusalOf(pod) === undefined;

/** What its own spec says of virtual nodes, in words; without a selector, the scheduler was free to choose another node. */
function waysOf(pod: Pod): string[] {
  const tolerations = (pod.spec?.tolerations ?? []).filter(
    ({ key }) => (key ?? '') === '' || key === TAINT_VIRTUAL_NODE,
  );
  return [
    ...selectorsOf(pod),
    ...(tolerations.length > 0 ? [`the toleration of ${tolerations[0]?.key ?? 'everything'}`] : []),
  ];
}

function selectorsOf({ spec }: Pod): string[] {
  // The host name of a virtual node is its name.
  const isThere = (key: string, values: readonly string[]): boolean =>
    key.startsWith(NAME_PREFIX) || (key === HOSTNAME && values.includes(spec?.nodeName ?? ''));
  const selected = Object.entries(spec?.nodeSelector ?? {})
    .filter(([key, value]) => isThere(key, [value]))
    .map(([key]) => `the nodeSelector ${key}`);
  const terms =
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const required = terms
    .flatMap(({ matchExpressions = [] }) => matchExpressions)
    .filter(({ operator }) => operator === 'In' || operator === 'Exists')
    .filter(({ key, values = [] }) => isThere(key, values))
    .map(({ key }) => `the nodeAffinity ${key}`);
  return [...new Set([...selected, ...required])];
}

/** Whether there is anything in its own spec that lets it go to a virtual node, or sends it there. */
export const asksForItself = (pod: Pod): boolean => waysOf(pod).length > 0;

/** Whose template makes such pods, for people: `Deployment hello`. */
export function workloadOf(pod: Pod): string {
  const { name, labels = {} } = pod.metadata;
  const owner = controllerOf(pod);
  if (owner === undefined) return `pod ${name}`;
  const hash = labels['pod-template-hash'];
  return owner.kind === 'ReplicaSet' && hash !== undefined && owner.name.endsWith(`-${hash}`)
    ? `Deployment ${owner.name.slice(0, -hash.length - 1)}`
    : `${owner.kind} ${owner.name}`;
}

/** What to change so that the pod runs at home. */
export function homeAdvice(pod: Pod): string {
  const ways = waysOf(pod);
  const from = controllerOf(pod) === undefined ? 'it' : `the pod template of ${workloadOf(pod)}`;
  const again = controllerOf(pod) === undefined ? ', and make it anew' : '';
  return ways.length === 0
    ? `delete it; if the next one gets there, too, look for a nodeName in ${from}`
    : `take ${ways.join(' and ')} out of ${from}${again}`;
}
