import { isOfNodes } from '../../api/amounts.ts';
import { CONDITION_OFFLOADED, OFFLOADED_REASONS } from '../../api/names.ts';
import { controllerOf } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { hasCode } from '../../lib/errors.ts';
import { parseMilli } from '../../lib/quantity.ts';

/** Of what there is too little over there, and how much is left of it, in thousandths. */
export interface Shortage {
  /** As a Node names it. */
  resource: string;
  left: bigint;
}

/** The words of a ResourceQuota (plugin/pkg/admission/resourcequota), and of the sum over all namespaces of a peer. */
const AMOUNTS = /requested:? (\S+), used:? (\S+), (?:limited|granted):? (\S+)/u;
/** Of a message, and of the amounts in it: a peer has written them. */
const MOST_TEXT = 4096;
const MOST_AMOUNTS = 32;
const QUANTITY = /^\d[\w.]{0,31}$/u;
/** A kubelet names the first of these that is short. */
const ORDER = ['pods', 'cpu', 'memory', 'ephemeral-storage'];
const UNTOLD: Shortage = { resource: 'pods', left: 0n };

/**
 * What a refusal for room says: at least one shortage, the one to be named first. Where the words cannot be understood, no
 * pod has room.
 */
export function shortagesOf(message: string): [Shortage, ...Shortage[]] {
  const [, requested = '', used = '', granted = ''] = AMOUNTS.exec(message.slice(0, MOST_TEXT)) ?? [];
  const [taken, most] = [readAmounts(used), readAmounts(granted)];
  const found = [...readAmounts(requested).keys()].map((resource): Shortage => {
    const left = (most.get(resource) ?? 0n) - (taken.get(resource) ?? 0n);
    return { resource, left: left > 0n ? left : 0n };
  });
  const rank = ({ resource }: Shortage): number => (ORDER.indexOf(resource) + ORDER.length) % ORDER.length;
  const [first = UNTOLD, ...others] = found.toSorted((a, b) => rank(a) - rank(b));
  return [first, ...others];
}

/** `requests.cpu=1,pods=2`, as amounts by the names that a Node uses; without what no Node counts. */
function readAmounts(text: string): Map<string, bigint> {
  const pairs = text.split(',', MOST_AMOUNTS).flatMap((pair): [string, bigint][] => {
    const [key = '', amount = ''] = pair.split('=');
    const resource = key.replace(/^(requests\.|count\/)/u, '');
    const milli = readMilli(amount);
    // Its name becomes the reason of a status and of an event: no other text of the peer may.
    return !isOfNodes(resource) || milli === undefined ? [] : [[resource, milli]];
  });
  return new Map(pairs);
}

function readMilli(text: string): bigint | undefined {
  if (!QUANTITY.test(text)) return undefined;
  try {
    return parseMilli(text);
  } catch (error) {
    if (hasCode(error, 'Invalid')) return undefined;
    throw error;
  }
}

/** A freed place is counted over there a moment after it is free. For so long a pod is tried again before it is given up. */
export const ROOM_PATIENCE_MS = 5_000;

/** Controllers that make another pod for one that has failed. Whether others do is not known, and nobody does for a bare pod. */
const REPLACING = new Set(['ReplicaSet', 'ReplicationController', 'StatefulSet', 'Job']);
const BUILT_IN = /^(v1|apps\/v1|batch\/v1)$/u;

export function isReplaced(home: Pod): boolean {
  const owner = controllerOf(home);
  return owner !== undefined && REPLACING.has(owner.kind) && BUILT_IN.test(owner.apiVersion);
}

/** Whether home shows that there was no room for it. */
export const lacksRoom = ({ status }: Pod): boolean => shortageCondition(status?.conditions) !== undefined;

/** Whether it has been refused for room for as long as a freed place may take to be counted. */
export function isRefusedForLong({ status }: Pod, nowMs: number): boolean {
  const since = Date.parse(shortageCondition(status?.conditions)?.lastTransitionTime ?? '');
  return nowMs - since >= ROOM_PATIENCE_MS;
}

/**
 * Whether a pod that has just been refused for room is to end as a kubelet ends one that it cannot admit, so that its
 * controller makes another, which goes where there is room: a pod cannot be bound twice.
 */
export const isToEnd = (home: Pod, nowMs: number): boolean =>
  isReplaced(home) && isRefusedForLong(home, nowMs);

type Conditions = NonNullable<Pod['status']>['conditions'];

const shortageCondition = (conditions: Conditions): NonNullable<Conditions>[number] | undefined =>
  conditions?.find(
    ({ type, status, reason }) =>
      type === CONDITION_OFFLOADED && status === 'False' && reason === OFFLOADED_REASONS.exceededQuota,
  );
