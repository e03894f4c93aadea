import { ANNOTATION_WHEN_IMMUTABLE } from '../../api/names.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { unended } from '../../lib/unended.ts';
import type { News } from './mirrored-kind.ts';
import { digestOf } from './settled-copies.ts';

/** Only another definition of the kind over there could change the answer, and nothing tells of that. */
const KEPT_RETRY_MS = 600_000;

/** An update that was refused as such. */
interface RefusedUpdate {
  /** What was to be written. */
  merged: KubeObject;
  copy: KubeObject;
  /** Whether the copy could have been replaced instead. */
  mayReplace: boolean;
}

interface Kept {
  digest: string;
  news: News;
  /** Monotonic, milliseconds. */
  untilMs: number;
}

/**
 * Copies that stay as they are, since their update was refused as such. The same update is not sent again until home's object
 * or the copy changes, or a long time has passed. Kept in memory only.
 */
export class KeptCopies {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  keep(key: string, update: RefusedUpdate, news: News): { requeueAfterMs: number; news: News } {
    const untilMs = this.#clock.monotonic() + KEPT_RETRY_MS;
    this.#kept.set(key, { digest: updateDigest(update), news, untilMs });
    return { requeueAfterMs: KEPT_RETRY_MS, news };
  }

  /** What such an update comes to; undefined: that is to be tried. */
  outcome(key: string, update: RefusedUpdate): { requeueAfterMs: number; news: News } | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    const leftMs = kept.untilMs - this.#clock.monotonic();
    if (leftMs > 0 && kept.digest === updateDigest(update))
      return { requeueAfterMs: leftMs, news: kept.news };
    this.#kept.delete(key);
    return undefined;
  }

  forget(key: string): void {
    this.#kept.delete(key);
  }
}

const updateDigest = ({ merged, copy, mayReplace }: RefusedUpdate): string =>
  `${mayReplace} ${digestOf(merged, copy)}`;

/** Whether the object at home permits that its copy is deleted and made anew. */
export const asksForReplacement = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[ANNOTATION_WHEN_IMMUTABLE] === 'Replace';

/** @param error why it could not be updated */
export const keptNews = (error: unknown): News => ({
  reason: 'CopyNotChanged',
  message:
    'the copy in the foreign cluster stays as it was, since it can be made like this, but not changed to it: ' +
    `${unended(errorMessage(error))}. To have it deleted over there, with all that belongs to it, and made anew, set the annotation ` +
    `${ANNOTATION_WHEN_IMMUTABLE}: Replace`,
});
