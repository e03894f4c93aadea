import { persistentVolumeClaims, pods } from '../../api/resources.ts';
import type { Namespace } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Ages } from '../../lib/ages.ts';
import type { Clock } from '../../lib/clock.ts';
import { ANNOTATION_KEEP_UNTIL, ANNOTATION_ON_END } from '../annotations.ts';

/** While the guardian makes a pod again that a node has lost, the namespace may have none. It waits for five minutes at most. */
const EMPTY_FOR_MS = 600_000;
/** How often one is looked at. */
const LOOK_MS = 30_000;

/** After how many milliseconds to look again at namespaces, of which some may be kept after the end of their contract. */
export const lookAtKeptMs = (namespaces: readonly Namespace[]): number =>
  namespaces.some(({ metadata }) => metadata.annotations?.[ANNOTATION_KEEP_UNTIL] !== undefined)
    ? LOOK_MS
    : Infinity;

/**
 * Until when a tenant namespace is kept after the end of its contract, as its annotations say, milliseconds since the epoch;
 * undefined: not at all, or no longer.
 */
export function keptUntil(
  { metadata: { uid, annotations = {} } }: Namespace,
  nowMs: number,
  ages: Ages,
): number | undefined {
  const seconds = Number(/^Keep=([0-9]{1,9})$/.exec(annotations[ANNOTATION_ON_END] ?? '')?.[1] ?? 0);
  if (seconds === 0) return undefined;
  const known = Date.parse(annotations[ANNOTATION_KEEP_UNTIL] ?? '');
  if (Number.isNaN(known)) return nowMs + seconds * 1000;
  return ages.ageMs(uid, known - seconds * 1000) < seconds * 1000 ? known : undefined;
}

interface KeptNamespacesOptions {
  client: Pick<KubeClient, 'list'>;
  clock: Pick<Clock, 'monotonic'>;
}

/** The tenant namespaces that are kept after the end of their contracts: whether something to keep is in them. */
export class KeptNamespaces {
  readonly #options: KeptNamespacesOptions;
  /** Monotonic; by UID. */
  readonly #emptySince = new Map<string, number>();

  constructor(options: KeptNamespacesOptions) {
    this.#options = options;
  }

  /**
   * Whether nothing to keep has been in it for a while. Pods and claims to volumes are kept; all else is a copy of what the peer
   * has.
   */
  async isDone({ metadata: { name, uid } }: Namespace, signal: AbortSignal): Promise<boolean> {
    const { client, clock } = this.#options;
    for (const type of [pods, persistentVolumeClaims] as const) {
      const { items } = await client.list(type, { namespace: name, metadataOnly: true, signal });
      if (items.length === 0) continue;
      this.#emptySince.delete(uid);
      return false;
    }
    const now = clock.monotonic();
    const since = this.#emptySince.get(uid) ?? now;
    this.#emptySince.set(uid, since);
    return now - since >= EMPTY_FOR_MS;
  }

  forget({ metadata: { uid } }: Namespace): void {
    this.#emptySince.delete(uid);
  }
}
