import type { VirtualNode } from '../../api/virtual-node.ts';
import { deepEqual } from '../../lib/equality.ts';
import { claimNames } from '../forge/references.ts';
import type { Wired } from '../wired.ts';
import type { Tenant } from '../tenants.ts';
import { claimKey, claimKeyOf } from './claims.ts';

const mappingOf = (virtualNode: VirtualNode | undefined): unknown => [
  virtualNode?.spec.storageClasses,
  virtualNode?.spec.offeredStorageClasses,
  virtualNode?.spec.namespaces,
  // A claim is not looked at before its namespace is recorded.
  virtualNode?.status?.namespaces,
];

/** Which change of which cache concerns which claim. */
export function connectStorage(provider: Wired): void {
  const { storage, virtualNodes, homePods } = provider;
  storage.classes.onChange(() => lookAtClaims(provider));
  storage.volumes.onChange((_key, current, previous) => {
    for (const volume of [current, previous]) {
      const key = volume === undefined ? undefined : claimKeyOf(volume);
      if (key === undefined) continue;
      const tenant = provider.tenants.of(key.slice(0, key.indexOf('/')));
      if (tenant !== undefined) openClaims(provider, tenant);
      wake(provider, key);
    }
  });
  storage.onSynced(() => lookAtClaims(provider));
  virtualNodes.onChange((_key, current, previous) => {
    if (!deepEqual(mappingOf(current), mappingOf(previous))) lookAtClaims(provider);
  });
  homePods.onChange((_key, current) => {
    if (current === undefined || claimNames(current).length === 0) return;
    const tenant = provider.tenants.of(current.metadata.namespace ?? '');
    if (tenant !== undefined) openClaims(provider, tenant);
  });
}

/** Opens the caches that are needed now, and looks at all known claims. */
export function lookAtClaims(provider: Wired): void {
  for (const tenant of provider.tenants.all()) lookAtClaimsOf(provider, tenant);
}

export function lookAtClaimsOf(provider: Wired, tenant: Tenant): void {
  openClaims(provider, tenant);
  const { homeNamespace } = tenant.mapping;
  for (const name of knownClaims(provider, tenant)) wake(provider, claimKey(homeNamespace, name));
}

/** Also those of which only the volume is left. */
function knownClaims({ storage }: Wired, { claims, mapping }: Tenant): Set<string> {
  const names = claims.names();
  for (const { spec: { claimRef } = {} } of storage.volumes.list())
    if (claimRef?.namespace === mapping.homeNamespace && claimRef.name !== undefined)
      names.add(claimRef.name);
  return names;
}

/** Claims are watched where a class or a volume of ours exists, or a pod that mounts a claim. */
function openClaims(provider: Wired, tenant: Tenant): void {
  const { storage, controllers, homePods } = provider;
  const { homeNamespace } = tenant.mapping;
  const mounted = (): string[] =>
    [...homePods.valuesOf('claims')].filter((claim) => claim.startsWith(`${homeNamespace}/`));
  const isNeeded = (): boolean => storage.concerns(tenant) || mounted().length > 0;
  if (tenant.claims.isOpen || !isNeeded()) return;
  tenant.claims.open({
    claim: (namespace, name) => wake(provider, claimKey(namespace, name)),
    synced: (namespace) => {
      for (const name of knownClaims(provider, tenant)) wake(provider, claimKey(namespace, name));
      for (const claim of mounted())
        for (const key of homePods.keysByIndex('claims', claim)) controllers.pods.add(key);
    },
    event: (namespace, event, isNew) => {
      storage.heard(namespace, event, isNew);
      controllers.storage.add(claimKey(namespace, event.podName));
    },
  });
}

function wake({ controllers, homePods }: Wired, key: string): void {
  controllers.storage.add(key);
  for (const pod of homePods.keysByIndex('claims', key)) controllers.pods.add(pod);
}
