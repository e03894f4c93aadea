/**
 * What people apply for the `cluster` role: its Deployment, account and rights, the Services of the peering endpoint and of
 * the admission webhook, and what lending and agents stand on.
 */
import type * as models from '@kubernetes/client-node';

import {
  GUESTS_CONFIGURATION,
  WEBHOOK_CONFIGURATION,
  WEBHOOK_PORT,
  WEBHOOK_SERVICE,
} from '../api/admission.ts';
import { customResourceDefinitions } from '../api/crd/index.ts';
import { forgeTetherGuards } from '../peering/mode/guards.ts';
import { forgeFence, isAccount, writes } from '../api/fence.ts';
import {
  AGENTS_NAMESPACE,
  CLUSTER_NAME,
  type Manifest,
  type ManifestOf,
  SYSTEM_NAMESPACE,
} from '../api/manifest.ts';
import { LABEL_NAMESPACE_NAME } from '../api/names.ts';
import {
  type AccountRef,
  CLUSTER_ACCOUNT,
  forgeGrant,
  groupAndResource,
  RBAC_VERSION,
  rulesOf,
} from '../api/rbac.ts';
import { SETTING_LOG_LEVEL, SETTINGS_CONFIG_MAP } from '../api/settings.ts';
import type { Stored } from '../api/wire.ts';
import { forgeHostingBase } from '../hosting/base-objects.ts';
import { forgeGuardianFence } from '../hosting/fences.ts';
import { TributaryError } from '../lib/errors.ts';
import { LOG_LEVELS } from '../lib/log.ts';
import { forgeAwayFence } from '../offloading/away/fence.ts';
import { forgeReleaseFence } from '../offloading/release/fence.ts';
import { forgeShortFormFence } from '../offloading/short-form-fence.ts';
import { forgeEndWarning } from '../peering/policy/end-warning.ts';
import { REACH_PORTS } from '../peering/reach/ports.ts';
import { forgeServicesFence, IS_OFFERED_SLICE } from '../peering/services/fence.ts';
import { forgeAgentStatics, forgeLaunchFence, forgeNodeFence, IS_LAUNCHING } from './agents.ts';
import {
  checkedImage,
  forgeDeployment,
  forgeNamespace,
  forgeNetworkNamespace,
  labelsOf,
  OPS_PORT,
  type Program,
} from './program.ts';
import { CLUSTER_RIGHTS, type PlaceRights, rightsAt } from './rights/cluster.ts';

const PEERING_PORT = 7443;
const PEERING_SERVICE = 'tributary-peering';
/** Of people: how role `cluster`, and the agents that it starts, get out to other clusters. */
const PROXY_SECRET = 'tributary-proxy';

export type ServiceType = 'ClusterIP' | 'NodePort' | 'LoadBalancer';
/** Whether the peering endpoint sees who comes (Local), or every node answers for it (Cluster); Auto: by the type. */
export type TrafficPolicy = 'Auto' | 'Local' | 'Cluster';

export interface ClusterOptions {
  /** Of this role, and of the agents that it starts. */
  image: string;
  priorityClassName?: string;
  /** How peers come to the peering endpoint; default ClusterIP: not from outside. */
  service?: { type: ServiceType; nodePort?: number; trafficPolicy?: TrafficPolicy };
  /** Further arguments of `tributary run cluster`. */
  args?: readonly string[];
}

/** All objects of the `cluster` role, its namespaces included, in the order in which they must be applied. */
export function forgeCluster(options: ClusterOptions): Manifest[] {
  const program = clusterProgram(options, { opsPort: OPS_PORT, webhookPort: WEBHOOK_PORT });
  const { args = [] } = options;
  return [
    // None of our own pods there needs more than `restricted`.
    ...forgeClusterBase(options, { level: 'restricted', rights: CLUSTER_RIGHTS }),
    forgeDeployment({
      ...program,
      args: ['run', 'cluster', ...agentArgs(program.image, options.priorityClassName), ...args],
    }),
  ];
}

