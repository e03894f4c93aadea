import type { Manifest, ManifestOf } from '../../api/manifest.ts';
import type { ReflectableKind } from '../../api/reflection.ts';
import type { Stored } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { FURTHER_OBJECTS, boundsOfKinds } from './quota.ts';
import type * as models from '@kubernetes/client-node';

export type ResourceQuota = Stored<models.V1ResourceQuota>;

/** As good a bound as FURTHER_OBJECTS; all that matters is that it is different. */
const OTHER_BOUND = String(Number(FURTHER_OBJECTS) + 1);
const NUDGE_MS = 10_000;
/** A quota controller looks for new kinds every 30 s. What it has not found after some rounds it may never find. */
const EAGER_MS = 120_000;
const SLOW_NUDGE_MS = 60_000;

interface Uncounted {
  /** Since when a bound is not counted; milliseconds of the monotonic clock, as is `nudged`. */
  since: number;
  /** When the bound was last changed. */
  nudged: number;
}

/**
 * Makes the quota controller count again where a quota's bound on a further kind is not in force yet. When a CRD is newer than
 * the kinds that this controller knows, it writes the bound into status.hard, but nothing into status.used. The API server
 * then refuses every object of the kind ("status unknown for quota"), until the controller goes through all quotas again (5
 * minutes by default), because it does not count when it learns of the kind. It counts a quota at once when its spec changes:
 * so the bound alternates between two values until it is counted, and then stays.
 */
export class QuotaRecounts {
  readonly #clock: Clock;
  /** By namespace. In memory only: after a restart, one more round is needed. */
  readonly #uncounted = new Map<string, Uncounted>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The quota as it should be now; `actual` is the quota as it is. Other manifests are returned unchanged. */
  adapt(manifest: Manifest, actual: ResourceQuota | undefined, kinds: readonly ReflectableKind[]): Manifest {
    if (manifest.kind !== 'ResourceQuota') return manifest;
    const { namespace = '' } = manifest.metadata;
    const quota = manifest as ManifestOf<ResourceQuota>;
    const forged = quota.spec?.hard ?? {};
    // A bound that was agreed on is not ours to change.
    const keys = Object.keys(boundsOfKinds(kinds)).filter((key) => forged[key] === FURTHER_OBJECTS);
    const isDue = this.#isDue(namespace, actual, keys);
    const bounds = keys.map((key) => {
      const isOther = actual?.spec?.hard?.[key] === OTHER_BOUND;
      const isNudged = isDue && isUncounted(actual, key);
      return [key, isOther === isNudged ? FURTHER_OBJECTS : OTHER_BOUND] as const;
    });
    const hard = { ...forged, ...Object.fromEntries(bounds) };
    const adapted: ManifestOf<ResourceQuota> = { ...quota, spec: { ...quota.spec, hard } };
    return adapted;
  }

  /** Kinds of which the API server refuses every object, because one of these quotas has not counted them. */
  static uncounted(
    quotas: readonly (ResourceQuota | undefined)[],
    kinds: readonly ReflectableKind[],
  ): ReflectableKind[] {
    return kinds.filter((kind) =>
      Object.keys(boundsOfKinds([kind])).some((key) => quotas.some((quota) => isUncounted(quota, key))),
    );
  }

  /** After how many milliseconds to look again at these namespaces. */
  waitMs(namespaces: readonly string[]): number {
    const waits = namespaces.flatMap((name) => {
      const known = this.#uncounted.get(name);
      return known === undefined ? [] : [dueAt(known) - this.#clock.monotonic()];
    });
    return Math.max(1000, Math.min(Infinity, ...waits));
  }

  forget(namespace: string): void {
    this.#uncounted.delete(namespace);
  }

  #isDue(namespace: string, actual: ResourceQuota | undefined, keys: readonly string[]): boolean {
    if (!keys.some((key) => isUncounted(actual, key))) {
      this.#uncounted.delete(namespace);
      return false;
    }
    const now = this.#clock.monotonic();
    const known = this.#uncounted.get(namespace) ?? { since: now, nudged: now };
    const isDue = dueAt(known) <= now;
    this.#uncounted.set(namespace, isDue ? { ...known, nudged: now } : known);
    return isDue;
  }
}

/** Whether the controller has seen the bound and could not count. */
const isUncounted = (quota: ResourceQuota | undefined, key: string): boolean =>
  key in (quota?.status?.hard ?? {}) && !(key in (quota?.status?.used ?? {}));

const dueAt = ({ since, nudged }: Uncounted): number =>
  nudged + (nudged - since < EAGER_MS ? NUDGE_MS : SLOW_NUDGE_MS);
