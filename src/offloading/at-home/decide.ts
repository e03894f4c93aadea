/** Pods on real nodes that were made before the strategy of their namespace could send them away. Pure. */
import type { WantedCondition } from '../../api/conditions.ts';
import { ANNOTATION_STRATEGY, LABEL_OFFLOAD } from '../../api/names.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  NAMESPACE_OFFLOADING_REASONS as REASONS,
  type NamespaceOffloadingReason,
  type NamespaceOffloadingSpec,
  type PodStrategy,
} from '../../api/namespace-offloading.ts';
import { claimVolumes, controllerOf, isControlled, isFinished, isOfDaemonSet } from '../../api/pod.ts';
import type { OwnerReference, Pod } from '../../api/wire.ts';
import { toleratesAny } from '../admission/strategy.ts';
import { ownerKey } from '../held-off.ts';

const MIRROR = 'kubernetes.io/config.mirror';

export interface Place {
  podStrategy: PodStrategy;
  /** Names of virtual Nodes. */
  virtual: ReadonlySet<string>;
}

/** Whether a pod is, or will be, on a real node although the strategy would have it elsewhere, or leave that to the scheduler. */
export function isAtHome(pod: Pod, { podStrategy, virtual }: Place): boolean {
  const { metadata, spec } = pod;
  if (isFinished(pod) || metadata.deletionTimestamp !== undefined || isMeantToStay(pod)) return false;
  const nodeName = spec?.nodeName ?? '';
  if (virtual.has(nodeName)) return false;
  // Whatever let it in, for example an earlier strategy: a real node is the wrong place.
  if (nodeName !== '' && podStrategy === 'Remote') return true;
  const { [ANNOTATION_STRATEGY]: letIn } = metadata.annotations ?? {};
  // The affinity that the webhook has given it keeps it on real nodes, whatever it tolerates.
  if (letIn === ('Local' satisfies PodStrategy)) return true;
  return letIn === undefined && !toleratesAny(spec?.tolerations ?? []);
}

const isMeantToStay = (pod: Pod): boolean =>
  isOfDaemonSet(pod) ||
  pod.metadata.labels?.[LABEL_OFFLOAD] === 'false' ||
  pod.metadata.annotations?.[MIRROR] !== undefined;

/** What is to be known of one pod; whole pods would be much to hold. */
export interface SeenPod {
  /** Without what is large. */
  metadata: Pod['metadata'];
  owner: OwnerReference | undefined;
  isReady: boolean;
  isEnding: boolean;
  isAtHome: boolean;
  /** Why it is not moved, whoever asks for it. */
  stays: 'NoController' | 'Ends' | 'Volumes' | undefined;
}

/** Undefined: it is finished, and counts for nothing. */
export function seenPod(pod: Pod, place: Place): SeenPod | undefined {
  if (isFinished(pod)) return undefined;
  const { annotations: _annotations, ...metadata } = pod.metadata;
  const { conditions } = pod.status ?? {};
  return {
    metadata,
    owner: controllerOf(pod),
    isReady: conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true,
    isEnding: metadata.deletionTimestamp !== undefined,
    isAtHome: isAtHome(pod, place),
    stays: whyItStays(pod),
  };
}

function whyItStays(pod: Pod): SeenPod['stays'] {
  if (!isControlled(pod)) return 'NoController';
  // A Job would count it as a failure; others that run once would begin again.
  if ((pod.spec?.restartPolicy ?? 'Always') !== 'Always') return 'Ends';
  // Its volumes are here, and a pod elsewhere would wait for them for ever.
  return claimVolumes(pod).length > 0 ? 'Volumes' : undefined;
}

/** What has been done about the pods of one controller. */
export interface Move {
  /** When its last pod was evicted, monotonic milliseconds. */
  atMs: number;
  /** UIDs of all its pods then. Until there is another one, the evicted one has not been replaced. */
  before: ReadonlySet<string>;
  /** UIDs of its pods that were at home then. */
  known: ReadonlySet<string>;
  /** How often another pod came home instead. */
  failures: number;
}

