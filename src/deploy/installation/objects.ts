/** An installation as a whole: from a few values to all objects, in the order in which they must be applied. */
import { customResourceDefinitions } from '../../api/crd/index.ts';
import type { Manifest } from '../../api/manifest.ts';
import { LABEL_INSTALLATION } from '../../api/names.ts';
import { TributaryError } from '../../lib/errors.ts';
import { forgeCluster } from '../cluster.ts';
import { forgeGateway } from '../gateway.ts';
import { forgeNode } from '../node.ts';
import { forgeGrafanaDashboards, forgePodMonitor, forgePrometheusRule } from '../monitoring/monitoring.ts';
import { forgeAgentsPolicy, forgeGatewayBudget, forgePriorityClass, PRIORITY_CLASS } from './extras.ts';
import { forgeUninstallFence } from './uninstall-fence.ts';
import { argumentsFor, type InstallValues } from './values.ts';

/** CRDs, namespaces, then the roles: `cluster`, `gateway`, `node`. Throws Invalid where values contradict each other. */
export function forgeInstallation(values: InstallValues): Manifest[] {
  const roles = [...forgeClusterOf(values), ...forgeGatewayOf(values), ...forgeNodeOf(values)];
  const isNamespace = ({ kind }: Manifest): boolean => kind === 'Namespace';
  const objects = [
    ...customResourceDefinitions(),
    ...roles.filter(isNamespace),
    ...when(values.priorityClasses, forgePriorityClass),
    ...forgeUninstallFence(),
    ...roles.filter((object) => !isNamespace(object)),
    ...when(values.podDisruptionBudgets, forgeGatewayBudget),
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

function forgeClusterOf(values: InstallValues): Manifest[] {
  const {
    image,
    peeringService: type,
    peeringNodePort: nodePort,
    peeringTrafficPolicy: trafficPolicy,
  } = values;
  return forgeCluster({
    image,
    ...priorityOf(values),
    service: { type, trafficPolicy, ...(nodePort !== 0 && { nodePort }) },
    args: [...argumentsFor('cluster', values), ...values.clusterArgs],
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
