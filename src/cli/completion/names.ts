/** Names for completion, from the cluster or from the kubeconfig. */
import { acceptancePolicies } from '../../api/acceptance-policy.ts';
import { advertisements } from '../../api/advertisement.ts';
import { foreignClusters } from '../../api/foreign-cluster.ts';
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import { namespaces, type ResourceType } from '../../api/resources.ts';
import { sharingPolicies } from '../../api/sharing-policy.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { silentLogger } from '../../lib/log.ts';
import { JoinTokens } from '../../peering/identity/join-tokens.ts';
import { contextsOf, type Where } from '../kubeconfig.ts';
import type { CommandEnvironment, Names } from '../spec.ts';
import type { Candidate } from './candidates.ts';

/** Whoever pressed the key waits. */
const PATIENCE_MS = 1000;
/** More are of no use, and would take longer than a person waits. */
const MOST = 500;

/** Files are the shell's own. */
type ClusterNames = Exclude<Names, 'contexts' | 'files'>;

type Environment = Pick<CommandEnvironment, 'open' | 'clock' | 'signal'>;

/** Rejects where they cannot be had in time. */
export async function namesOf(names: Names, where: Where, environment: Environment): Promise<Candidate[]> {
  if (names === 'files') return [];
  if (names === 'contexts') return (await contextsOf(where)).map((value) => ({ value }));
  const { open, clock, signal } = environment;
  using deadline = startDeadline(clock, PATIENCE_MS, 'reading names', signal);
  return await untilAborted(read(names, { where, open, clock, signal: deadline.signal }), deadline.signal);
}

async function read(
  names: ClusterNames,
  { where, ...environment }: Environment & { where: Where },
): Promise<Candidate[]> {
  const client = await environment.open(where);
  try {
    return await listed(names, client, environment);
  } finally {
    await client.close();
  }
}

async function listed(
  names: ClusterNames,
  client: KubeClient,
  { clock, signal }: Environment,
): Promise<Candidate[]> {
  const all = async (type: ResourceType<KubeObject>): Promise<Candidate[]> => {
    const { items } = await client.list(type, { metadataOnly: true, limit: MOST, signal });
    return items.map(({ metadata }) => ({ value: metadata.name }));
  };
  switch (names) {
    case 'foreignclusters': {
      const { items } = await client.list(foreignClusters, { limit: MOST, signal });
      return items.map(({ metadata, status }) => ({ value: metadata.name, text: status?.clusterName ?? '' }));
    }
    case 'policies':
      return [...(await all(sharingPolicies)), ...(await all(acceptancePolicies))];
    case 'tokens': {
      const options = { client, clock, log: silentLogger, namespace: SYSTEM_NAMESPACE, clusterID: '' };
      const entries = await new JoinTokens(options).list(signal);
      return entries.map(({ name, expires }) => ({ value: name, text: `until ${expires}` }));
    }
    // Parts of the cluster itself never leave it.
    case 'namespaces':
      return (await all(namespaces)).filter(({ value }) => !isClusterNamespace(value, SYSTEM_NAMESPACE));
    default:
      return all(TYPES[names]);
  }
}

const TYPES: Readonly<
  Record<
    Exclude<ClusterNames, 'foreignclusters' | 'namespaces' | 'policies' | 'tokens'>,
    ResourceType<KubeObject>
  >
> = {
  advertisements,
  peeringrequests: peeringRequests,
  virtualnodes: virtualNodes,
};
