import { isRefusedForGood } from '../../api/sent-abroad.ts';
import type { Ingress, Pod } from '../../api/wire.ts';
import { referenceKey, tokenKeyOf } from '../home-pods.ts';
import { refOf } from '../../kube/store.ts';
import type { Wired } from '../wired.ts';
import { endpointSliceKind } from './endpoint-slices.ts';
import { ingressKind, ingressReferences } from './ingresses.ts';
import type { OpenKind } from './mirror-sides.ts';
import { networkPolicyKind } from './network-policies.ts';
import { mirrorKey } from './mirror.ts';
import { serviceKind } from './services.ts';
import type { Tenant, TenantListener } from '../tenants.ts';

/** As far as the pod goes: it needs nothing over there, and has nothing. */
const isNothingThere = (pod: Pod | undefined): boolean => pod === undefined || isRefusedForGood(pod);

/** When the network changes, so do addresses and readiness: of pods, of the Node, and of what is mirrored. */
export function connectMirror(provider: Wired): void {
  const { network, controllers, homePods, tenants, nodeName } = provider;
  homePods.onChange((key, current, previous) => {
    if (isNothingThere(current) && !isNothingThere(previous)) wakeDraining(provider, key);
  });
  network.onChange(() => {
    controllers.node.add(nodeName);
    enqueuePodsAndTokens(provider);
    for (const tenant of tenants.all()) openMirror(provider, tenant);
  });
}

/** Pods may have waited to know whether they need a token for the home API server. */
export function enqueuePodsAndTokens(provider: Wired): void {
  const { controllers } = provider;
  void provider.homePods.eachIndexedInTurns('uid', (uid, key) => {
    controllers.pods.add(key);
    controllers.tokens.add(tokenKeyOf(refOf(key).namespace ?? '', uid));
  });
}

/** All pods of one namespace, at low priority. */
export function enqueuePods({ homePods, controllers }: Wired, homeNamespace: string): void {
  void homePods.eachKeyInTurns((key) => {
    if (key.startsWith(`${homeNamespace}/`)) controllers.pods.addSlow(key);
  });
}

/** In a namespace that is being taken out, copies stay until its last pod has gone. */
export function wakeDraining(provider: Wired, podKeyAtHome: string): void {
  const [homeNamespace = ''] = podKeyAtHome.split('/');
  if (provider.namespaces.isAsked(homeNamespace)) return;
  // Where others keep the copies, its last pod was the last thing that kept it.
  provider.controllers.node.add(provider.nodeName);
  const tenant = provider.tenants.of(homeNamespace);
  if (tenant !== undefined) enqueueMirrored(provider, tenant);
}

export const mirrorListener = (provider: Wired): Pick<TenantListener, 'opened' | 'ruled' | 'mirror'> => ({
  opened: (tenant) => openMirror(provider, tenant),
  ruled: (tenant) => openMirror(provider, tenant),
  mirror: (tenant) => {
    const { homeNamespace } = tenant.mapping;
    return {
      changed: (side, name, objectName, states) => {
        const open = tenant.mirror.of(name);
        if (open === undefined) return;
        if (side === 'remote') settle(provider, tenant);
        const homeName = side === 'home' ? objectName : open.ruled.kind.homeName(objectName);
        if (homeName === undefined) return;
        provider.controllers.mirror.add(mirrorKey(name, homeNamespace, homeName));
        if (name === serviceKind.kind) {
          enqueueSlices(provider, tenant, homeName);
          if (side === 'home') provider.nodePorts.look();
        }
        if (name === ingressKind.kind) enqueueSecrets(provider, tenant, states);
        if (name === networkPolicyKind.kind) lookAtPolicies(provider, homeNamespace);
      },
      synced: (name) => {
        settle(provider, tenant);
        for (const open of tenant.mirror.open()) {
          const { kind } = open.ruled;
          if (kind.kind === name || kind.follows === name) enqueueKind(provider, tenant, open);
        }
        if (name === ingressKind.kind) enqueueAllSecrets(provider, tenant);
        if (name === networkPolicyKind.kind) lookAtPolicies(provider, homeNamespace);
      },
      contact: (name) => {
        provider.troubles.look(tenant, name);
        if (name === networkPolicyKind.kind) lookAtPolicies(provider, homeNamespace);
        settle(provider, tenant);
      },
      absent: () => settle(provider, tenant),
    };
  },
});

