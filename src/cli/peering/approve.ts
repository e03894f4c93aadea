/** `tributary approve`, `deny` and `renew`: what a person decides about a peer that asks, an offer, or a credential. */
import { advertisements, type AdvertisementSpec } from '../../api/advertisement.ts';
import { ANNOTATION_RENEW } from '../../api/names.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';
import { EXIT, positionals } from '../command-line.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';
import { type ClusterCommand, clusterCommand, type Session } from './environment.ts';
import { findCluster, idOf, listClusters } from './foreign-clusters.ts';

export const APPROVE_USAGE = `tributary approve|deny peeringrequest|advertisement NAME|CLUSTER_ID
                 [--kubeconfig FILE] [--context NAME]`;

type Word = NonNullable<AdvertisementSpec['approval']>;

const KINDS: Readonly<Record<string, ResourceType<KubeObject>>> = {
  peeringrequest: peeringRequests,
  advertisement: advertisements,
};

export const approveCommand = (word: Word): ClusterCommand =>
  clusterCommand({
    usage: APPROVE_USAGE,
    parse: (line) => {
      const [kind = '', name = ''] = positionals(line, ['peeringrequest or advertisement', 'NAME']);
      const singular = kind.toLowerCase().replace(/s$/, '');
      const type = Object.hasOwn(KINDS, singular) ? KINDS[singular] : undefined;
      if (type === undefined) {
        throw new TributaryError('Invalid', `"${kind}" is neither peeringrequest nor advertisement`);
      }
      return { type, name };
    },
    run: async ({ type, name }, session) => {
      const found = await patchNamed(type, { spec: { approval: word } }, { name, session });
      session.io.out(`${type.kind} ${found} ${word.toLowerCase()}\n`);
      return EXIT.ok;
    },
  });

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
    const clusterID = idOf(findCluster(await listClusters(session), name));
    if (clusterID === undefined || clusterID === name) {
      throw new TributaryError('NotFound', `there is no ${type.kind} of ${name}`, { cause: error });
    }
    return (await client.patch(type, { name: clusterID }, patch, { signal })).metadata.name;
  }
}

export const RENEW_USAGE = `tributary renew NAME|CLUSTER_ID [--kubeconfig FILE] [--context NAME]`;

/**
 * Asks a cluster whose nodes we use for a new credential, before the old one ends. Does not wait:
 * `status.credentialExpires` of the Advertisement moves when the new one has come.
 */
export const renewCommand: ClusterCommand = clusterCommand({
  usage: RENEW_USAGE,
  parse: (line) => positionals(line, ['NAME'])[0] ?? '',
  run: async (name, session) => {
    const now = new Date(session.clock.now()).toISOString();
    const body = { metadata: { annotations: { [ANNOTATION_RENEW]: now } } };
    const found = await patchNamed(advertisements, body, { name, session });
    session.io.out(`a new credential of ${found} is asked for\n`);
    return EXIT.ok;
  },
});
