import { timestamp } from '../api/conditions.ts';
import type { Node } from '../api/wire.ts';
import { type Held, heldText } from './evictions.ts';

/** How long each stage may take, in milliseconds. */
export interface DrainLimits {
  /** For so long we respect PodDisruptionBudgets. */
  evictMs: number;
  /** After that we delete the pods; they have so long to end with their own grace period. */
  endMs: number;
}

export interface DrainTimes {
  /** Since the drain began. */
  elapsedMs: number;
  /** Since when the node has not been Ready, or not been there, during the drain; undefined: it is Ready. */
  awayMs?: number;
  /** Nobody in the foreign cluster can end pods any more, or a person does not want to wait. */
  hasty: boolean;
}

/** Evict: as budgets allow. Delete: in spite of budgets, with the pods' own grace period. Force: at once. */
export interface Stage {
  kind: 'Evict' | 'Delete' | 'Force';
  /** When the next stage comes by time alone. */
  endsInMs: number;
}

/** For cases where nobody ends pods, or a person does not want to wait. */
const HASTY_MS = 5000;
/** A node that has not been Ready for so long ends no pods: what is evicted there stays Terminating. */
const AWAY_MS = 20_000;

/** Pure. Whatever happens, Force comes within `evictMs + endMs`. */
export function stageOf({ elapsedMs, awayMs, hasty }: DrainTimes, { evictMs, endMs }: DrainLimits): Stage {
  const allMs = evictMs + endMs;
  const hastyMs = Math.min(HASTY_MS, allMs);
  const forceInMs = Math.min(
    allMs - elapsedMs,
    hasty ? hastyMs - elapsedMs : Infinity,
    awayMs === undefined ? Infinity : Math.min(AWAY_MS, allMs) - awayMs,
  );
  if (forceInMs <= 0) return { kind: 'Force', endsInMs: 0 };
  if (hasty || elapsedMs >= evictMs) return { kind: 'Delete', endsInMs: forceInMs };
  return { kind: 'Evict', endsInMs: Math.min(evictMs - elapsedMs, forceInMs) };
}

/** See DrainTimes; clocks of two machines are compared, so never more than the drain has lasted. Pure. */
export function awayForMs(node: Node | undefined, nowMs: number, elapsedMs: number): number | undefined {
  if (node === undefined) return elapsedMs;
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  // A Node without it is new.
  if (ready === undefined || ready.status === 'True') return undefined;
  const since = Date.parse(ready.lastTransitionTime ?? '');
  return Number.isNaN(since) ? elapsedMs : Math.min(elapsedMs, Math.max(0, nowMs - since));
}

/** What a drain waits for. */
export interface DrainState {
  stage: Stage['kind'];
  /** Pods that are still there, those that are ending among them. */
  left: number;
  held: readonly Held[];
  /** When the stage ends by time alone, milliseconds since the epoch. */
  untilMs: number;
  /** After how many milliseconds to look again. */
  waitMs: number;
}

const MAX_REASONS = 3;

/** A text for people. It stays the same while nothing changes, so that it can be in a status. Pure. */
export function drainText({ stage, left, held, untilMs }: DrainState): string {
  const reasons = new Map<string, number>();
  for (const one of held) {
    const reason = heldText(one);
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  const shown = [...reasons].slice(0, MAX_REASONS).map(([reason, count]) => `${count} ${reason}`);
  const more = reasons.size > MAX_REASONS ? ['...'] : [];
  const until = timestamp(Math.ceil(untilMs / 1000) * 1000);
  const then =
    stage === 'Evict' ? `deleted whatever budgets say from ${until} on` : `ended by force from ${until} on`;
  const pods = left === 1 ? '1 pod' : `${left} pods`;
  return `draining: ${[`${pods} left`, ...shown, ...more].join(', ')}; ${then}`;
}
