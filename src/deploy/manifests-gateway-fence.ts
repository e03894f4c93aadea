/**
 * What RBAC cannot say: a right to create cannot be narrowed to a name. Without bounds, who has taken over a gateway could
 * make the Secret of preshared keys, which it may read, a token of another account (type
 * kubernetes.io/service-account-token), or hold the Lease of another role. A ValidatingAdmissionPolicy (KEP-3488).
 */
import { forgeFence, isAccount, writes } from '../api/fence.ts';
import type { Manifest } from '../api/manifest.ts';
import { GATEWAY_CONFIG_MAP, GATEWAY_LEASE, WIREGUARD_SECRET } from '../api/own-network.ts';
import type { AccountRef } from '../api/rbac.ts';

const ITS_OWN = { secrets: WIREGUARD_SECRET, configmaps: GATEWAY_CONFIG_MAP, leases: GATEWAY_LEASE };

export function forgeGatewayFence(
  name: string,
  account: AccountRef,
  labels: Record<string, string>,
): Manifest[] {
  const isOwn = Object.entries(ITS_OWN).map(
    ([resource, own]) => `(request.resource.resource == '${resource}' && object.metadata.name == '${own}')`,
  );
  return forgeFence({
    name,
    labels,
    user: isAccount(account),
    rules: [
      writes('', ['secrets', 'configmaps'], 'CREATE'),
      writes('coordination.k8s.io', ['leases'], 'CREATE'),
    ],
    validations: [
      [isOwn.join(' || '), `the gateway may make ${[...new Set(Object.values(ITS_OWN))].join(' and ')} only`],
      [
        "request.resource.resource != 'secrets' || object.type == 'Opaque'",
        'the gateway may make no Secret that others fill',
      ],
    ],
  });
}