/** A controller makes another pod at once or, as a StatefulSet does, when the first is gone. */
const PAUSE_MS = 5000;
const FAILED_PAUSE_MS = 60_000;
const MAX_PAUSE_MS = 3_600_000;

/**
 * At most one pod of each controller, and a Ready one only while all the others are Ready: as a rollout that never has more than
 * one pod less. So none before there is another pod for the one that was evicted last: a quota or a webhook may refuse it.
 *
 * @param moves by UID of the controller; brought up to date with what came home since
 */
export function podsToMove(pods: readonly SeenPod[], moves: Map<string, Move>, nowMs: number): SeenPod[] {
  const chosen: SeenPod[] = [];
  for (const [uid, group] of byOwner(pods)) {
    const candidates = group.filter((pod) => pod.isAtHome && pod.stays === undefined);
    const last = withReturns(moves.get(uid), candidates, nowMs);
    if (last !== undefined) moves.set(uid, last);
    if (last !== undefined && (nowMs - last.atMs < pauseMs(last) || !isReplaced(last, group))) continue;
    const next = candidates.find(({ isReady }) => !isReady) ?? candidates[0];
    if (next === undefined) continue;
    // One that is not Ready serves nobody, so nobody misses it.
    if (!next.isReady || group.every(({ isReady, isEnding }) => isReady && !isEnding)) chosen.push(next);
  }
  return chosen;
}

/** A pod of that controller has been evicted. */
export function withMove(
  last: Move | undefined,
  pods: readonly SeenPod[],
  { owner, nowMs }: { owner: string; nowMs: number },
): Move {
  const own = pods.filter((pod) => pod.owner?.uid === owner);
  return {
    atMs: nowMs,
    before: uidsOf(own),
    known: uidsOf(own.filter((pod) => pod.isAtHome)),
    failures: last?.failures ?? 0,
  };
}

const uidsOf = (pods: readonly SeenPod[]): Set<string> => new Set(pods.map(({ metadata }) => metadata.uid));

const isReplaced = ({ before }: Move, group: readonly SeenPod[]): boolean =>
  group.some(({ metadata }) => !before.has(metadata.uid));

/** A pod that was made since and is at home, too: something sends it here, and evicting it would not end. */
function withReturns(
  last: Move | undefined,
  candidates: readonly SeenPod[],
  nowMs: number,
): Move | undefined {
  if (last === undefined) return undefined;
  const news = candidates.filter(({ metadata }) => !last.known.has(metadata.uid));
  if (news.length === 0) return last;
  const known = new Set([...last.known, ...uidsOf(news)]);
  return { ...last, atMs: nowMs, known, failures: last.failures + 1 };
}

const pauseMs = ({ failures }: Move): number =>
  failures === 0 ? PAUSE_MS : Math.min(MAX_PAUSE_MS, FAILED_PAUSE_MS * 2 ** (failures - 1));

function byOwner(pods: readonly SeenPod[]): Map<string, SeenPod[]> {
  const groups = new Map<string, SeenPod[]>();
  for (const pod of pods) {
    if (pod.owner === undefined) continue;
    const group = groups.get(pod.owner.uid);
    if (group === undefined) groups.set(pod.owner.uid, [pod]);
    else group.push(pod);
  }
  return groups;
}

/** What was found in one look at the pods of a namespace. */
export interface AtHome {
  count: number;
  /** Of one of them: whose it is, and what to do. */
  example: string | undefined;
  /** One phrase for each that is not moved although it was asked for. */
  waits: readonly string[];
}

