import { acceptancePolicies, type AcceptancePolicy } from '../api/acceptance-policy.ts';
import { sharingPolicies, type SharingPolicy } from '../api/sharing-policy.ts';
import type { Cache } from '../kube/cache.ts';
import type { ClusterBasics } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import { together } from '../lib/listeners.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Borrowing } from '../peering/borrowing/borrowing.ts';
import type { Clusters } from '../peering/clusters/clusters.ts';
import type { Lending } from '../peering/lending/lending.ts';
import type { StockWatcher } from '../peering/offer/stock-watcher.ts';
import { PolicyStatusKeeper } from '../peering/policy/policy-status.ts';

interface PolicyStatusParts extends ClusterBasics {
  metrics: ControllerMetrics;
  sharing: Cache<SharingPolicy>;
  acceptance: Cache<AcceptancePolicy>;
  lending: Lending;
  borrowing: Borrowing;
  clusters: Clusters;
  stock: StockWatcher;
}

/**
 * Writes into the status of each policy what it does today. Lending knows it for SharingPolicies, borrowing for
 * AcceptancePolicies.
 */
export function policyStatus(parts: PolicyStatusParts): Component[] {
  const { client, clock, log, metrics, sharing, acceptance, lending, borrowing, clusters, stock } = parts;
  const common = { client, clock, log, metrics };
  return [
    new PolicyStatusKeeper<SharingPolicy>({
      ...common,
      type: sharingPolicies,
      policies: sharing,
      effect: (policy) => {
        clusters.checkNetworkKey(policy);
        return lending.effectOf(policy);
      },
      conditions: (policy) => lending.conditionsOf(policy),
      onChange: (listener) =>
        together(
          lending.onPolicy(listener),
          // What is promised to one peer is not free for others.
          lending.onChange(() => listener()),
          stock.onChange(() => listener()),
          clusters.onNetworkKeys(() => listener()),
        ),
    }),
    new PolicyStatusKeeper<AcceptancePolicy>({
      ...common,
      type: acceptancePolicies,
      policies: acceptance,
      effect: (policy) => {
        clusters.checkNetworkKey(policy);
        return borrowing.effectOf(policy);
      },
      onChange: (listener) =>
        together(
          borrowing.onChange(() => listener()),
          clusters.onNetworkKeys(() => listener()),
        ),
    }),
  ];
}
