import type { PeeringRequest } from '../../api/peering-request.ts';
import { sharingPolicies, type SharingPolicy, type SharingPolicyStatus } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { policyConditions } from './policy-conditions.ts';

/** What is free moves with every pod; it is written at most this often. */
const FREE_INTERVAL_MS = 30_000;
/** As many as the schema takes. */
const MAX_PEERS = 1024;

export interface PolicyStatusOptions {
  client: KubeClient;
  clock: Clock;
  policy: (name: string) => SharingPolicy | undefined;
  requests: () => Iterable<PeeringRequest>;
  free: (policy: SharingPolicy) => ResourceList;
  hasRuntimeClass: (name: string) => boolean;
}

/** Shows on each SharingPolicy about whom it decides and what is free; nothing depends on it. */
export class PolicyStatus {
  readonly #options: PolicyStatusOptions;
  /** When a status was written last, by policy; monotonic. */
  readonly #writtenAt = new Map<string, number>();

  constructor(options: PolicyStatusOptions) {
    this.#options = options;
  }

  async reconcile(name: string, { signal }: { signal: AbortSignal }): Promise<ReconcileResult | void> {
    const { client, clock, policy: find } = this.#options;
    const policy = find(name);
    if (policy === undefined) {
      this.#writtenAt.delete(name);
      return;
    }
    const next = this.#statusOf(policy);
    const nowMs = clock.monotonic();
    const waitMs = (this.#writtenAt.get(name) ?? -Infinity) + FREE_INTERVAL_MS - nowMs;
    if (deepEqual(policy.status, next)) return;
    if (waitMs > 0 && deepEqual({ ...policy.status, free: next.free }, next))
      return { requeueAfterMs: waitMs };
    this.#writtenAt.set(name, nowMs);
    await replaceStatusIfDiffers(client, sharingPolicies, policy, { status: next, signal });
  }

  #statusOf(policy: SharingPolicy): SharingPolicyStatus {
    const { name, generation } = policy.metadata;
    const peers = [...this.#options.requests()].filter(({ status }) => status?.policy === name);
    const { clock, hasRuntimeClass } = this.#options;
    const conditions = policyConditions(policy, { peers, hasRuntimeClass }, clock.now());
    const { conditions: _before, ...status } = policy.status ?? {};
    return {
      ...status,
      ...(conditions.length > 0 && { conditions: [...conditions] }),
      ...(generation !== undefined && { observedGeneration: generation }),
      peers: peers
        .map(({ metadata }) => metadata.name)
        .toSorted()
        .slice(0, MAX_PEERS),
      free: this.#options.free(policy),
    };
  }
}