/** Pure. `held`: why pods could not be evicted, one phrase for each. */
export function atHomeOf(
  pods: readonly SeenPod[],
  moves: ReadonlyMap<string, Move>,
  { held = [], nowMs }: { held?: readonly string[]; nowMs: number },
): AtHome {
  const found = pods.filter((pod) => pod.isAtHome);
  const [first] = found;
  const groups = byOwner(pods);
  const isStuck = ([uid, last]: [string, Move]): boolean => {
    const group = groups.get(uid) ?? [];
    // Some controllers wait until the pod has ended.
    const isEnding = group.some((pod) => pod.isEnding);
    return !isEnding && nowMs - last.atMs >= pauseMs(last) && !isReplaced(last, group);
  };
  const stuck = new Set([...moves].filter(isStuck).map(([uid]) => uid));
  const waits = found.flatMap((pod) => waitOf(pod, moves, stuck) ?? []);
  return {
    count: found.length,
    example: first && `${first.metadata.name}: ${remedyFor(first)}`,
    waits: [...held, ...waits],
  };
}

const STAYS = {
  NoController: 'nobody would make it again',
  Ends: 'it ends by itself',
  Volumes: 'its volumes are here',
} as const;

/** `stuck`: UIDs of controllers that have not replaced the pod that was evicted last. */
function waitOf(
  { metadata, owner, stays }: SeenPod,
  moves: ReadonlyMap<string, Move>,
  stuck: ReadonlySet<string>,
): string | undefined {
  if (stays !== undefined) return `${metadata.name} stays, ${STAYS[stays]}`;
  if (owner === undefined) return undefined;
  const of = ownerKey({ metadata });
  if (stuck.has(owner.uid)) {
    return `${of} has made no other pod for the one that was evicted: its events say why, or restart it`;
  }
  return (moves.get(owner.uid)?.failures ?? 0) === 0
    ? undefined
    : `pods of ${of} come home again: look for spec.nodeName or their node affinity`;
}

interface Offloaded {
  existingPods: NamespaceOffloadingSpec['existingPods'];
  generation: number | undefined;
  /** A tether keeps the NamespaceOffloading as it is, so that another field of it is of no use. Default false. */
  isOfTether?: boolean;
}

/** The condition PodsAtHome. */
export function atHomeCondition(
  { count, example = '', waits }: AtHome,
  { existingPods, generation, isOfTether = false }: Offloaded,
): WantedCondition<string, NamespaceOffloadingReason> {
  const type = NAMESPACE_OFFLOADING_CONDITIONS.podsAtHome;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  if (count === 0) {
    const message = 'no pod that was made before the namespace was offloaded is on a real node';
    return { type, status: 'False', reason: REASONS.ok, message, ...observed };
  }
  const [wait] = waits;
  const isMoved = existingPods === 'Move';
  const how = isMoved
    ? `they are moved, one of each controller at a time${wait === undefined ? '' : `; ${waits.length} wait: ${wait}`}`
    : `one is ${example}. ${isOfTether ? '`tributary tether CLUSTER --evict`' : 'spec.existingPods: Move'} does so for pods of controllers`;
  const message = `pods that were made before the namespace was offloaded and are still on real nodes: ${count}; ${how}`;
  return {
    type,
    status: 'True',
    reason: isMoved ? REASONS.moving : REASONS.podsAtHome,
    message,
    ...observed,
  };
}

/** One line for people: why the pod stays on real nodes, and what to do. */
export const atHomeMessage = (pod: SeenPod): string =>
  `made before its namespace was offloaded, so it stays on real nodes; ${remedyFor(pod)}`;

function remedyFor({ metadata, owner }: SeenPod): string {
  const { name, namespace = '', labels = {} } = metadata;
  const restart = (kind: string, of: string): string =>
    `to let it go, run \`kubectl -n ${namespace} rollout restart ${kind} ${of}\``;
  const hash = labels['pod-template-hash'];
  if (owner === undefined) {
    return `to let it go, delete it and make it again: kubectl -n ${namespace} delete pod ${name}`;
  }
  switch (owner.kind) {
    case 'ReplicaSet':
      return hash !== undefined && owner.name.endsWith(`-${hash}`)
        ? restart('deployment', owner.name.slice(0, -hash.length - 1))
        : `to let it go, delete it, and ReplicaSet ${owner.name} makes another`;
    case 'StatefulSet':
      return restart('statefulset', owner.name);
    default:
      return `to let it go, delete it, and ${owner.kind} ${owner.name} makes another`;
  }
}
