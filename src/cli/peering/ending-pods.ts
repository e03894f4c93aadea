/** Pods over there that have no controller: when a peering ends, they come home or are lost. */
import { namespaceOffloadings, OFFLOADING_NAME } from '../../api/namespace-offloading.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { isControlled, isFinished, isGuest } from '../../api/pod.ts';
import { pods } from '../../api/resources.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { Pod } from '../../api/wire.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import { agreed } from '../agreement.ts';
import type { Session } from './environment.ts';
import { MOST_NAMED } from './remnants.ts';

/** Why nobody makes the pods of a namespace anew. */
type Cause = 'End' | 'NotOffloaded';

interface EndingPods {
  comeHome: Pod[];
  lost: Pod[];
  /** By namespace, for those that are lost. */
  causes: ReadonlyMap<string, Cause>;
}

/** Names those that are lost, and how to keep them; a person is asked, and where there is none, it goes on. */
export async function mayEndPods(
  clusterID: string,
  { isSure }: { isSure: boolean },
  session: Session,
): Promise<boolean> {
  const { io } = session;
  const found = await endingPods(clusterID, session).catch((error: unknown) => {
    if (!hasCode(error, 'Forbidden')) throw error;
    io.err('Pods without a controller may end for good with it: you may not see which pods run over there\n');
    return undefined;
  });
  if (found === undefined) return true;
  const { comeHome, lost, causes } = found;
  if (comeHome.length > 0)
    io.out(`  made anew here, since they have no controller: pods ${namesOf(comeHome)}\n`);
  if (lost.length === 0) return true;
  io.err(
    `${lost.length} pod(s) end for good with this peering, since they have no controller and nobody makes them anew: ${namesOf(lost)}\n`,
  );
  for (const [namespace, cause] of [...causes].slice(0, MOST_NAMED))
    io.err(`  ${HOW_TO_KEEP[cause](namespace)}\n`);
  if (isSure || io.input?.isTerminal !== true) return true;
  if (await agreed(session, { question: 'End the peering nevertheless?' })) return true;
  io.err('Nothing was changed.\n');
  return false;
}

const HOW_TO_KEEP: Readonly<Record<Cause, (namespace: string) => string>> = {
  End: (namespace) =>
    `${namespace}: its NamespaceOffloading says onRemoval: End. To bring its pods home, before: kubectl -n ${namespace} ` +
    `patch namespaceoffloading ${OFFLOADING_NAME} --type merge -p '{"spec":{"onRemoval":"Return"}}'`,
  NotOffloaded: (namespace) =>
    `${namespace}: it has no NamespaceOffloading that would bring its pods home. Keep their manifests, before: kubectl -n ${namespace} get pods -o yaml`,
};

const namesOf = (some: readonly Pod[]): string =>
  some
    .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    .toSorted()
    .slice(0, MOST_NAMED)
    .join(', ') + (some.length > MOST_NAMED ? ', ...' : '');

/** As the role cluster decides it (src/offloading). */
async function endingPods(clusterID: string, session: Session): Promise<EndingPods> {
  const bare = await podsWithoutController(clusterID, session);
  const { client, signal } = session;
  const causes = new Map<string, Cause>();
  for (const namespace of new Set(bare.map(namespaceOf))) {
    const ref = { name: OFFLOADING_NAME, namespace };
    const offloading = await client.get(namespaceOffloadings, ref, { signal }).catch(ignoring('NotFound'));
    if (offloading === undefined) causes.set(namespace, 'NotOffloaded');
    else if (offloading.spec.onRemoval === 'End') causes.set(namespace, 'End');
  }
  const isLost = (pod: Pod): boolean => causes.has(namespaceOf(pod));
  return { comeHome: bare.filter((pod) => !isLost(pod)), lost: bare.filter(isLost), causes };
}

const namespaceOf = ({ metadata }: Pod): string => metadata.namespace ?? '';

async function podsWithoutController(clusterID: string, { client, signal }: Session): Promise<Pod[]> {
  const labelSelector = `${LABEL_PROVIDER}=${clusterID}`;
  const { items } = await client.list(virtualNodes, { labelSelector, signal });
  const found: Pod[] = [];
  for (const { metadata, spec, status } of items) {
    const node = status?.nodeName ?? spec.nodeName ?? metadata.name;
    const on = await client.list(pods, { fieldSelector: `spec.nodeName=${node}`, signal });
    found.push(...on.items.filter(isBare));
  }
  return found;
}

const isBare = (pod: Pod): boolean =>
  pod.metadata.deletionTimestamp === undefined && !isControlled(pod) && !isFinished(pod) && !isGuest(pod);
