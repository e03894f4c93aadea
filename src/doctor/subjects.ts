import { conditionOf } from '../api/conditions.ts';
import { type ForeignCluster, isPeer } from '../api/foreign-cluster.ts';
import { CLUSTER_NAME, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { isOneProcess } from '../api/one-process.ts';
import { TUNNEL_CONDITIONS, TUNNEL_REASONS } from '../api/tunnel.ts';
import type { Condition } from '../api/wire.ts';
import { type Deployment, type Facts, itemsOf } from './facts.ts';
import type { Cure, Findings, Said } from './finding.ts';

/** What a person calls it: the name that it gives itself and, where that differs, the one of its object. */
export function titleOf({ metadata, status }: ForeignCluster): string {
  return status?.clusterName === undefined || status.clusterName === '' ? metadata.name : status.clusterName;
}

export const idOf = ({ spec, status }: ForeignCluster): string | undefined =>
  spec?.clusterID ?? status?.clusterID;

/** The ForeignCluster of that ClusterID as a person calls it, else the ID itself. */
export function titleOfID({ lists }: Pick<Facts, 'lists'>, clusterID: string): string {
  const cluster = itemsOf(lists.foreignClusters).find((each) => idOf(each) === clusterID);
  return cluster === undefined ? clusterID : titleOf(cluster);
}

/** Says what is wrong with that cluster. One that is only seen is nobody's trouble yet. */
export function blame(findings: Findings, cluster: ForeignCluster, said: Said, cure: Cure): void {
  if (isPeer(cluster)) findings.problem(titleOf(cluster), said, cure);
  else findings.warn(titleOf(cluster), said, cure);
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
