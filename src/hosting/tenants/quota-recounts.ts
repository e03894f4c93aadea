import type { Manifest, ManifestOf } from '../../api/manifest.ts';
import type { ReflectableKind } from '../../api/reflection.ts';
import type { Stored } from '../../api/wire.ts';
import type { Clock } from '../../lib/clock.ts';
import { FURTHER_OBJECTS, boundsOfKinds } from './quota.ts';
import type * as models from '@kubernetes/client-node';

export type ResourceQuota = Stored<models.V1ResourceQuota>;

/** As good a bound as the other one; only that it is another matters. */
const OTHER_BOUND = String(Number(FURTHER_OBJECTS) + 1);
const NUDGE_MS = 10_000;
/** A quota controller looks for new kinds every 30 s; what it has not found after some rounds it may never find. */
const EAGER_MS = 120_000;
const SLOW_NUDGE_MS = 60_000;

interface Uncounted {
  /** Monotonic milliseconds, both. */
  since: number;
  nudged: number;
}

/**
 * Has quotas counted again whose bound on a further kind is not in force yet. Where the CRD is newer than the quota
 * controller's knowledge of kinds, that controller writes the bound into status.hard, but nothing into status.used; the API
 * server then refuses every object of the kind ("status unknown for quota"), and it would stay so until the controller
 * goes through all quotas again (5 minutes by default): learning of the kind makes it count nothing. A quota whose spec
 * has changed it counts at once, so the bound goes to and fro between two values until it is counted, and then stays.
 */
export class QuotaRecounts {
  readonly #clock: Clock;
  /** By namespace. Lost with the process, which costs one round. */
  readonly #uncounted = new Map<string, Uncounted>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The quota as it is to be now; `actual`: as it is. Other manifests as they are. */
  adapt(manifest: Manifest, actual: ResourceQuota | undefined, kinds: readonly ReflectableKind[]): Manifest {
    if (manifest.kind !== 'ResourceQuota') return manifest;
    const { namespace = '' } = manifest.metadata;
    const quota = manifest as ManifestOf<ResourceQuota>;
    const forged = quota.spec?.hard ?? {};
    // One that was agreed to be another is no number of ours to change.
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

  /** Kinds of which the API server lets no object in, since one of these quotas has not counted them. */
  static uncounted(
    quotas: readonly (ResourceQuota | undefined)[],
    kinds: readonly ReflectableKind[],
  ): ReflectableKind[] {
    return kinds.filter((kind) =>
      Object.keys(boundsOfKinds([kind])).some((key) => quotas.some((quota) => isUncounted(quota, key))),
    );
  }

  /** When to look again at these namespaces, milliseconds. */
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

/** The controller has seen the bound, and could not count. */
const isUncounted = (quota: ResourceQuota | undefined, key: string): boolean =>
  key in (quota?.status?.hard ?? {}) && !(key in (quota?.status?.used ?? {}));

const dueAt = ({ since, nudged }: Uncounted): number =>
  nudged + (nudged - since < EAGER_MS ? NUDGE_MS : SLOW_NUDGE_MS);
