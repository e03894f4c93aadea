/** `tributary approve`, `deny` and `renew`: what a person decides about a peer that asks, an offer, or a credential. */
import { advertisements, type AdvertisementSpec } from '../../api/advertisement.ts';
import { FOREIGN_CLUSTER_REASONS, peerIDOf } from '../../api/foreign-cluster.ts';
import { ANNOTATION_RENEW } from '../../api/names.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { Condition, KubeObject } from '../../api/wire.ts';
import type { Command } from '../command.ts';
import { EXIT, wrongForm } from '../command-line.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import { clusterCommand, type Session } from './environment.ts';
import { findCluster, listClusters } from './foreign-clusters.ts';
import { permit } from './peer-objects.ts';

type Word = NonNullable<AdvertisementSpec['approval']>;

const KINDS: Readonly<Record<string, ResourceType<KubeObject>>> = {
  peeringrequest: peeringRequests,
  advertisement: advertisements,
};

export const approveCommand = (word: Word): Command =>
  clusterCommand({
    name: word === 'Approved' ? 'approve' : 'deny',
    summary:
      word === 'Approved'
        ? 'Let a cluster in that asks, or take an offer that waits for you.'
        : 'Refuse a cluster that asks, or an offer; also takes back what was granted.',
    about:
      'Without a kind it is the one that waits for a person: a PeeringRequest where that cluster wants to run pods here, an ' +
      'Advertisement where it has offered to run ours.',
    arguments: [
      { name: 'CLUSTER', text: 'name or ClusterID; a kind may stand before it', names: 'peeringrequests' },
      {
        name: 'NAME',
        text: 'the cluster, where CLUSTER is peeringrequest or advertisement',
        isOptional: true,
      },
    ],
    examples: [
      {
        line: `tributary ${word === 'Approved' ? 'approve' : 'deny'} milan`,
        does: 'Decide about what waits',
      },
      {
        line: `tributary ${word === 'Approved' ? 'approve' : 'deny'} advertisement milan`,
        does: 'Decide about its offer',
      },
    ],
    parse: ({ positionals: [first = '', second] }) => {
      const singular = first.toLowerCase().replace(/s$/, '');
      const type = Object.hasOwn(KINDS, singular) ? KINDS[singular] : undefined;
      if (second === undefined && type !== undefined) throw wrongForm('NAME is missing');
      if (second === undefined) return { name: first };
      if (type === undefined) {
        throw new TributaryError('Invalid', `"${first}" is neither peeringrequest nor advertisement`);
      }
      return { type, name: second };
    },
    run: async ({ type: wanted, name }, session) => {
      const type = wanted ?? (await waitingKind(name, session));
      const found = await patchNamed(type, { spec: { approval: word } }, { name, session });
      session.io.out(`${type.kind} ${found} ${word.toLowerCase()}\n`);
      if (word === 'Approved' && type.kind === peeringRequests.kind) await liftDisabled(found, session);
      return EXIT.ok;
    },
  });

/** Whoever lets a cluster in takes back what `unpeer` has left for it. */
async function liftDisabled(clusterID: string, session: Session): Promise<void> {
  const clusters = await listClusters(session);
  for (const cluster of clusters.filter((one) => peerIDOf(one) === clusterID)) {
    if ((await permit(cluster, session, ['incoming'])) === undefined) continue;
    session.io.out(`ForeignCluster ${cluster.metadata.name} no longer says incoming: Disabled\n`);
  }
}

const WAITING: string = FOREIGN_CLUSTER_REASONS.waitingForApproval;

/** Of the kinds of which that cluster has an object, the one that waits for a person, or the only one. */
async function waitingKind(name: string, session: Session): Promise<ResourceType<KubeObject>> {
  const { client, signal } = session;
  const known = (await listClusters(session)).find((cluster) =>
    [cluster.metadata.name, peerIDOf(cluster), cluster.status?.clusterName].includes(name),
  );
  const clusterID = (known && peerIDOf(known)) ?? name;
  const found: { type: ResourceType<KubeObject>; waits: boolean }[] = [];
  for (const type of Object.values(KINDS)) {
    const object = await client
      .get<Decided>(type as ResourceType<Decided>, { name: clusterID }, { signal })
      .catch(ignoring('NotFound'));
    if (object !== undefined) found.push({ type, waits: isWaiting(object) });
  }
  const [first, second] = found.some(({ waits }) => waits) ? found.filter(({ waits }) => waits) : found;
  if (first === undefined) {
    throw new TributaryError(
      'NotFound',
      `"${name}" neither asks to run pods here nor has made an offer; who does: kubectl get peeringrequests,advertisements`,
    );
  }
  if (second !== undefined) {
    throw new TributaryError(
      'Conflict',
      `"${name}" has a PeeringRequest and an Advertisement here: say peeringrequest or advertisement before its name`,
    );
  }
  return first.type;
}

interface Decided extends KubeObject {
  status?: { reason?: string; conditions?: readonly Condition[] };
}

const isWaiting = ({ status }: Decided): boolean =>
  [status?.reason, ...(status?.conditions ?? []).map(({ reason }) => reason)].includes(WAITING);

/** The object is named by a ClusterID; the name of its ForeignCluster will do too. Returns the object's name. */
async function patchNamed(
  type: ResourceType<KubeObject>,
  body: object,
  { name, session }: { name: string; session: Session },
): Promise<string> {
  const { client, signal } = session;
  const patch = { type: 'merge', body } as const;
  try {
    return (await client.patch(type, { name }, patch, { signal })).metadata.name;
  } catch (error) {
    if (!hasCode(error, 'NotFound')) throw error;
    const clusterID = peerIDOf(findCluster(await listClusters(session), name));
    if (clusterID === undefined || clusterID === name) {
      throw new TributaryError('NotFound', `there is no ${type.kind} of ${name}`, { cause: error });
    }
    return (await client.patch(type, { name: clusterID }, patch, { signal })).metadata.name;
  }
}

/**
 * Asks a cluster whose nodes we use for a new credential, before the old one ends. Does not wait:
 * `status.credentialExpires` of the Advertisement moves when the new one has come.
 */
export const renewCommand: Command = clusterCommand({
  name: 'renew',
  summary: 'Ask a cluster that runs our pods for a new credential, before the old one ends.',
  arguments: [{ name: 'NAME|CLUSTER_ID', text: 'the other cluster', names: 'foreignclusters' }],
  parse: ({ positionals: [name = ''] }) => name,
  run: async (name, session) => {
    const now = new Date(session.clock.now()).toISOString();
    const body = { metadata: { annotations: { [ANNOTATION_RENEW]: now } } };
    const found = await patchNamed(advertisements, body, { name, session });
    session.io.out(`${found} is asked for a new credential\n`);
    return EXIT.ok;
  },
});
