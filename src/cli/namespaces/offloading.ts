/** What `offload` and `unoffload` share: the namespace that a person means, and its NamespaceOffloading. */
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { isConditionTrue } from '../../api/conditions.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  type NamespaceOffloading,
  namespaceOffloadings,
  OFFLOADING_NAME,
  type OffloadedCluster,
} from '../../api/namespace-offloading.ts';
import { checkedLabel, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { namespaces } from '../../api/resources.ts';
import { peerOf } from '../../api/tenant-labels.ts';
import type { Condition, Namespace } from '../../api/wire.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { ArgumentSpec } from '../command.ts';
import type { Session } from '../peering/environment.ts';

export const NAMESPACE: ArgumentSpec = {
  name: 'NAMESPACE',
  text: 'a namespace of this cluster',
  names: 'namespaces',
};

/** Throws Invalid where no cluster has a namespace of that name, or none that may leave it. */
export function checkedNamespace(name: string): string {
  checkedLabel('NAMESPACE', name);
  if (!isClusterNamespace(name, SYSTEM_NAMESPACE)) return name;
  throw new TributaryError(
    'Invalid',
    `namespace ${name} holds parts of the cluster itself (kube-*, tributary-*) and never leaves it`,
  );
}

/** Throws NotFound with this advice (and not the API server's words, which say the same), Invalid where a peer has brought it. */
export async function readNamespace(
  name: string,
  advice: string,
  { client, signal }: Session,
): Promise<Namespace> {
  const found = await client.get(namespaces, { name }, { signal }).catch((error: unknown) => {
    if (!hasCode(error, 'NotFound')) throw error;
    throw new TributaryError('NotFound', `there is no namespace "${name}"; ${advice}`);
  });
  if (peerOf(found) !== '') {
    throw new TributaryError(
      'Invalid',
      `namespace ${name} is of the peer ${peerOf(found)}: what a peer brings is not lent to a third cluster`,
    );
  }
  return found;
}

/** Undefined: the namespace is not offloaded. */
export async function readOffloading(
  namespace: string,
  { client, signal }: Pick<Session, 'client' | 'signal'>,
): Promise<NamespaceOffloading | undefined> {
  const ref = { namespace, name: OFFLOADING_NAME };
  return client.get(namespaceOffloadings, ref, { signal }).catch(ignoring('NotFound'));
}

export const readyOf = ({ status }: NamespaceOffloading): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === NAMESPACE_OFFLOADING_CONDITIONS.ready);

export const isReady = ({ status }: NamespaceOffloading): boolean =>
  isConditionTrue(status?.conditions, NAMESPACE_OFFLOADING_CONDITIONS.ready);

export const nameOf = ({ clusterName, cluster }: OffloadedCluster): string => clusterName ?? cluster;

/** What is waited for; the message names the clusters and their reasons. */
export function waitingLine(offloading: NamespaceOffloading | undefined): string {
  if (offloading === undefined) return 'NamespaceOffloading gone';
  const ready = readyOf(offloading);
  return ready === undefined
    ? 'waiting for the cluster role of Tributary'
    : `${ready.reason}: ${ready.message}`;
}
