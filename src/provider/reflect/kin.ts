import { LABEL_HOME_UID } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { podReferences, type ReferenceKind } from '../forge/references.ts';

/** A pod that begins in this time and finds its copy gone has its own virtual node make it again. */
const FRESH_MS = 10_000;

/**
 * What pods of all virtual nodes use in a tenant namespace: several of one peering may share it, and with it the
 * copies, while each caches its own pods only. Read anew for each decision, or at most ten seconds before it.
 */
export class KinUse {
  readonly #foreign: KubeClient;
  readonly #clock: Clock;
  readonly #seen = new Map<string, { atMs: number; used: Promise<ReadonlySet<string>> }>();

  constructor(foreign: KubeClient, clock: Clock) {
    this.#foreign = foreign;
    this.#clock = clock;
  }

  async uses(namespace: string, kind: ReferenceKind, name: string): Promise<boolean> {
    const nowMs = this.#clock.monotonic();
    const seen = this.#seen.get(namespace);
    if (seen !== undefined && nowMs - seen.atMs < FRESH_MS) return (await seen.used).has(`${kind}/${name}`);
    const used = this.#look(namespace);
    this.#seen.set(namespace, { atMs: nowMs, used });
    try {
      return (await used).has(`${kind}/${name}`);
    } catch (error) {
      this.#seen.delete(namespace);
      throw error;
    }
  }

  async #look(namespace: string): Promise<ReadonlySet<string>> {
    const { items } = await this.#foreign.list(pods, { namespace, labelSelector: LABEL_HOME_UID });
    return new Set(items.flatMap((pod) => podReferences(pod).map(({ kind, name }) => `${kind}/${name}`)));
  }
}
