/** What stands beside the roles of an installation: priorities, budgets, and who may connect. */
import { AGENTS_NAMESPACE, APP_NAME, LABEL_APP_NAME, type Manifest } from '../../api/manifest.ts';
import { labelsOf, NETWORK_NAMESPACE } from '../program.ts';
import { GATEWAY_NAME } from '../rights/cluster.ts';

const labels = { [LABEL_APP_NAME]: APP_NAME };

/** Of all our pods. */
export const PRIORITY_CLASS = 'tributary';

/** Where pods of users are evicted for want of room, ours stay: a virtual node without its agent loses all its pods. */
export const forgePriorityClass = (): Manifest & object =>
  ({
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: PRIORITY_CLASS, labels },
    // The highest that Kubernetes leaves to users is 1000000000.
    value: 900_000_000,
    globalDefault: false,
    description: 'For the pods of Tributary: above those of users, below those of the system.',
  }) as Manifest;

/** With one gateway it keeps nobody from draining its node; with several, they go one after the other. */
export const forgeGatewayBudget = (): Manifest & object =>
  ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { namespace: NETWORK_NAMESPACE, name: GATEWAY_NAME, labels: labelsOf(GATEWAY_NAME) },
    spec: { maxUnavailable: 1, selector: { matchLabels: labelsOf(GATEWAY_NAME) } },
  }) as Manifest;

/**
 * Agents are asked on ports of Services, too (node ports of a virtual node), so no port of theirs can be closed. What is no agent
 * has no business there, and reaches nobody.
 */
export const forgeAgentsPolicy = (): Manifest & object =>
  ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { namespace: AGENTS_NAMESPACE, name: 'tributary-strangers', labels },
    spec: {
      podSelector: { matchExpressions: [{ key: LABEL_APP_NAME, operator: 'NotIn', values: [APP_NAME] }] },
      policyTypes: ['Ingress', 'Egress'],
    },
  }) as Manifest;
