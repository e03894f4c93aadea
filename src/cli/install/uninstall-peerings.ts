/** The first half of an uninstallation, while role `cluster` still runs: offloading and peerings end in order. */
import { acceptancePolicies } from '../../api/acceptance-policy.ts';
import { advertisements } from '../../api/advertisement.ts';
import { clusterModes } from '../../api/cluster-mode.ts';
import { DIRECTIONS, foreignClusters } from '../../api/foreign-cluster.ts';
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { ANNOTATION_FORCE, NAME_PREFIX } from '../../api/names.ts';
import { namespaceOffloadings } from '../../api/namespace-offloading.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import { namespaces, type ResourceType } from '../../api/resources.ts';
import { searchDomains } from '../../api/search-domain.ts';
import { sharingPolicies } from '../../api/sharing-policy.ts';
import { LABEL_PEER, LABEL_TENANCY, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import { tunnels } from '../../api/tunnel.ts';
import { API_VERSION, virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject } from '../../api/wire.ts';
import { applyManifests } from '../../kube/apply.ts';
import { ignoring, TributaryError } from '../../lib/errors.ts';
import { forgeUninstallFence } from '../../deploy/installation/uninstall-fence.ts';
import { SHORT_FORM_FENCE } from '../../offloading/short-form-fence.ts';
import { keptAwayLines, keptAwayTitle, readKeptAway } from '../namespaces/kept-away.ts';
import { waitingLine } from '../namespaces/offloading.ts';
import { isEnded, labelOf, stateLine } from '../peering/foreign-clusters.ts';
import { tellLeft } from '../peering/made-policies.ts';
import { found, ifMissing, listed, nameOf, release, remove, removeAll, untilNone } from './objects.ts';
import { type InstallSession, mustBe, someOf, waitFor } from './waiting.ts';

/** How long each step may take before the next, harder one. */
export interface Bounds {
  /** For pods to come home; their budgets and grace count. */
  readonly drainMs: number;
  /** For a peer to agree to the end, and then for the end without it. */
  readonly peerMs: number;
}

const SHORT_FORM_BINDING = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: SHORT_FORM_FENCE },
};

/** How long API servers may take to see a policy. */
const POLICY_MS = 30_000;

/** From now on nothing new of our kinds is made here, by whomever. */
export async function closeDoor(session: InstallSession): Promise<void> {
  const { client, signal } = session;
  if ((await kindsLeft(session)).length === 0) return;
  // Without our namespace no role runs, and nobody makes anything.
  if ((await found(session, namespaces, { name: SYSTEM_NAMESPACE })) === undefined) return;
  await applyManifests(client, forgeUninstallFence('closed'), { signal });
  // It refuses to delete what a label would make again; nothing is made again now.
  await remove(session, SHORT_FORM_BINDING);
  await mustBe(session, {
    what: 'for the API server to refuse new objects of Tributary',
    timeoutMs: POLICY_MS,
    look: async () => ((await isRefused(session)) ? '' : 'it still takes them'),
  });
}

async function isRefused({ client, signal }: InstallSession): Promise<boolean> {
  const { body, status } = await client.raw({
    method: 'POST',
    path: `/apis/${API_VERSION}/searchdomains?dryRun=All`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      apiVersion: API_VERSION,
      kind: 'SearchDomain',
      metadata: { name: 'tributary-probe' },
      spec: { domain: 'example.org' },
    }),
    signal,
  });
  body.resume();
  return status === 403 || status === 404;
}

const OTHERS: readonly ResourceType<KubeObject>[] = [
  sharingPolicies,
  acceptancePolicies,
  searchDomains,
  foreignClusters,
  advertisements,
  peeringRequests,
  virtualNodes,
  tunnels,
  clusterModes,
];

async function kindsLeft(session: InstallSession): Promise<ResourceType<KubeObject>[]> {
  const left: ResourceType<KubeObject>[] = [];
  for (const type of [namespaceOffloadings, ...OTHERS] as ResourceType<KubeObject>[]) {
    const answer = await session.client.list(type, { signal: session.signal }).catch(ifMissing);
    if (answer !== undefined) left.push(type);
  }
  return left;
}

/** Pods come home as their drains permit. */
export async function endOffloading(session: InstallSession, { drainMs }: Bounds): Promise<void> {
  const { io } = session;
  const all = await listed(session, namespaceOffloadings);
  if (all.length === 0) return;
  io.out(`ending the offloading of ${someOf(all.map(({ metadata }) => metadata.namespace ?? ''))}\n`);
  const missing = await waitFor(session, {
    what: 'for pods to come home',
    timeoutMs: drainMs,
    look: async () => {
      await removing(session, [namespaceOffloadings]);
      const left = await listed(session, namespaceOffloadings);
      return someOf(left.map((one) => `${one.metadata.namespace} (${waitingLine(one)})`));
    },
  });
  if (missing !== '') io.err(`  not ended in time; pods stay where they are: ${missing}\n`);
  for (const { metadata } of all) await tellKeptAway(metadata.namespace ?? '', session);
}

