import { timestamp } from '../../api/conditions.ts';
import type { EventReason } from '../../api/reasons/events.ts';
import { VIRTUAL_NODE_REASONS } from '../../api/virtual-node.ts';
import type { Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { tellLostHistory } from '../../kube/server-news.ts';
import type { Basics } from '../../lib/basics.ts';
import type { Tenants } from '../tenants.ts';
import { type History, type HomeHistory, NO_HISTORY } from './home-history.ts';
import { KeptBodies } from './kept-bodies.ts';

interface RestoresOptions extends Basics {
  /** Default: nobody notices that home was restored. */
  history?: HomeHistory;
  foreign: KubeClient;
  homePods: Informer<Pod>;
  tenants: Pick<Tenants, 'all'>;
  tell: (reason: EventReason, message: string) => void;
  /** `state` says something else. */
  onChange: () => void;
  /** That home pod's body is kept no longer. */
  onReleased: (homeKey: string) => void;
}

/** What people are told of a restore. */
export interface RestoredState {
  reason: 'HomeRestored' | 'ForeignClusterRestored';
  message: string;
}

/** So long people are told that the foreign cluster was restored. */
const TOLD_MS = 10 * 60_000;

/** Which of the two clusters was restored from a backup of late, and what is kept for that. */
export class Restores {
  readonly history: History;
  readonly kept: KeptBodies;
  readonly #options: RestoresOptions;
  #foreignAt = -Infinity;

  constructor(options: RestoresOptions) {
    const { history = NO_HISTORY, homePods, tenants, onReleased, onChange } = options;
    this.#options = options;
    this.history = history;
    this.kept = new KeptBodies({ history, homePods, tenants, onReleased });
    history.onRestored(() => {
      options.tell(VIRTUAL_NODE_REASONS.homeRestored, HOME_EVENT);
      onChange();
    });
  }

  /** The foreign cluster shows less than what was written there. */
  foreignRestored(): void {
    const { foreign, clock, log, tell, onChange } = this.#options;
    this.#foreignAt = clock.monotonic();
    log.warn('the etcd of the foreign cluster was restored from a backup');
    tellLostHistory(foreign, 'its etcd was restored from a backup');
    tell(VIRTUAL_NODE_REASONS.foreignRestored, FOREIGN_MESSAGE);
    onChange();
  }

  /** Undefined: neither of the two. */
  get state(): RestoredState | undefined {
    const { history } = this.#options;
    const restoredAt = history?.restoredAt;
    if (history !== undefined && restoredAt !== undefined) {
      const message = homeMessage(this.kept.homeKeys, timestamp(restoredAt + history.keepMs));
      return { reason: VIRTUAL_NODE_REASONS.homeRestored, message };
    }
    return this.#foreignMs > 0
      ? { reason: VIRTUAL_NODE_REASONS.foreignRestored, message: FOREIGN_MESSAGE }
      : undefined;
  }

  /** When `state` changes by itself, in milliseconds; Infinity: not at all. */
  get stateMs(): number {
    const left = this.history.keptMs > 0 ? this.history.keptMs : this.#foreignMs;
    return left > 0 ? Math.min(left, COUNT_AGAIN_MS) : Infinity;
  }

  get #foreignMs(): number {
    return Math.max(0, this.#foreignAt + TOLD_MS - this.#options.clock.monotonic());
  }
}

/** The number of pods that are kept changes now and then. */
const COUNT_AGAIN_MS = 15_000;

const HOME_EVENT =
  'this cluster was restored from a backup: pods over there that have no pod here are kept for a while, so that their controllers can ' +
  'take them over; the condition Restored of the VirtualNode names them';
/** So many are named one by one: that is a condition, and no list. */
const MOST_NAMED = 8;

/** Pure. @param until RFC 3339 */
export function homeMessage(keys: readonly string[], until: string): string {
  const restored = 'this cluster was restored from a backup';
  if (keys.length === 0) {
    return `${restored}: no pod over there is known to have lost its pod here; such pods are kept until ${until}`;
  }
  const more = keys.length - MOST_NAMED;
  const names = [...keys.slice(0, MOST_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(', ');
  const what =
    keys.length === 1
      ? '1 pod over there has no pod here'
      : `${keys.length} pods over there have no pod here`;
  return `${restored}: ${what} (${names}); they are kept until ${until}, then deleted: make again what you need of them`;
}
const FOREIGN_MESSAGE =
  'the foreign cluster was restored from a backup: pods that it has lost are made anew by their controllers here';
