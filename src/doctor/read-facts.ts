import { mutatingWebhookConfigurations, WEBHOOK_SERVICE } from '../api/admission.ts';
import { acceptancePolicies } from '../api/acceptance-policy.ts';
import { foreignClusters, type ForeignCluster } from '../api/foreign-cluster.ts';
import { AGENTS_NAMESPACE, LABEL_APP_NAME, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { HOME_LEASE } from '../api/names.ts';
import { namespaceOffloadings } from '../api/namespace-offloading.ts';
import {
  clusterRoles,
  configMaps,
  daemonSets,
  deployments,
  endpointSlices,
  leases,
  namespaces,
  nodes,
  pods,
  resourceQuotas,
  type ResourceType,
  roles,
  secrets,
} from '../api/resources.ts';
import type { Role } from '../api/rbac.ts';
import { sharingPolicies } from '../api/sharing-policy.ts';
import { tunnels } from '../api/tunnel.ts';
import { virtualNodes, type VirtualNode } from '../api/virtual-node.ts';
import type { KubeObject, Secret } from '../api/wire.ts';
import type { KubeClient, ListOptions } from '../kube/client.ts';
import { collect } from '../kube/body.ts';
import { collectionPath, listQuery } from '../kube/paths.ts';
import type { Clock } from '../lib/clock.ts';
import { startDeadline } from '../lib/deadline.ts';
import { errorCode, errorMessage, ignoring } from '../lib/errors.ts';
import { certificateIn } from './secret-certificate.ts';
import type {
  ApiServerFacts,
  Dialled,
  ExpectedRights,
  Facts,
  Lists,
  ReadProblem,
  Seen,
  TimedLease,
} from './facts.ts';
import { itemsOf, LIST_NAMES } from './facts.ts';
import { tryOutWebhook } from './webhook-trial.ts';

export interface Reading {
  client: KubeClient;
  clock: Clock;
  signal: AbortSignal;
  /** Of the API server, for people. */
  url: string;
  software: string;
  expectedRights: readonly ExpectedRights[];
  /** Says who answers at a `host:port`, as its certificate proves it. Throws where nobody does. */
  dial: (endpoint: string, signal: AbortSignal) => Promise<string>;
}

/** For one answer of the API server, and for one endpoint. */
const PATIENCE_MS = 10_000;
const DIAL_MS = 5_000;

/** Everything that is looked at, read in parallel. It never throws: what cannot be read is a fact. */
export async function readFacts(reading: Reading): Promise<Facts> {
  const { software, expectedRights, clock } = reading;
  const apiServer = await readApiServer(reading);
  const lists = apiServer.error === undefined ? await readLists(reading) : unreadable(apiServer.error);
  const [dialled, webhookTrial] = await Promise.all([
    dialAll(reading, itemsOf(lists.foreignClusters)),
    tryOutWebhook(reading, lists),
  ]);
  return {
    now: clock.now(),
    software,
    apiServer,
    lists,
    dialled,
    expectedRights,
    ...(webhookTrial !== undefined && { webhookTrial }),
  };
}

async function readApiServer({ client, clock, signal, url }: Reading): Promise<ApiServerFacts> {
  using deadline = startDeadline(clock, PATIENCE_MS, url, signal);
  const began = clock.now();
  try {
    const answer = await client.raw({ method: 'GET', path: '/version', signal: deadline.signal });
    const text = (await collect(answer.body, { maxBytes: MOST_BYTES, excess: 'throw' })).toString();
    if (answer.status !== 200) return { url, error: `HTTP ${answer.status}: ${text.slice(0, 200)}` };
    const { gitVersion } = JSON.parse(text) as { gitVersion?: string };
    const dateMs = Date.parse(String(answer.headers['date'] ?? ''));
    return {
      url,
      ...(gitVersion !== undefined && { version: gitVersion }),
      ...(!Number.isNaN(dateMs) && { dateMs, hereMs: (began + clock.now()) / 2 }),
    };
  } catch (error) {
    return { url, error: errorMessage(error) };
  }
}

const MOST_BYTES = 16 * 1024 * 1024;

async function readLists(reading: Reading): Promise<Lists> {
  const system = { namespace: SYSTEM_NAMESPACE };
  const ours = { labelSelector: `${LABEL_APP_NAME}=tributary` };
  const list = async <T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions = {},
  ): Promise<Seen<T>> => seen(reading, type, options);
  const named = {
    foreignClusters: list(foreignClusters),
    tunnels: list(tunnels),
    virtualNodes: list(virtualNodes),
    offloadings: list(namespaceOffloadings),
    sharingPolicies: list(sharingPolicies),
    acceptancePolicies: list(acceptancePolicies),
    nodes: list(nodes),
    namespaces: list(namespaces),
    pods: list(pods),
    quotas: list(resourceQuotas),
    configMaps: list(configMaps, system),
    deployments: list(deployments),
    daemonSets: list(daemonSets, ours),
    dnsSlices: list(endpointSlices, {
      namespace: 'kube-system',
      labelSelector: 'kubernetes.io/service-name=kube-dns',
    }),
    webhooks: list(mutatingWebhookConfigurations, ours),
    clusterRoles: list(clusterRoles, ours) as Promise<Seen<Role>>,
    roles: list(roles, ours) as Promise<Seen<Role>>,
    leases: readLeases(reading),
  };
  const entries = await Promise.all(
    Object.entries(named).map(async ([name, promise]) => [name, await promise] as const),
  );
  const lists = Object.fromEntries(entries) as unknown as Lists;
  return { ...lists, secrets: await readSecrets(reading, itemsOf(lists.virtualNodes)) };
}

