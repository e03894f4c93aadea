import { withCondition, withoutCondition, type WantedCondition } from '../../api/conditions.ts';
import { MAX_CLUSTER_IDS } from '../../api/limits.ts';
import { POLICY_REASONS, POLICY_VALID } from '../../api/peer-selector.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { Condition, KubeObject, ResourceList } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Controller, type ControllerMetrics } from '../../kube/controller.ts';
import type { Cache } from '../../kube/cache.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Subscriptions } from '../../lib/listeners.ts';
import type { Logger } from '../../lib/log.ts';

/** What a policy does today. */
export interface PolicyEffect {
  /** ClusterIDs that it decides about. */
  peers: readonly string[];
  free?: ResourceList;
}

/** By type; undefined: it is not to be there. */
export type PolicyConditions = Readonly<Record<string, WantedCondition | undefined>>;

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
  /** Throws Invalid for what is written there and makes no sense: this alone judges whether a policy is valid. */
  effect: (policy: P) => PolicyEffect;
  /** What else is to be said of a policy, valid or not. */
  conditions?: (policy: P) => PolicyConditions;
  /**
   * Calls back when a policy is to be looked at again: at once where it is named, after a while where it may be any of
   * them. The returned function ends that.
   */
  onChange: (listener: (policy?: string) => void) => () => void;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
}

/** Peers and free amounts move with every pod; people read them now and then. */
const CALM_MS = 5_000;

/** Keeps the status of all policies of one kind. Nobody else writes it: two would fight by its version. */
export class PolicyStatusKeeper<P extends Policy> implements Component {
  readonly name: string;
  readonly #options: PolicyStatusOptions<P>;
  readonly #controller: Controller;
  readonly #subscriptions = new Subscriptions();

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

  start(signal: AbortSignal): void {
    const { policies, onChange } = this.#options;
    this.#subscriptions.add(
      policies.onChange((name) => this.#controller.add(name)),
      onChange((policy) => {
        if (policy !== undefined) this.#controller.add(policy);
        else for (const { metadata } of policies.list()) this.#controller.addAfter(metadata.name, CALM_MS);
      }),
    );
    for (const { metadata } of policies.list()) this.#controller.add(metadata.name);
    this.#controller.start(signal);
  }

  async stop(): Promise<void> {
    this.#subscriptions.end();
    await this.#controller.stop();
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<void> {
    const { client, type, policies } = this.#options;
    const policy = policies.get(name);
    if (policy === undefined || policy.metadata.deletionTimestamp !== undefined) return;
    await replaceStatusIfDiffers<P>(client, type, policy, { status: this.#statusOf(policy), signal });
  }

  #statusOf(policy: P): PolicyStatus {
    const { effect, conditions: further, clock } = this.#options;
    const { generation } = policy.metadata;
    const base = { ...(generation !== undefined && { observedGeneration: generation }) };
    const conditions = (valid: Pick<WantedCondition, 'status' | 'reason' | 'message'>): Condition[] => {
      const wanted: PolicyConditions = {
        [POLICY_VALID]: { type: POLICY_VALID, ...valid, ...base },
        ...further?.(policy),
      };
      return conditionsWith(policy.status?.conditions ?? [], wanted, clock.now());
    };
    try {
      const { peers, free } = effect(policy);
      const some = peers.toSorted().slice(0, MAX_CLUSTER_IDS);
      const valid = { status: 'True', reason: POLICY_REASONS.ok, message: 'in force' } as const;
      return { ...base, peers: some, ...(free && { free }), conditions: conditions(valid) };
    } catch (error) {
      if (!hasCode(error, 'Invalid')) throw error;
      const invalid = {
        status: 'False',
        reason: POLICY_REASONS.invalid,
        message: errorMessage(error),
      } as const;
      return { ...base, conditions: conditions(invalid) };
    }
  }
}

const conditionsWith = (
  before: readonly Condition[],
  wanted: PolicyConditions,
  nowMs: number,
): Condition[] => [
  ...Object.entries(wanted).reduce(
    (conditions, [type, condition]) =>
      condition === undefined
        ? withoutCondition(conditions, type)
        : withCondition(conditions, condition, nowMs),
    before,
  ),
];
