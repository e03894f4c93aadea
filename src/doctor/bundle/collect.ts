import { stringify } from 'yaml';

import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '../../api/admission.ts';
import { acceptancePolicies } from '../../api/acceptance-policy.ts';
import { advertisements } from '../../api/advertisement.ts';
import { clusterModes } from '../../api/cluster-mode.ts';
import { foreignClusters } from '../../api/foreign-cluster.ts';
import { AGENTS_NAMESPACE, LABEL_APP_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { namespaceOffloadings } from '../../api/namespace-offloading.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  daemonSets,
  deployments,
  events,
  leases,
  nodes,
  pods,
  resourceQuotas,
  type ResourceType,
  roleBindings,
  roles,
  secrets,
} from '../../api/resources.ts';
import { searchDomains } from '../../api/search-domain.ts';
import { sharingPolicies } from '../../api/sharing-policy.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import { tunnels } from '../../api/tunnel.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import { collect } from '../../kube/body.ts';
import type { KubeClient, ListOptions } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Finding } from '../finding.ts';
import type { Entry } from './archive.ts';
import { redactObject, redactText } from './redact.ts';

interface Collecting {
  client: KubeClient;
  clock: Clock;
  signal: AbortSignal;
  findings: readonly Finding[];
  /** A first line for whoever opens the archive. */
  title: string;
}

const NETWORK_NAMESPACE = 'tributary-network';
const OURS: readonly string[] = [SYSTEM_NAMESPACE, NETWORK_NAMESPACE, AGENTS_NAMESPACE, PEERS_NAMESPACE];
const LABELLED: ListOptions = { labelSelector: `${LABEL_APP_NAME}=tributary` };

/** Kinds that are ours alone, or of which those with our label are. */
const KINDS: readonly (readonly [ResourceType<KubeObject>, ListOptions?])[] = [
  [foreignClusters],
  [tunnels],
  [virtualNodes],
  [sharingPolicies],
  [acceptancePolicies],
  [advertisements],
  [peeringRequests],
  [namespaceOffloadings],
  [searchDomains],
  [clusterModes],
  [nodes],
  [mutatingWebhookConfigurations, LABELLED],
  [validatingWebhookConfigurations, LABELLED],
  [clusterRoles, LABELLED],
  [clusterRoleBindings, LABELLED],
];
/** In each of our namespaces. */
const NAMESPACED: readonly ResourceType<KubeObject>[] = [
  deployments,
  daemonSets,
  pods,
  configMaps,
  secrets,
  leases,
  resourceQuotas,
  roles,
  roleBindings,
  events,
];

/** For one answer, and one log. */
const PATIENCE_MS = 15_000;
const LOG_BYTES = 1024 * 1024;
const METRICS_BYTES = 4 * 1024 * 1024;

/** All that goes into the archive, already without secrets. What cannot be read is listed in `unread.txt`. */
export async function* collectBundle(collecting: Collecting): AsyncGenerator<Entry> {
  const { findings, title } = collecting;
  const unread: string[] = [];
  yield {
    path: 'README.txt',
    text: `${title}\nSecrets, tokens, keys and values of variables are left out.\n`,
  };
  yield { path: 'doctor.json', text: redactText(JSON.stringify({ findings }, undefined, 2)) };
  for (const [type, options] of KINDS)
    yield* listed(collecting, { type, options: options ?? {}, path: 'cluster', unread });
  for (const namespace of OURS) {
    for (const type of NAMESPACED) {
      yield* listed(collecting, { type, options: { namespace }, path: `namespaces/${namespace}`, unread });
    }
  }
  // Events of objects that are in no namespace.
  yield* listed(collecting, {
    type: events,
    options: { namespace: 'default' },
    path: 'cluster',
    unread,
    isOurs: isAboutOurs,
  });
  for (const namespace of OURS) {
    for (const pod of await ourPods(collecting, namespace, unread)) yield* ofPod(collecting, pod, unread);
  }
  yield { path: 'unread.txt', text: unread.map((line) => `${redactText(line)}\n`).join('') };
}

