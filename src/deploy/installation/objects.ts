/** An installation as a whole: from a few values to all objects, in the order in which they must be applied. */
import { customResourceDefinitions } from '../../api/crd/index.ts';
import type { Manifest } from '../../api/manifest.ts';
import { LABEL_INSTALLATION } from '../../api/names.ts';
import { TributaryError } from '../../lib/errors.ts';
import { type ClusterOptions, forgeCluster } from '../cluster.ts';
import { forgeGateway } from '../gateway.ts';
import { forgeNode } from '../node.ts';
import { forgeOneProcess } from '../one-process.ts';
import { forgeGrafanaDashboards, forgePodMonitor, forgePrometheusRule } from '../monitoring/monitoring.ts';
import { forgeAgentsPolicy, forgeGatewayBudget, forgePriorityClass, PRIORITY_CLASS } from './extras.ts';
import { forgeUninstallFence } from './uninstall-fence.ts';
import { argumentsFor, INSTALLED_ROLES, type InstallValues } from './values.ts';

/** CRDs, namespaces, then the roles: `cluster`, `gateway`, `node`, or all in one process. Throws Invalid where values contradict each other. */
export function forgeInstallation(values: InstallValues): Manifest[] {
  const { oneProcess } = values;
  const roles = oneProcess
    ? forgeOneOf(values)
    : [...forgeClusterOf(values), ...forgeGatewayOf(values), ...forgeNodeOf(values)];
  const isNamespace = ({ kind }: Manifest): boolean => kind === 'Namespace';
  const objects = [
    ...customResourceDefinitions(),
    ...roles.filter(isNamespace),
    ...when(values.priorityClasses, forgePriorityClass),
    ...forgeUninstallFence(),
    ...roles.filter((object) => !isNamespace(object)),
    ...when(values.podDisruptionBudgets && !oneProcess, forgeGatewayBudget),
    ...when(values.networkPolicies, forgeAgentsPolicy),
    ...forgeMonitoringOf(values),
  ];
  const wanted = values.networkPolicies ? objects : objects.filter(({ kind }) => kind !== 'NetworkPolicy');
  return withoutDoubles(wanted).map(marked);
}

const when = (isWanted: boolean, forge: () => Manifest): Manifest[] => (isWanted ? [forge()] : []);

const forgeMonitoringOf = (values: InstallValues): Manifest[] => [
  ...when(values.serviceMonitor, () => forgePodMonitor(values.monitoringRelease)),
  ...when(values.prometheusRule, () => forgePrometheusRule(values.monitoringRelease)),
  ...(values.grafanaDashboards ? forgeGrafanaDashboards() : []),
];

const priorityOf = ({ priorityClasses }: InstallValues): { priorityClassName?: string } =>
  priorityClasses ? { priorityClassName: PRIORITY_CLASS } : {};

function serviceOf(values: InstallValues): NonNullable<ClusterOptions['service']> {
  const { peeringService: type, peeringNodePort: nodePort, peeringTrafficPolicy: trafficPolicy } = values;
  return { type, trafficPolicy, ...(nodePort !== 0 && { nodePort }) };
}

const forgeClusterOf = (values: InstallValues): Manifest[] =>
  forgeCluster({
    image: values.image,
    ...priorityOf(values),
    service: serviceOf(values),
    args: [...argumentsFor('cluster', values), ...values.clusterArgs],
  });

function forgeOneOf(values: InstallValues): Manifest[] {
  const { image, network, wireguard, wireguardPort, clusterArgs, gatewayArgs, nodeArgs } = values;
  return forgeOneProcess({
    image,
    ...priorityOf(values),
    service: serviceOf(values),
    network,
    wireguard,
    wireguardPort,
    args: [...argumentsFor(INSTALLED_ROLES, values), ...clusterArgs, ...gatewayArgs, ...nodeArgs],
  });
}

function forgeGatewayOf(values: InstallValues): Manifest[] {
  const { image, network, gatewayReplicas: replicas, wireguard, wireguardPort } = values;
  return forgeGateway({
    image,
    ...priorityOf(values),
    network,
    replicas,
    wireguard,
    wireguardPort,
    args: [...argumentsFor('gateway', values), ...values.gatewayArgs],
  });
}

function forgeNodeOf(values: InstallValues): Manifest[] {
  if (!values.network) return [];
  const args = [...argumentsFor('node', values), ...values.nodeArgs];
  return forgeNode({ image: values.image, ...priorityOf(values), args });
}

/** What names an object in a cluster. */
export const keyOf = ({ apiVersion, kind, metadata }: Manifest): string =>
  `${apiVersion} ${kind} ${metadata.namespace ?? ''}/${metadata.name ?? ''}`;

/** The namespace of the network is that of two roles. */
function withoutDoubles(objects: readonly Manifest[]): Manifest[] {
  const found = new Map<string, Manifest>();
  for (const object of objects) {
    const key = keyOf(object);
    const known = found.get(key);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(object)) {
      throw new TributaryError('Invalid', `two different objects are ${key}`);
    }
    found.set(key, known ?? object);
  }
  return [...found.values()];
}

/** By this label a later version finds what it no longer has, and `tributary uninstall` what is to go. */
export const INSTALLATION_LABELS: Readonly<Record<string, string>> = { [LABEL_INSTALLATION]: 'tributary' };

const marked = <T extends Manifest>(object: T): T => ({
  ...object,
  metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...INSTALLATION_LABELS } },
});
