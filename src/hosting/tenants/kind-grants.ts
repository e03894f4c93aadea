import type { PolicyRule } from '../../api/rbac.ts';
import { selfSubjectRulesReviews } from '../../api/resources.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';

/** A right that people have just given or taken is known after so long. */
const FRESH_MS = 15_000;

/**
 * The rights that our own account holds everywhere, as the API server's RBAC sees them: what it lets us pass on in a Role is
 * exactly that.
 */
export class HeldRights {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  #last: { atMs: number; rules: readonly PolicyRule[] } | undefined;

  constructor({ client, clock }: { client: KubeClient; clock: Clock }) {
    this.#client = client;
    this.#clock = clock;
  }

  async rules(signal: AbortSignal): Promise<readonly PolicyRule[]> {
    const nowMs = this.#clock.monotonic();
    if (this.#last !== undefined && nowMs - this.#last.atMs < FRESH_MS) return this.#last.rules;
    // The review wants a namespace; we hold nothing of interest in this one alone.
    const review = await this.#client.create(
      selfSubjectRulesReviews,
      { metadata: {}, spec: { namespace: PEERS_NAMESPACE } },
      { signal },
    );
    const rules = review.status?.resourceRules ?? [];
    this.#last = { atMs: nowMs, rules };
    return rules;
  }
}
