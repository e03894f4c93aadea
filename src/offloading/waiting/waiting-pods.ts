import type { NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { WAITING_FOR_NODE } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { aboutPod } from '../../kube/events.ts';
import { Evictions } from '../../kube/evictions.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { present } from '../../lib/fields.ts';
import type { AvoidFacts } from '../admission/avoid.ts';
import { NO_NODE } from '../release/journal.ts';
import { MOST_REMADE, type OffloadingParts, type Remake } from '../release/remake.ts';
import { namespaceOf } from '../view.ts';
import { decideWaiting, placesOf, type WaitingAction } from './decide.ts';

interface WaitingPodsOptions extends Pick<OffloadingParts, 'client' | 'clock' | 'events'> {
  remake: Pick<Remake, 'begin' | 'count'>;
  /** What the webhook decides by at the moment. */
  facts: (offloading: NamespaceOffloading) => AvoidFacts;
}

/** What one NamespaceOffloading was looked at for. */
interface Look {
  /** See placesOf. */
  key: string;
  /** When the next one is due, monotonic milliseconds; undefined: not before something changes. */
  nextMs: number | undefined;
  /** After this no pod can have been let in by what was true before; monotonic milliseconds. */
  settledMs: number;
}

/** A pod that is let in at the same moment may be stored after the look. */
const SETTLE_MS = 15_000;
/** What could not be ended is tried again so soon, and what others hold back is looked at so often. */
const AGAIN_MS = 5_000;
const LATER_MS = 60_000;
const PAGE = 500;
const AT_ONCE = 8;

/**
 * The webhook keeps pods off virtual nodes that cannot take them. One that still waits when such a node is back, or when the time
 * for which its owner was held off is over, is made anew: else it would wait for good, where its data are over there or nothing
 * else has room. Looked for when that may be so, and not watched.
 */
export class WaitingPods {
  readonly #options: WaitingPodsOptions;
  readonly #evictions: Evictions;
  /** By UID of the NamespaceOffloading. */
  readonly #looks = new Map<string, Look>();

  constructor(options: WaitingPodsOptions) {
    this.#options = options;
    this.#evictions = new Evictions(options);
  }

  /** Returns when to look again. Lists pods only where that is due. */
  async look(offloading: NamespaceOffloading, signal: AbortSignal): Promise<number | undefined> {
    const { clock, facts } = this.#options;
    const known = facts(offloading);
    const { key, untilMs } = placesOf(known);
    const look = this.#lookOf(offloading, key);
    if (look.nextMs !== undefined && look.nextMs <= clock.monotonic()) {
      const again = await this.#lookNow(offloading, known, signal);
      const settled = clock.monotonic() < look.settledMs ? look.settledMs - clock.monotonic() : undefined;
      const afterMs = again ?? settled;
      look.nextMs = afterMs === undefined ? undefined : clock.monotonic() + afterMs;
    }
    const holdEndsMs = Number.isFinite(untilMs) ? [Math.max(1, untilMs - clock.now())] : [];
    const nextMs = look.nextMs === undefined ? [] : [Math.max(1, look.nextMs - clock.monotonic())];
    return [...nextMs, ...holdEndsMs].toSorted((a, b) => a - b)[0];
  }

  /** Forgets all NamespaceOffloadings but these. */
  retain(uids: ReadonlySet<string>): void {
    for (const uid of this.#looks.keys()) if (!uids.has(uid)) this.#looks.delete(uid);
  }

  #lookOf({ metadata: { uid } }: NamespaceOffloading, key: string): Look {
    const known = this.#looks.get(uid);
    if (known?.key === key) return known;
    const nowMs = this.#options.clock.monotonic();
    const look = { key, nextMs: nowMs, settledMs: nowMs + SETTLE_MS };
    this.#looks.set(uid, look);
    return look;
  }

  /** Returns after how many milliseconds it is to be done once more. */
  async #lookNow(
    offloading: NamespaceOffloading,
    facts: AvoidFacts,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const list = { namespace: namespaceOf(offloading), fieldSelector: WAITING_FOR_NODE, limit: PAGE, signal };
    const again: number[] = [];
    for await (const { items } of this.#options.client.pages(pods, list)) {
      const waits = await eachAtOnce(items, AT_ONCE, async (pod) =>
        this.#one(pod, decideWaiting(pod, facts), { offloading, signal }),
      );
      again.push(...waits.filter((ms) => ms !== undefined));
    }
    return again.length === 0 ? undefined : Math.min(...again);
  }

  async #one(
    pod: Pod,
    action: WaitingAction,
    { offloading, signal }: { offloading: NamespaceOffloading; signal: AbortSignal },
  ): Promise<number | undefined> {
    if (action.do === 'Stay') return undefined;
    if (action.do === 'Later') return LATER_MS;
    const isDone = await (action.do === 'Remake'
      ? this.#remake(pod, offloading, signal)
      : this.#evictions.one(pod, signal).then((held) => held === undefined));
    if (!isDone) return AGAIN_MS;
    const message = `was kept off ${action.back.join(', ')}, which could not take it then, and can now; it is made anew`;
    this.#options.events.event(aboutPod(pod), 'Normal', 'MadeAnew', message);
    return undefined;
  }

  async #remake(pod: Pod, { spec }: NamespaceOffloading, signal: AbortSignal): Promise<boolean> {
    const { remake } = this.#options;
    if (remake.count(pod.metadata.namespace ?? '') >= MOST_REMADE) return false;
    const { clusterSelector } = spec;
    await remake.begin(pod, { from: NO_NODE, unlessStarted: true, ...present({ clusterSelector }), signal });
    return true;
  }
}