async function tellKeptAway(namespace: string, session: InstallSession): Promise<void> {
  const kept = await readKeptAway(namespace, session);
  if (kept.length === 0) return;
  session.io.err(`  in ${namespace}, ${keptAwayTitle(kept)}\n`);
  for (const line of keptAwayLines(kept)) session.io.err(`    ${line}\n`);
}

/** Asks every peer for the end, and ends it without those that do not answer. */
export async function endPeerings(session: InstallSession, { peerMs }: Bounds): Promise<void> {
  const { client, io, signal } = session;
  const clusters = await listed(session, foreignClusters);
  const open = clusters.filter((cluster) => !isEnded(cluster, DIRECTIONS));
  const disabled = { spec: Object.fromEntries(DIRECTIONS.map((direction) => [direction, 'Disabled'])) };
  for (const { metadata } of clusters) {
    await client
      .patch(foreignClusters, { name: metadata.name }, { type: 'merge', body: disabled }, { signal })
      .catch(ignoring('NotFound'));
  }
  if (open.length > 0) io.out(`ending the peerings with ${someOf(open.map(labelOf))}\n`);
  const look = async (): Promise<string> => {
    const left = (await listed(session, foreignClusters)).filter((one) => !isEnded(one, DIRECTIONS));
    return left.map((one) => `${labelOf(one)} (${stateLine(one, DIRECTIONS)})`).join('; ');
  };
  const missing = await waitFor(session, { what: 'for peerings to end', timeoutMs: peerMs, look });
  await tellLeft(clusters, session);
  if (missing === '') return;
  io.out(`  the other side did not answer in time; ending without it: ${missing}\n`);
  const force = { metadata: { annotations: { [ANNOTATION_FORCE]: 'true' } } };
  for (const cluster of await listed(session, foreignClusters)) {
    if (isEnded(cluster, DIRECTIONS)) continue;
    const ref = { name: cluster.metadata.name };
    await client
      .patch(foreignClusters, ref, { type: 'merge', body: force }, { signal })
      .catch(ignoring('NotFound'));
  }
  const still = await waitFor(session, { what: 'for peerings to end without them', timeoutMs: peerMs, look });
  if (still !== '') io.err(`  still not ended: ${still}\n`);
}

/** All objects of our kinds. Where role `cluster` does not finish them, they lose its finalizers. */
export async function removeObjects(session: InstallSession, { peerMs }: Bounds): Promise<void> {
  const kinds = await kindsLeft(session);
  const look = async (): Promise<string> => someOf(await removing(session, kinds));
  const all = await removing(session, kinds);
  if (all.length === 0) return;
  session.io.out(`removing ${all.length} objects of Tributary: ${someOf(all)}\n`);
  const what = 'for role cluster to finish its objects';
  if ((await waitFor(session, { what, timeoutMs: peerMs, look })) === '') return;
  const released: string[] = [];
  for (const type of kinds) released.push(...(await release(session, type, NAME_PREFIX)));
  if (released.length > 0)
    session.io.err(
      `  role cluster has not finished ${someOf(released)} in time: their finalizers were removed\n`,
    );
  await mustBe(session, { what: 'for the last objects of Tributary', timeoutMs: POLICY_MS, look });
}

/** Asks again for the deletion of what was not taken yet: API servers see for a moment longer a policy that is gone. */
async function removing(
  session: InstallSession,
  kinds: readonly ResourceType<KubeObject>[],
): Promise<string[]> {
  const left: string[] = [];
  for (const type of kinds) {
    for (const { metadata } of await listed(session, type)) {
      const { name, namespace, deletionTimestamp } = metadata;
      left.push(nameOf({ kind: type.kind, metadata }));
      if (deletionTimestamp !== undefined) continue;
      await session.client
        .delete(type, { name, ...(namespace !== undefined && { namespace }) }, { signal: session.signal })
        .catch(ignoring('NotFound', 'Forbidden', 'Invalid'));
    }
  }
  return left;
}

/** Namespaces that were made for peers; normally they have gone with their peerings. */
export async function removeTenants(session: InstallSession, { peerMs }: Bounds): Promise<void> {
  // Tenants that people have made by hand stay theirs.
  const options = { labelSelector: `${LABEL_PEER},${LABEL_TENANCY}=${TENANCY_CONTRACT}` };
  const type = namespaces as ResourceType<KubeObject>;
  const left = await listed(session, type, options);
  if (left.length === 0) return;
  session.io.out(`removing the namespaces of peers ${someOf(left.map(({ metadata }) => metadata.name))}\n`);
  await removeAll(session, type, options);
  const missing = await untilNone(session, [type], {
    what: 'for namespaces of peers',
    timeoutMs: peerMs,
    options,
  });
  if (missing !== '') session.io.err(`  ${missing}\n`);
}

/** A cluster that another one controls must first be given back. */
export async function checkNotTethered(session: InstallSession): Promise<void> {
  const modes = await listed(session, clusterModes);
  const tether = modes.find(({ status }) => status?.mode === 'Tethered');
  if (tether === undefined) return;
  throw new TributaryError(
    'Conflict',
    `this cluster is tethered to ${tether.spec?.tether?.cluster ?? 'another one'}: end that first, with: tributary untether`,
  );
}
