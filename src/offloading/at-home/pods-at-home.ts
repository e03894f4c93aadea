import type { WantedCondition } from '../../api/conditions.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  type NamespaceOffloading,
  type NamespaceOffloadingReason,
} from '../../api/namespace-offloading.ts';
import { pods } from '../../api/resources.ts';
import { aboutPod } from '../../kube/events.ts';
import { Evictions, heldText } from '../../kube/evictions.ts';
import { nextLookMs } from '../drain.ts';
import type { OffloadingParts } from '../release/remake.ts';
import { subjectOf } from '../status.ts';
import { isKeptHome } from '../held-off.ts';
import { isOfTether, namespaceOf } from '../view.ts';
import {
  atHomeCondition,
  atHomeMessage,
  atHomeOf,
  type AtHome,
  type Move,
  podsToMove,
  type SeenPod,
  seenPod,
  withMove,
} from './decide.ts';

export interface PodsAtHomeOptions extends Pick<OffloadingParts, 'client' | 'clock' | 'events'> {
  /** Names of all Nodes that are, or were, virtual ones of the namespace. */
  virtualNodes: (offloading: NamespaceOffloading) => ReadonlySet<string>;
}

/** What one look has found, and when the next one is due. */
export interface HomeLook {
  count: number;
  condition: WantedCondition<string, NamespaceOffloadingReason>;
  requeueAfterMs?: number;
}

interface Watch {
  generation: number | undefined;
  /** Of the first look, monotonic milliseconds. */
  since: number;
  /** When the number of them has changed, or one was evicted; monotonic milliseconds. */
  changedMs: number;
  /** Of the next look; undefined: there is nothing more to look for. */
  nextMs: number | undefined;
  last: AtHome;
  /** UIDs of pods that have had the event; undefined: they had it from an earlier process. */
  told: Set<string> | undefined;
  moves: Map<string, Move>;
}

/**
 * For so long after the first look, the webhook may not yet be asked about new pods: where many objects come at once, its
 * configuration is written every five seconds (kube/webhook-configuration.ts), and API servers learn of it later.
 */
const SETTLE_MS = 15_000;
const SETTLING_LOOK_MS = 5000;
/** Each event is a write, and so many of them are enough to be noticed. */
const MAX_NOTICES = 100;
const PAGE = 500;
/** Reason of the event on a pod that stays on real nodes. */
const POD_AT_HOME = 'PodAtHome';
const POD_MOVED = 'PodMoved';
const NOBODY: AtHome = { count: 0, example: undefined, waits: [] };

/**
 * Pods that were made before their namespace was offloaded: looked for when that begins, again when the webhook must know of it,
 * and then as long as there are any. No pod of this kind can be made later, so nothing is watched where there is none.
 */
export class PodsAtHome {
  readonly #options: PodsAtHomeOptions;
  readonly #evictions: Evictions;
  /** By UID of the NamespaceOffloading. */
  readonly #watches = new Map<string, Watch>();

  constructor(options: PodsAtHomeOptions) {
    this.#options = options;
    this.#evictions = new Evictions(options);
  }

  /** Undefined: they are of no interest, as with podStrategy Local. Lists pods only where that is due. */
  async look(offloading: NamespaceOffloading, signal: AbortSignal): Promise<HomeLook | undefined> {
    const { clock } = this.#options;
    const { uid, generation } = offloading.metadata;
    const { podStrategy, existingPods } = offloading.spec;
    if (podStrategy === 'Local') {
      this.#watches.delete(uid);
      return undefined;
    }
    const watch = this.#watchOf(offloading);
    const now = clock.monotonic();
    if (watch.nextMs !== undefined && watch.nextMs <= now) await this.#lookNow(offloading, watch, signal);
    const { last, nextMs } = watch;
    return {
      count: last.count,
      condition: atHomeCondition(last, { existingPods, generation, isOfTether: isOfTether(offloading) }),
      ...(nextMs !== undefined && { requeueAfterMs: Math.max(0, nextMs - clock.monotonic()) }),
    };
  }

