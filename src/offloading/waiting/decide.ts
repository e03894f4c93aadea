/** Pods that wait for a node and are kept off a virtual node that could take them by now. Pure. */
import type { HeldOff, NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { isControlled, isFinished, isOfDaemonSet } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { present } from '../../lib/fields.ts';
import { type AvoidFacts, avoiding, avoidsOf, nodesToAvoid } from '../admission/avoid.ts';
import { strategyFor } from '../admission/decide.ts';
import { inForce } from '../held-off.ts';
import { remadePod } from '../release/remade-pod.ts';

/** Later: it may not be scheduled yet, by somebody else's word. Evict: its controller makes another. Remake: nobody would. */
export type WaitingAction = { do: 'Stay' } | { do: 'Later' } | { do: 'Evict' | 'Remake'; back: string[] };

const STAY: WaitingAction = { do: 'Stay' };

/**
 * What is done with a pod of the namespace. A pod's affinity cannot be changed, so it is made anew, and let in by what is true now;
 * but only where that makes a difference: one of the virtual nodes that it avoids is ready for the namespace, and would not be
 * avoided any more.
 */
export function decideWaiting(pod: Pod, facts: AvoidFacts): WaitingAction {
  const avoids = avoidsOf(pod);
  if (!isWaiting(pod) || !excludes(pod, avoids)) return STAY;
  const { offloading } = facts;
  const strategy = strategyFor(pod, offloading, facts.nowMs);
  if (strategy === 'Local') return STAY;
  // As the webhook will be asked about it.
  const { spec } = remadePod(pod, offloading.spec.clusterSelector);
  const { nodes } = nodesToAvoid({ ...pod, ...present({ spec }) }, facts, strategy);
  const ready = readyNodes(offloading);
  const back = avoids.filter((name) => ready.includes(name) && !nodes.includes(name));
  if (back.length === 0) return STAY;
  if ((pod.spec?.schedulingGates ?? []).length > 0) return { do: 'Later' };
  return { do: isControlled(pod) ? 'Evict' : 'Remake', back };
}

const isWaiting = (pod: Pod): boolean =>
  (pod.spec?.nodeName ?? '') === '' &&
  pod.metadata.deletionTimestamp === undefined &&
  !isFinished(pod) &&
  !isOfDaemonSet(pod);

/** The annotation alone may be anybody's. */
const excludes = ({ spec }: Pod, nodes: readonly string[]): boolean =>
  nodes.length > 0 &&
  (
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  ).some(({ matchExpressions = [] }) => matchExpressions.some((one) => deepEqual(one, avoiding(nodes))));

const readyNodes = ({ status }: NamespaceOffloading): string[] =>
  (status?.clusters ?? [])
    .filter(({ phase }) => phase === 'Ready')
    .flatMap(({ virtualNodes }) => virtualNodes);

/** What the decision depends on besides the pod. Where two are equal, nothing that waits has to be looked at again. */
export function placesOf({ offloading, failedNodes, selected = [], nowMs }: AvoidFacts): {
  key: string;
  untilMs: number;
} {
  const heldOff = inForce(offloading.status?.heldOff ?? [], nowMs);
  const ready = readyNodes(offloading).filter((name) => !failedNodes.includes(name));
  const { podStrategy, clusterSelector } = offloading.spec;
  const held = heldOff.map(({ owner, virtualNode }: HeldOff) => `${owner} ${virtualNode}`);
  const sizes = selected.map(({ name, nodeSizes }) => JSON.stringify([name, nodeSizes]));
  return {
    key: JSON.stringify([podStrategy, clusterSelector, ready.toSorted(), held.toSorted(), sizes.toSorted()]),
    untilMs: Math.min(Infinity, ...heldOff.map(({ until }) => Date.parse(until))),
  };
}
