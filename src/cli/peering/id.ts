/** `tributary id`: who this cluster is. */
import { SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import {
  ANNOUNCEMENT_CONFIG_MAP,
  type OwnAnnouncement,
  readAnnouncementData,
} from '../../api/own-announcement.ts';
import { configMaps } from '../../api/resources.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../command-line.ts';
import { formatOf, OUTPUT, printedAs } from '../output.ts';
import { hasCode, TributaryError } from '../../lib/errors.ts';
import { fingerprintOf } from '../../peering/identity/identity.ts';
import { clusterCommand, type Session } from './environment.ts';

export const idCommand: Command = clusterCommand({
  name: 'id',
  summary: 'Show who this cluster is: its ClusterID, fingerprint and endpoints.',
  options: OUTPUT,
  parse: formatOf,
  run: async (format, session) => {
    const own = await readOwn(session);
    const { clusterID, clusterName, endpoints } = own;
    const fingerprint = fingerprintOf(clusterID);
    const lines = [
      `ClusterID    ${clusterID}`,
      `Fingerprint  ${fingerprint}`,
      `Name         ${clusterName}`,
      `Endpoints    ${endpoints.length === 0 ? 'none: peers cannot dial this cluster' : endpoints.join(', ')}`,
    ];
    session.io.out(printedAs(format, { ...own, fingerprint }, () => `${lines.join('\n')}\n`));
    return EXIT.ok;
  },
});

/** Throws NotFound where the `cluster` role has not run yet. */
export async function readOwn({
  client,
  signal,
}: Pick<Session, 'client' | 'signal'>): Promise<OwnAnnouncement> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: ANNOUNCEMENT_CONFIG_MAP };
  const missing = `ConfigMap ${ref.namespace}/${ref.name} is not there: is Tributary's cluster role running? See: tributary status`;
  try {
    const own = readAnnouncementData((await client.get(configMaps, ref, { signal })).data);
    if (own === undefined)
      throw new TributaryError('Unavailable', `ConfigMap ${ref.name} does not name a ClusterID yet`);
    return own;
  } catch (error) {
    if (hasCode(error, 'NotFound')) throw new TributaryError('NotFound', missing, { cause: error });
    throw error;
  }
}
