import type { PolicyRule } from '../../api/rbac.ts';
import type { ReflectableKind } from '../../api/reflection.ts';
import { selfSubjectRulesReviews } from '../../api/resources.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import { type JudgedKinds, judgeKinds, NO_KINDS } from '../policies/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { ignoring } from '../../lib/errors.ts';

/** After how long a right that people have given or taken is known. */
const FRESH_MS = 15_000;

/**
 * The rights that our own account holds in all namespaces, as the API server's RBAC sees them. Exactly these can be passed on in
 * a Role.
 */
export class HeldRights {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  #last: { atMs: number; rules: readonly PolicyRule[] } | undefined;

  constructor({ client, clock }: { client: KubeClient; clock: Clock }) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Which of these kinds can be granted. */
  async judge(wanted: readonly ReflectableKind[], signal: AbortSignal): Promise<JudgedKinds> {
    if (wanted.length === 0) return NO_KINDS;
    // Where we may not even ask, we hold no right that we know of.
    const held = await this.#rules(signal).catch(ignoring('Forbidden', 'NotFound'));
    return judgeKinds(wanted, held ?? []);
  }

  async #rules(signal: AbortSignal): Promise<readonly PolicyRule[]> {
    const nowMs = this.#clock.monotonic();
    if (this.#last !== undefined && nowMs - this.#last.atMs < FRESH_MS) return this.#last.rules;
    // The review needs a namespace. In this one alone we hold no right that would be passed on.
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
