import { conditionOf } from '../api/conditions.ts';
import { type ForeignCluster, isPeer, peerIDOf } from '../api/foreign-cluster.ts';
import { CLUSTER_NAME, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { isOneProcess } from '../api/one-process.ts';
import { TUNNEL_CONDITIONS, TUNNEL_REASONS } from '../api/tunnel.ts';
import type { Condition } from '../api/wire.ts';
import { type Deployment, type Facts, itemsOf } from './facts.ts';
import type { Cure, Findings, Said } from './finding.ts';

/** The name that it gives itself; of one that has not said it, that of its object. */
export const calledBy = ({ metadata, status }: ForeignCluster): string =>
  status?.clusterName === undefined || status.clusterName === '' ? metadata.name : status.clusterName;

/** Other clusters that are called so: one that was installed anew has another ID. */
export const namesakesOf = (cluster: ForeignCluster, { lists }: Pick<Facts, 'lists'>): ForeignCluster[] =>
  itemsOf(lists.foreignClusters).filter(
    (other) => other.metadata.name !== cluster.metadata.name && calledBy(other) === calledBy(cluster),
  );

/** What a person calls it, with its ID where several are called so. */
export function titleOf(cluster: ForeignCluster, facts: Pick<Facts, 'lists'>): string {
  const name = calledBy(cluster);
  if (namesakesOf(cluster, facts).length === 0) return name;
  return `${name} (${peerIDOf(cluster) ?? cluster.metadata.name})`;
}

/** The ForeignCluster of that ClusterID as a person calls it, else the ID itself. */
export function titleOfID(facts: Pick<Facts, 'lists'>, clusterID: string): string {
  const cluster = itemsOf(facts.lists.foreignClusters).find((each) => peerIDOf(each) === clusterID);
  return cluster === undefined ? clusterID : titleOf(cluster, facts);
}

/** What is left here of a cluster that is gone. One with which something is shared is parted from first. */
export function forgetting(cluster: ForeignCluster): string {
  const { name } = cluster.metadata;
  const forget = `kubectl delete foreigncluster ${name}`;
  return isPeer(cluster) ? `tributary unpeer ${name} --force && ${forget}` : forget;
}

/** Says what is wrong with that cluster. One that is only seen is nobody's trouble yet. */
export function blame(
  findings: Findings,
  { cluster, subject }: { cluster: ForeignCluster; subject: string },
  said: Said,
  cure: Cure,
): void {
  if (isPeer(cluster)) findings.problem(subject, said, cure);
  else findings.warn(subject, said, cure);
}

/** The Deployment of all roles, where they are one process. */
export const oneProcess = ({ lists }: Facts): Deployment | undefined =>
  itemsOf(lists.deployments).find(
    (one) =>
      one.metadata.namespace === SYSTEM_NAMESPACE && one.metadata.name === CLUSTER_NAME && isOneProcess(one),
  );

/** The Deployment whose program ends the tunnels. */
export const gatewayDeployment = (facts: Facts): Deployment | undefined =>
  oneProcess(facts) ??
  itemsOf(facts.lists.deployments).find(
    ({ metadata }) => metadata.namespace === NETWORK_NAMESPACE && metadata.name === GATEWAY_NAME,
  );

const NETWORK_NAMESPACE = 'tributary-network';
/** The Deployment of role `gateway`. */
export const GATEWAY_NAME = 'tributary-gateway';

/** The condition of a tunnel that says that the gateway has no WireGuard. It concerns all tunnels. */
export function withoutWireGuard({ lists }: Pick<Facts, 'lists'>): Condition | undefined {
  const conditions = itemsOf(lists.tunnels).map((one) => conditionOf(one, TUNNEL_CONDITIONS.configured));
  return conditions.find((one) => one?.status === 'False' && one.reason === TUNNEL_REASONS.noWireGuard);
}

/** The command that shows what the part with the tunnels has said. */
export function gatewayLogs(facts: Facts): string {
  const place =
    oneProcess(facts) === undefined
      ? '-n tributary-network logs deployment/tributary-gateway'
      : `-n ${SYSTEM_NAMESPACE} logs deployment/${CLUSTER_NAME}`;
  return `kubectl ${place} --all-containers --tail=50`;
}