const isAboutOurs = (event: KubeObject): boolean =>
  ((event as { involvedObject?: { apiVersion?: string } }).involvedObject?.apiVersion ?? '').startsWith(
    'tributary.dev/',
  );

interface Listing {
  type: ResourceType<KubeObject>;
  options: ListOptions;
  path: string;
  unread: string[];
  isOurs?: (object: KubeObject) => boolean;
}

async function* listed({ client, clock, signal }: Collecting, listing: Listing): AsyncGenerator<Entry> {
  const { type, options, path, unread, isOurs = () => true } = listing;
  using deadline = startDeadline(clock, PATIENCE_MS, type.plural, signal);
  try {
    const { items } = await client.list(type, { ...options, signal: deadline.signal });
    const clean = items.filter(isOurs).map(redactObject);
    if (clean.length === 0) return;
    const text = clean.map((object) => stringify(object, { aliasDuplicateObjects: false })).join('---\n');
    yield { path: `${path}/${type.plural}.yaml`, text };
  } catch (error) {
    signal.throwIfAborted();
    unread.push(`list ${type.plural} (${path}): ${errorMessage(error)}`);
  }
}

/** Elsewhere anybody may have pods with our label, who would choose what their logs and metrics say. */
async function ourPods(
  { client, clock, signal }: Collecting,
  namespace: string,
  unread: string[],
): Promise<Pod[]> {
  using deadline = startDeadline(clock, PATIENCE_MS, `pods of ${namespace}`, signal);
  try {
    return (await client.list(pods, { ...LABELLED, namespace, signal: deadline.signal })).items;
  } catch (error) {
    signal.throwIfAborted();
    unread.push(`list pods (logs of ${namespace}): ${errorMessage(error)}`);
    return [];
  }
}

async function* ofPod(
  collecting: Collecting,
  { metadata, spec, status }: Pod,
  unread: string[],
): AsyncGenerator<Entry> {
  const { name, namespace = '' } = metadata;
  const api = `/api/v1/namespaces/${namespace}/pods/${name}`;
  const folder = `logs/${namespace}/${name}`;
  for (const { name: container } of spec?.containers ?? []) {
    const query = `container=${container}&limitBytes=${LOG_BYTES}&tailLines=5000&timestamps=true`;
    yield* text(collecting, { path: `${api}/log?${query}`, as: `${folder}/${container}.log`, unread });
    const restarts = status?.containerStatuses?.find((each) => each.name === container)?.restartCount ?? 0;
    if (restarts > 0) {
      yield* text(collecting, {
        path: `${api}/log?${query}&previous=true`,
        as: `${folder}/${container}.previous.log`,
        unread,
      });
    }
    const port = spec?.containers
      .find((each) => each.name === container)
      ?.ports?.find((each) => each.name === 'ops');
    if (port !== undefined) {
      const path = `/api/v1/namespaces/${namespace}/pods/${name}:${port.containerPort}/proxy/metrics`;
      yield* text(collecting, { path, as: `metrics/${namespace}/${name}.txt`, unread });
    }
  }
}

async function* text(
  { client, clock, signal }: Collecting,
  { path, as, unread }: { path: string; as: string; unread: string[] },
): AsyncGenerator<Entry> {
  using deadline = startDeadline(clock, PATIENCE_MS, path, signal);
  try {
    const answer = await client.raw({ method: 'GET', path, signal: deadline.signal });
    const bytes = await collect(answer.body, { maxBytes: METRICS_BYTES, excess: 'cut' });
    if (answer.status === 200) yield { path: as, text: redactText(bytes.toString()) };
    else unread.push(`${path}: HTTP ${answer.status} ${bytes.toString().slice(0, 300)}`);
  } catch (error) {
    signal.throwIfAborted();
    unread.push(`${path}: ${errorMessage(error)}`);
  }
}
