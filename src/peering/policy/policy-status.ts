import { withCondition } from '../../api/conditions.ts';
import { MAX_CLUSTER_IDS } from '../../api/limits.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { Condition, KubeObject, ResourceList } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Controller, type ControllerMetrics } from '../../kube/controller.ts';
import type { Cache } from '../../kube/cache.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';

/** What a policy does today. */
export interface PolicyEffect {
  /** ClusterIDs that it decides about. */
  peers: readonly string[];
  free?: ResourceList;
}

interface PolicyStatus {
  observedGeneration?: number;
  peers?: string[];
  free?: ResourceList;
  conditions?: Condition[];
}

type Policy = KubeObject & { status?: PolicyStatus };

export interface PolicyStatusOptions<P extends Policy> {
  client: KubeClient;
  type: ResourceType<P>;
  policies: Pick<Cache<P>, 'get' | 'list' | 'onChange'>;
  /** Throws Invalid for what is written there and makes no sense. */
  effect: (policy: P) => PolicyEffect;
  /** Calls back when the effect of any policy may be another; the returned function ends that. */
  onChange: (listener: () => void) => () => void;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
}

/** Peers and free amounts move with every pod; people read them now and then. */
const CALM_MS = 5_000;

/** Keeps the status of all policies of one kind. */
export class PolicyStatusKeeper<P extends Policy> implements Component {
  readonly name: string;
  readonly #options: PolicyStatusOptions<P>;
  readonly #controller: Controller;
  #ends: (() => void)[] = [];

  constructor(options: PolicyStatusOptions<P>) {
    const { type, clock, log, metrics } = options;
    this.name = `status of ${type.plural}`;
    this.#options = options;
    this.#controller = new Controller({
      name: `${type.plural}-status`,
      concurrency: 1,
      reconcile: async (name, { signal }) => this.#reconcile(name, signal),
      clock,
      log,
      ...(metrics && { metrics }),
    });
  }

  async start(signal: AbortSignal): Promise<void> {
    const { policies, onChange } = this.#options;
    this.#ends = [
      policies.onChange((name) => this.#controller.add(name)),
      onChange(() => {
        for (const { metadata } of policies.list()) this.#controller.addAfter(metadata.name, CALM_MS);
      }),
    ];
    for (const { metadata } of policies.list()) this.#controller.add(metadata.name);
    await this.#controller.start(signal);
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) end();
    await this.#controller.stop();
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<void> {
    const { client, type, policies, effect, clock } = this.#options;
    const policy = policies.get(name);
    if (policy === undefined || policy.metadata.deletionTimestamp !== undefined) return;
    const status: NonNullable<Policy['status']> = statusOf(policy, () => effect(policy), clock.now());
    await replaceStatusIfDiffers<P>(client, type, policy, {
      status,
      signal,
    });
  }
}

function statusOf(policy: Policy, effect: () => PolicyEffect, nowMs: number): PolicyStatus {
  const { conditions: before = [] } = policy.status ?? {};
  const observed = policy.metadata.generation;
  const base = { ...(observed !== undefined && { observedGeneration: observed }) };
  const valid = (status: 'True' | 'False', reason: string, message: string): Condition[] => [
    ...withCondition(before, { type: 'Valid', status, reason, message, ...base }, nowMs),
  ];
  try {
    const { peers, free } = effect();
    const some = peers.toSorted().slice(0, MAX_CLUSTER_IDS);
    const conditions = valid('True', 'AsExpected', 'in force');
    return { ...base, peers: some, ...(free && { free }), conditions };
  } catch (error) {
    if (!hasCode(error, 'Invalid')) throw error;
    return { ...base, conditions: valid('False', 'Invalid', errorMessage(error)) };
  }
}