  /** Forgets all NamespaceOffloadings but these. */
  retain(uids: ReadonlySet<string>): void {
    for (const uid of this.#watches.keys()) if (!uids.has(uid)) this.#watches.delete(uid);
  }

  #watchOf({ metadata, spec, status }: NamespaceOffloading): Watch {
    const { uid, generation } = metadata;
    const now = this.#options.clock.monotonic();
    const known = this.#watches.get(uid);
    if (known !== undefined) {
      // Another strategy, for example: other pods are in the wrong place now.
      if (known.generation !== generation) {
        Object.assign(known, { generation, since: now, changedMs: now, nextMs: now, moves: new Map() });
      }
      return known;
    }
    const isNew = !status?.conditions?.some(
      ({ type }) => type === NAMESPACE_OFFLOADING_CONDITIONS.podsAtHome,
    );
    const isDue = isNew || spec.podStrategy === 'Remote' || (status?.podsAtHome ?? 0) > 0;
    const told = isNew ? new Set<string>() : undefined;
    const nextMs = isDue ? now : undefined;
    const watch: Watch = {
      generation,
      since: now,
      changedMs: now,
      nextMs,
      last: NOBODY,
      told,
      moves: new Map(),
    };
    this.#watches.set(uid, watch);
    return watch;
  }

  async #lookNow(offloading: NamespaceOffloading, watch: Watch, signal: AbortSignal): Promise<void> {
    const found = await this.#list(offloading, signal);
    const held = await this.#move(offloading, watch, { found, signal });
    const { count } = watch.last;
    const now = this.#options.clock.monotonic();
    watch.last = atHomeOf(found, watch.moves, { held, nowMs: now });
    if (watch.told !== undefined) this.#tell(offloading, found, watch.told);
    if (watch.last.count !== count) watch.changedMs = now;
    const settledMs = watch.changedMs + SETTLE_MS;
    if (watch.last.count > 0) watch.nextMs = now + nextLookMs(now - watch.changedMs);
    else if (now < settledMs) watch.nextMs = Math.min(settledMs, now + SETTLING_LOOK_MS);
    else Object.assign(watch, { nextMs: undefined, told: undefined, moves: new Map() });
  }

  async #list(offloading: NamespaceOffloading, signal: AbortSignal): Promise<SeenPod[]> {
    const { client, virtualNodes } = this.#options;
    const { podStrategy = 'LocalAndRemote' } = offloading.spec;
    const place = { podStrategy, virtual: virtualNodes(offloading) };
    const list = { namespace: namespaceOf(offloading), limit: PAGE, signal };
    const found: SeenPod[] = [];
    for await (const { items } of client.pages(pods, list)) {
      found.push(...items.flatMap((pod) => seenPod(pod, place) ?? []));
    }
    return found;
  }

  /** Evicts those that may go now. Returns why others stay, one phrase for each. */
  async #move(
    offloading: NamespaceOffloading,
    watch: Watch,
    { found, signal }: { found: readonly SeenPod[]; signal: AbortSignal },
  ): Promise<string[]> {
    const { clock, events } = this.#options;
    const isAbroad = offloading.status?.clusters?.some(({ phase }) => phase === 'Ready') === true;
    const isSettled = clock.monotonic() - watch.since >= SETTLE_MS;
    // Before that, another pod would come home, too, or wait for its namespace over there.
    if (offloading.spec.existingPods !== 'Move' || !isAbroad || !isSettled) return [];
    if (isKeptHome(offloading, clock.now())) return [];
    const waits: string[] = [];
    for (const pod of podsToMove(found, watch.moves, clock.monotonic())) {
      const held = await this.#evictions.one(pod, signal);
      if (held !== undefined) {
        waits.push(`${pod.metadata.name} is ${heldText(held)}`);
        continue;
      }
      const owner = pod.owner?.uid ?? '';
      const nowMs = clock.monotonic();
      watch.moves.set(owner, withMove(watch.moves.get(owner), found, { owner, nowMs }));
      watch.changedMs = nowMs;
      events.event(aboutPod(pod), 'Normal', POD_MOVED, MOVED);
    }
    return waits;
  }

  #tell(offloading: NamespaceOffloading, found: readonly SeenPod[], told: Set<string>): void {
    const news = found.filter((pod) => pod.isAtHome && !told.has(pod.metadata.uid));
    if (news.length === 0) return;
    const { events } = this.#options;
    const message = `${news.length} pods were made before the namespace was offloaded and stay on real nodes; an event on each says how to let it go`;
    events.event(subjectOf(offloading), 'Normal', NAMESPACE_OFFLOADING_CONDITIONS.podsAtHome, message);
    for (const [index, pod] of news.entries()) {
      told.add(pod.metadata.uid);
      if (index < MAX_NOTICES) events.event(aboutPod(pod), 'Warning', POD_AT_HOME, atHomeMessage(pod));
    }
  }
}

const MOVED =
  'evicted, and made anew where its namespace’s podStrategy permits: its NamespaceOffloading says existingPods: Move';