/** All but its Deployment. `level`: the Pod Security level of its namespace. */
export function forgeClusterBase(
  { service = { type: 'ClusterIP' } }: Pick<ClusterOptions, 'service'>,
  { level, rights }: { level: 'privileged' | 'restricted'; rights: readonly PlaceRights[] },
): Manifest[] {
  const labels = labelsOf(CLUSTER_NAME);
  const account = CLUSTER_ACCOUNT;
  return [
    forgeNamespace(SYSTEM_NAMESPACE, level),
    // Of two roles: whoever deletes what one of them needs must not take it from the other one.
    forgeNetworkNamespace(),
    ...forgeHostingBase(account, `(${IS_LAUNCHING} || ${IS_OFFERED_SLICE})`),
    ...forgeServicesFence(account),
    ...forgeAgentStatics(),
    ...forgeLaunchFence(account),
    ...forgeNodeFence(account),
    ...forgeReleaseFence(account),
    ...forgeAwayFence(account),
    ...forgeShortFormFence(account),
    ...forgeEndWarning(),
    ...forgeTetherGuards(),
    ...forgeGuardianFence(account),
    ...forgeKindsFence(account, CLUSTER_RIGHTS),
    forgeSettings(labels),
    forgeViewRole(labels),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account, labels } },
    ...forgePlaceGrants({ name: CLUSTER_NAME, labels, account }, rights),
    forgePeeringService(labels, service),
    ...forgeWebhook(labels),
    forgeNetworkPolicy(labels),
  ];
}

/** The process that peers and API servers come to; its arguments are the caller's. */
export function clusterProgram(
  { image, priorityClassName }: ClusterOptions,
  { opsPort, webhookPort }: { opsPort: number; webhookPort: number },
): Omit<Program, 'args'> {
  return {
    image: checkedImage(image),
    ...(priorityClassName !== undefined && { priorityClassName }),
    account: CLUSTER_ACCOUNT,
    labels: labelsOf(CLUSTER_NAME),
    // By a Secret and not by arguments, since the URL may hold a password. Most clusters have none.
    env: ['HTTPS_PROXY', 'NO_PROXY'].map((name) => ({
      name,
      valueFrom: { secretKeyRef: { name: PROXY_SECRET, key: name, optional: true } },
    })),
    ports: { ops: opsPort, peering: PEERING_PORT, webhook: webhookPort },
    memoryLimit: '512Mi',
  };
}

/** Whoever may view what is in a cluster (the ClusterRole `view`, and so `edit` and `admin`) sees our kinds, too: no secret is in them. */
const forgeViewRole = (labels: Record<string, string>): ManifestOf<Stored<models.V1ClusterRole>> => ({
  apiVersion: RBAC_VERSION,
  kind: 'ClusterRole',
  metadata: {
    name: 'tributary-view',
    labels: { ...labels, 'rbac.authorization.k8s.io/aggregate-to-view': 'true' },
  },
  rules: rulesOf(
    customResourceDefinitions().map(({ metadata }) => ({
      resource: metadata.name ?? '',
      verbs: ['get', 'list', 'watch'],
      why: 'people who may view the rest see it, too',
    })),
  ),
});

/** Empty, so that what people put into it stays when this is applied again. */
const forgeSettings = (labels: Record<string, string>): Manifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    namespace: SYSTEM_NAMESPACE,
    name: SETTINGS_CONFIG_MAP,
    labels,
    annotations: {
      'kubernetes.io/description': `Read by all parts of Tributary at once. data.${SETTING_LOG_LEVEL}: ${LOG_LEVELS.join(', ')}.`,
    },
  },
});

/** The agents that it starts get the same image and priority. */
const agentArgs = (image: string, priorityClassName: string | undefined): string[] => [
  '--agent-image',
  image,
  ...(priorityClassName === undefined ? [] : ['--agent-priority-class', priorityClassName]),
];

/** One Role and one binding for each place. */
export function forgePlaceGrants(
  grant: { name: string; labels: Record<string, string>; account: AccountRef },
  places: readonly PlaceRights[],
): Manifest[] {
  const namespaces = [...new Set(places.map(({ namespace }) => namespace))];
  return namespaces.flatMap((namespace) =>
    forgeGrant({
      ...grant,
      ...(namespace !== undefined && { namespace }),
      rules: rulesOf(rightsAt(places, namespace)),
    }),
  );
}

