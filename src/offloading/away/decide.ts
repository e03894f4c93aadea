/** What becomes of a pod on a virtual node whose cluster is away. Pure. */
import type { NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { DEFAULT_STAY_SECONDS, hasOwnStay, isStaySet } from '../../api/node-life.ts';
import { claimVolumes, controllerOf, isFinished, isOfDaemonSet } from '../../api/pod.ts';
import { TAINT_OUT_OF_SERVICE } from '../../api/taints.ts';
import { whenLostOf } from '../../api/when-lost.ts';
import type { Pod } from '../../api/wire.ts';

export interface AwayFacts {
  /** Of the pod's namespace; undefined: it has none that is in effect. */
  offloading: NamespaceOffloading | undefined;
  /** Since when its Node is not Ready, milliseconds. */
  awayMs: number;
}

/** Exactly one step; the next one is decided from its result. */
export type AwayAction =
  | { do: 'nothing' }
  /** Its tolerations let it stay without end, or as Kubernetes has it. `why`: it stays although others move. */
  | { do: 'stay'; until: 'Contact' | 'Default'; why?: Why }
  /** Deleted; its controller makes another. */
  | { do: 'move' }
  /** Later it moves. */
  | { do: 'wait'; ms: number };

export interface Why {
  /** For people. */
  text: string;
  /** What comes of it if Kubernetes lets the pod go: another one runs elsewhere; one that waits for its volumes; none. */
  letGo: 'Another' | 'Waits' | 'None';
}

const NOTHING: AwayAction = { do: 'nothing' };
/** Kubernetes moves a pod at that time by itself; a stay that ends clearly before it needs no word. */
const CLEARLY_BEFORE_SECONDS = 30;

/** In milliseconds after the Node was not Ready; undefined: pods do not move by our doing. */
export function moveAfterMs({ spec }: NamespaceOffloading): number | undefined {
  const { pods, afterSeconds = DEFAULT_STAY_SECONDS } = spec.whenAway ?? {};
  return pods === 'Move' ? afterSeconds * 1000 : undefined;
}

export function decideAway(pod: Pod, { offloading, awayMs }: AwayFacts): AwayAction {
  const isEnding = pod.metadata.deletionTimestamp !== undefined;
  if (isEnding || isFinished(pod) || isOfDaemonSet(pod) || hasOwnStay(pod)) return NOTHING;
  const why = whyStays(pod);
  const dueMs = offloading && moveAfterMs(offloading);
  const isMoved = why === undefined && dueMs !== undefined;
  if (isMoved && awayMs >= dueMs) return { do: 'move' };
  const until = stayOf(why, offloading);
  if (isStaySet(pod) !== (until === 'Contact')) {
    return { do: 'stay', until, ...(why !== undefined && until === 'Contact' && { why }) };
  }
  return isMoved ? { do: 'wait', ms: dueMs - awayMs } : NOTHING;
}

function stayOf(why: Why | undefined, offloading: NamespaceOffloading | undefined): 'Contact' | 'Default' {
  const { pods, afterSeconds = DEFAULT_STAY_SECONDS } = offloading?.spec.whenAway ?? {};
  if (why !== undefined || pods === 'Stay') return 'Contact';
  return pods === 'Move' && afterSeconds > DEFAULT_STAY_SECONDS - CLEARLY_BEFORE_SECONDS
    ? 'Contact'
    : 'Default';
}

/** Why the pod stays whatever is said of its namespace; undefined: it may move. */
function whyStays(pod: Pod): Why | undefined {
  const { kind } = controllerOf(pod) ?? {};
  const hasClaims = claimVolumes(pod).length > 0;
  if (kind === undefined) {
    return {
      text: 'nobody makes a pod without a controller anew, and it may still run over there',
      letGo: 'None',
    };
  }
  const letGo = hasClaims ? 'Waits' : 'Another';
  if (whenLostOf(pod) !== 'Replace') {
    return { text: `a pod of a ${kind} must not run twice, and may still run over there`, letGo };
  }
  return hasClaims ? { text: 'its volumes are over there', letGo } : undefined;
}

const ADVICE: Readonly<Record<Why['letGo'], (taint: string) => string>> = {
  Another: (taint) => `If its cluster is off for certain: ${taint}`,
  Waits: () =>
    'Another pod would wait for its volumes as well: bring that cluster back, or restore the data elsewhere',
  None: (taint) =>
    `If its cluster is off for certain, make it again under another name; ${taint} deletes it for good`,
};

/** What people are told on a pod that stays although others move. */
export const staysMessage = (node: string, { text, letGo }: Why): string =>
  `virtual node "${node}" is away, and the pod stays until contact is back: ${text}. ` +
  ADVICE[letGo](`kubectl taint node ${node} ${TAINT_OUT_OF_SERVICE}=nodeshutdown:NoExecute`);