/** Opens the kinds that the rules and the network ask for now, and looks at everything that they may concern. */
export function openMirror(provider: Wired, tenant: Tenant): void {
  const hasNetwork = provider.network.state.kind !== 'Off';
  tenant.mirror.set({ rules: tenant.mapping.reflection, hasNetwork });
  provider.troubles.lookAtRules(tenant);
  enqueueMirrored(provider, tenant);
  enqueueAllSecrets(provider, tenant);
}

/** After the last copy has gone that kept a kind open, or a namespace that is being taken out, the Node is looked at. */
function settle(provider: Wired, { mirror, mapping }: Tenant): void {
  const isLast = !provider.namespaces.isAsked(mapping.homeNamespace) && !mirror.holdsCopies();
  if (mirror.settle() || isLast) provider.controllers.node.add(provider.nodeName);
}

/** Pods wait for policies, and obey those that are there; the VirtualNode says which ones are stricter. */
function lookAtPolicies(provider: Wired, homeNamespace: string): void {
  provider.controllers.node.add(provider.nodeName);
  if (provider.tenants.of(homeNamespace)?.isFilling === false) enqueuePods(provider, homeNamespace);
}

/** Pods or namespaces of home have changed, which policies select. */
export function enqueuePolicies(provider: Wired): void {
  for (const tenant of provider.tenants.all()) {
    const open = tenant.mirror.of(networkPolicyKind.kind);
    if (open !== undefined) enqueueKind(provider, tenant, open);
  }
}

/** EndpointSlices come and go with their Service, and Ingresses report whether their Services are there. */
function enqueueSlices({ controllers }: Wired, { mirror, mapping }: Tenant, service: string): void {
  for (const { metadata } of mirror.slicesOf(service)) {
    controllers.mirror.add(mirrorKey(endpointSliceKind.kind, mapping.homeNamespace, metadata.name));
  }
  for (const { metadata } of mirror.ingressesTo(service)) {
    controllers.mirror.add(mirrorKey(ingressKind.kind, mapping.homeNamespace, metadata.name));
  }
}

/** Certificates travel with the Ingresses that name them. */
function enqueueSecrets({ controllers }: Wired, { mapping }: Tenant, ingresses: readonly Ingress[]): void {
  for (const { kind, name } of ingresses.flatMap(ingressReferences)) {
    controllers.reflect.add(referenceKey(kind, mapping.homeNamespace, name));
  }
}

function enqueueAllSecrets(provider: Wired, tenant: Tenant): void {
  const ingresses = tenant.mirror.of(ingressKind.kind)?.home.list() ?? [];
  enqueueSecrets(provider, tenant, [...ingresses]);
}

/** Everything mirrored of one namespace: Services first, since EndpointSlices follow them. */
export function enqueueMirrored(provider: Wired, tenant: Tenant): void {
  for (const open of tenant.mirror.open()) enqueueKind(provider, tenant, open);
}

function enqueueKind(
  { controllers }: Wired,
  { mapping }: Tenant,
  { ruled, home, remote, awaited }: OpenKind,
): void {
  const { kind } = ruled;
  const names = new Set<string | undefined>();
  for (const { metadata } of home.list()) names.add(metadata.name);
  for (const { metadata } of remote.list()) names.add(kind.homeName(metadata.name));
  // Of one that was asked for while contact was lost, and is gone from home, nobody else knows.
  for (const name of awaited) names.add(kind.homeName(name));
  for (const name of names) {
    if (name !== undefined) controllers.mirror.add(mirrorKey(kind.kind, mapping.homeNamespace, name));
  }
}