async function seen<T extends KubeObject>(
  { client, clock, signal }: Reading,
  type: ResourceType<T>,
  options: ListOptions,
): Promise<Seen<T>> {
  const wanted = `list ${resourceOf(type)}`;
  using deadline = startDeadline(clock, PATIENCE_MS, wanted, signal);
  try {
    const { items } = await client.list(type, { ...options, signal: deadline.signal });
    return { items };
  } catch (error) {
    return { problem: problemOf(error, wanted) };
  }
}

const resourceOf = ({ plural, group }: ResourceType<KubeObject>): string =>
  group === '' ? plural : `${plural}.${group}`;

const problemOf = (error: unknown, wanted: string): ReadProblem => ({
  message: errorMessage(error),
  wanted,
  isForbidden: errorCode(error) === 'Forbidden',
  isKindUnknown: errorCode(error) === 'NotFound',
});

const OURS: ReadonlySet<string | undefined> = new Set([
  SYSTEM_NAMESPACE,
  AGENTS_NAMESPACE,
  'kube-node-lease',
]);

/** By `raw`, since the client leaves out `managedFields`, by which the API server says when it took a change. */
async function readLeases({ client, clock, signal }: Reading): Promise<Seen<TimedLease>> {
  const wanted = 'list leases.coordination.k8s.io';
  using deadline = startDeadline(clock, PATIENCE_MS, wanted, signal);
  try {
    const path = `${collectionPath(leases)}${listQuery({})}`;
    const answer = await client.raw({ method: 'GET', path, signal: deadline.signal });
    const text = (await collect(answer.body, { maxBytes: MOST_BYTES, excess: 'throw' })).toString();
    if (answer.status !== 200) {
      const { message = text } = JSON.parse(text) as { message?: string };
      return {
        problem: {
          message,
          wanted,
          isForbidden: answer.status === 403,
          isKindUnknown: answer.status === 404,
        },
      };
    }
    const { items } = JSON.parse(text) as {
      items: (TimedLease & { metadata: { managedFields?: { time?: string }[] } })[];
    };
    return {
      items: items
        .filter(({ metadata }) => OURS.has(metadata.namespace) || metadata.name === HOME_LEASE)
        .map((lease) => {
          const times = (lease.metadata.managedFields ?? []).flatMap(({ time }) => time ?? []).toSorted();
          const writtenAt = times.at(-1);
          return { ...lease, ...(writtenAt !== undefined && { writtenAt }) };
        }),
    };
  } catch (error) {
    return { problem: problemOf(error, wanted) };
  }
}

/** One by one, so that nobody needs a right to all Secrets. Of each, only the certificate and the metadata are kept. */
async function readSecrets(reading: Reading, agents: readonly VirtualNode[]): Promise<Lists['secrets']> {
  const { client, clock, signal } = reading;
  const refs = [
    { namespace: SYSTEM_NAMESPACE, name: WEBHOOK_SERVICE, key: 'tls.crt' },
    ...agents.map(({ spec }) => ({ key: 'kubeconfig', ...spec.kubeconfigSecretRef })),
  ];
  const wanted = 'get secrets';
  using deadline = startDeadline(clock, PATIENCE_MS, wanted, signal);
  try {
    const found = await Promise.all(
      refs.map(async ({ key, namespace, name }) => {
        const secret = await client
          .get(secrets, { namespace, name }, { signal: deadline.signal })
          .catch(ignoring('NotFound'));
        return secret === undefined ? [] : [publicPart(secret, key)];
      }),
    );
    return { items: found.flat() };
  } catch (error) {
    return { problem: problemOf(error, wanted) };
  }
}

function publicPart({ metadata, data }: Secret, key: string): KubeObject & { certificate?: string } {
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...annotations } =
    metadata.annotations ?? {};
  const certificate = certificateIn(data ?? {}, key);
  return { metadata: { ...metadata, annotations }, ...(certificate !== undefined && { certificate }) };
}

async function dialAll(
  { dial, clock, signal }: Reading,
  clusters: readonly ForeignCluster[],
): Promise<Map<string, Dialled>> {
  const answers = await Promise.all(
    clusters.map(async ({ metadata, spec, status }): Promise<[string, Dialled][]> => {
      const { link, sightings = {} } = status ?? {};
      const dialledByUs = link?.dialledBy === 'Us' ? link.endpoint : undefined;
      const seenAt = Object.values(sightings).flatMap(({ endpoints }) => endpoints)[0];
      const endpoint = spec?.endpoint ?? dialledByUs ?? seenAt;
      if (endpoint === undefined) return [];
      using deadline = startDeadline(clock, DIAL_MS, endpoint, signal);
      try {
        return [[metadata.name, { endpoint, clusterID: await dial(endpoint, deadline.signal) }]];
      } catch (error) {
        return [[metadata.name, { endpoint, error: errorMessage(error) }]];
      }
    }),
  );
  return new Map(answers.flat());
}

/** Where no API server answers, it is asked for nothing more. */
function unreadable(message: string): Lists {
  const problem = { message, wanted: 'read anything', isForbidden: false, isKindUnknown: false };
  return Object.fromEntries(LIST_NAMES.map((kind) => [kind, { problem }])) as unknown as Lists;
}
