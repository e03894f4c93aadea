import { timestamp } from '../../api/conditions.ts';
import { ANNOTATION_RESUME } from '../../api/names.ts';
import type { PeeringRequest, Suspension } from '../../api/peering-request.ts';
import { remember } from '../../lib/remember.ts';

const FIRST_MS = 10 * 60_000;
const DAY_MS = 24 * 3600_000;
/** A peer that was not suspended for so long begins anew. */
const FORGOTTEN_MS = DAY_MS;
const MOST_PEERS = 1000;

/** Pure. Each suspension is twice as long as the one before, up to a day. */
export function suspend(before: Suspension | undefined, why: string, nowMs: number): Suspension {
  const count = before === undefined ? 1 : before.count + 1;
  const lastsMs = Math.min(DAY_MS, FIRST_MS * 2 ** Math.min(count - 1, 10));
  return { since: timestamp(nowMs), until: timestamp(nowMs + lastsMs), count, why };
}

/** Pure. Milliseconds for which it lasts yet; 0: it is over. No longer than a day, whatever clock or person has written it. */
export function lastsMs({ until }: Suspension, nowMs: number): number {
  const leftMs = Date.parse(until) - nowMs;
  return leftMs > 0 ? Math.min(leftMs, DAY_MS) : 0;
}

/** Pure. Whether it still counts when the peer is suspended again. */
const isRemembered = ({ until }: Suspension, nowMs: number): boolean =>
  nowMs - Date.parse(until) < FORGOTTEN_MS;

/** For people here and, as the message of a grant, over there. */
export const suspensionMessage = (name: string, { why, until, count }: Suspension): string =>
  `suspended until ${timestamp(Date.parse(until) || 0)}${count > 1 ? `, for the ${count}th time` : ''}: ${why}. It has no rights ` +
  'here until then, and its pods stay. Look at what writes so much over there. To end this now: ' +
  `kubectl annotate peeringrequest ${name} ${ANNOTATION_RESUME}=true`;

/** Whether a person has said that the peer may go on. */
export const isLifted = ({ metadata }: PeeringRequest): boolean =>
  metadata.annotations?.[ANNOTATION_RESUME] === 'true';

/**
 * Who is suspended. It is stored in the status; in memory as well, because a peer that takes its request back and asks again must
 * not be rid of it.
 */
export class Suspensions {
  readonly #known = new Map<string, Suspension>();
  readonly #noted = new Map<string, string>();

  /** The peer is to be suspended, unless it is. */
  note(peer: string, why: string): void {
    if (this.#noted.size < MOST_PEERS) this.#noted.set(peer, why);
  }

  /** The last one that still counts; it may be over. */
  of(request: PeeringRequest, nowMs: number): Suspension | undefined {
    const { name } = request.metadata;
    const why = this.#noted.get(name);
    this.#noted.delete(name);
    if (isLifted(request)) {
      this.#known.delete(name);
      return undefined;
    }
    const last = this.#known.get(name) ?? request.status?.suspension;
    const before = last !== undefined && isRemembered(last, nowMs) ? last : undefined;
    const isOver = before === undefined || lastsMs(before, nowMs) === 0;
    const current = why !== undefined && isOver ? suspend(before, why, nowMs) : before;
    if (current === undefined) this.#known.delete(name);
    else remember(this.#known, name, current, MOST_PEERS);
    return current;
  }
}