function forgePeeringService(
  labels: Record<string, string>,
  { type, nodePort, trafficPolicy = 'Auto' }: NonNullable<ClusterOptions['service']>,
): ManifestOf<Stored<models.V1Service>> {
  if (nodePort !== undefined && (type === 'ClusterIP' || !(nodePort > 0 && nodePort < 65_536))) {
    throw new TributaryError('Invalid', `a Service of type ${type} has no node port ${nodePort}`);
  }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: SYSTEM_NAMESPACE, name: PEERING_SERVICE, labels },
    spec: {
      type,
      // The API server refuses it where nobody comes from outside.
      ...(type !== 'ClusterIP' && { externalTrafficPolicy: trafficPolicyOf(type, trafficPolicy) }),
      selector: labels,
      ports: [
        {
          name: 'peering',
          port: PEERING_PORT,
          targetPort: 'peering',
          protocol: 'TCP',
          ...(nodePort !== undefined && { nodePort }),
        },
      ],
    },
  };
}

/**
 * A load balancer asks the nodes which of them has the pod, so it loses nothing by Local. At a node port the other nodes would
 * not answer any more, and peers dial the nodes that they were told of, wherever the pod is today.
 */
function trafficPolicyOf(type: ServiceType, chosen: TrafficPolicy): TrafficPolicy {
  if (chosen !== 'Auto') return chosen;
  return type === 'LoadBalancer' ? 'Local' : 'Cluster';
}

/**
 * Where API servers find the webhook, and which pods they ask about: none, until the program has namespaces to name. It is
 * here so that it is deleted with the rest.
 */
function forgeWebhook(labels: Record<string, string>): (Manifest & { spec?: object; webhooks?: object[] })[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: SYSTEM_NAMESPACE, name: WEBHOOK_SERVICE, labels },
      spec: {
        type: 'ClusterIP',
        selector: labels,
        ports: [{ name: 'webhook', port: 443, targetPort: 'webhook', protocol: 'TCP' }],
      },
    },
    ...[
      { kind: 'MutatingWebhookConfiguration', name: WEBHOOK_CONFIGURATION },
      { kind: 'MutatingWebhookConfiguration', name: GUESTS_CONFIGURATION },
      { kind: 'ValidatingWebhookConfiguration', name: GUESTS_CONFIGURATION },
    ].map(({ kind, name }) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind,
      metadata: { name, labels },
    })),
  ];
}

/** Only agents may connect to the listeners that lead to API servers of providers, if the network enforces policies. */
function forgeNetworkPolicy(labels: Record<string, string>): Manifest & { spec: object } {
  const tcp = (port: number | string): object => ({ protocol: 'TCP', port });
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { namespace: SYSTEM_NAMESPACE, name: CLUSTER_NAME, labels },
    spec: {
      podSelector: { matchLabels: labels },
      policyTypes: ['Ingress'],
      ingress: [
        { ports: [tcp('ops'), tcp('peering'), tcp('webhook')] },
        {
          from: [{ namespaceSelector: { matchLabels: { [LABEL_NAMESPACE_NAME]: AGENTS_NAMESPACE } } }],
          ports: [{ protocol: 'TCP', port: REACH_PORTS.first, endPort: REACH_PORTS.last }],
        },
      ],
    },
  };
}

/**
 * The `cluster` role holds rights to further kinds only because RBAC lets nobody pass on what they do not hold. A
 * ValidatingAdmissionPolicy sees to it that it never uses them: it writes nothing outside the API groups of its own table.
 */
function forgeKindsFence(account: AccountRef, places: readonly PlaceRights[]): Manifest[] {
  const rights = places.flatMap(({ parts }) => parts.flatMap((part) => part.rights));
  const groups = [...new Set(rights.map((right) => groupAndResource(right).group))].toSorted();
  return forgeFence({
    name: 'tributary-kinds',
    user: isAccount(account),
    rules: [writes('*', ['*/*'], 'CREATE', 'UPDATE', 'DELETE')],
    except: [writes(groups, ['*/*'], 'CREATE', 'UPDATE', 'DELETE')],
    validations: [['false', 'rights to further kinds are held to be passed on to peers, and not to be used']],
  });
}
