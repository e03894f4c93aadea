import type { Pod } from '../../api/wire.ts';
import { remember } from '../../lib/remember.ts';

interface Awaited {
  /** Version that the answer has, once it is there. */
  written?: string | undefined;
  /** Version that the watch has shown last, before the answer was there. */
  seen?: string | undefined;
}

/** Writes that the watch has not shown yet: as many as there are workers, and room for a watch that lags. */
const MAX_AWAITED = 1_000;

/**
 * What this program writes to a home pod comes back by the watch, before or after the answer. After a write that leaves nothing to
 * do, another look would find nothing.
 */
export class Echoes {
  /** By UID. */
  readonly #awaited = new Map<string, Awaited>();
  readonly #look: (home: Pod) => void;

  /** @param look called for a pod of which more has come back than was written */
  constructor(look: (home: Pod) => void) {
    this.#look = look;
  }

  /** @param write returns the pod as it is now, or undefined where another look is needed */
  async around(home: Pod, write: () => Promise<Pod | undefined>): Promise<void> {
    const { uid } = home.metadata;
    const awaited: Awaited = {};
    remember(this.#awaited, uid, awaited, MAX_AWAITED);
    let version: string | undefined;
    try {
      version = (await write())?.metadata.resourceVersion;
    } finally {
      const isOver = awaited.seen !== undefined || version === undefined;
      if (isOver) this.#awaited.delete(uid);
      else awaited.written = version;
      if (awaited.seen !== version && isOver) this.#look(home);
    }
  }

  /** To be called before a decision is made of this pod: where it is not as it was written yet, what was written is no echo of it. */
  looks({ metadata: { uid, resourceVersion } }: Pod): void {
    const written = this.#awaited.get(uid)?.written;
    if (written !== undefined && written !== resourceVersion) this.#awaited.delete(uid);
  }

  /** Whether this change is what was written, or may be. Any other change of the pod ends the wait for it. */
  take({ metadata: { uid, resourceVersion } }: Pod): boolean {
    const awaited = this.#awaited.get(uid);
    if (awaited === undefined) return false;
    if (awaited.written === undefined) {
      awaited.seen = resourceVersion;
      return true;
    }
    this.#awaited.delete(uid);
    return awaited.written === resourceVersion;
  }
}
