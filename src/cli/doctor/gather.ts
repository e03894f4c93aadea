/** What the doctor is given of other rooms: the rights of our roles, and how an endpoint is dialled. */
import { INSTALLATION_REF } from '../../api/installation-record.ts';
import type { PolicyRule } from '../../api/rbac.ts';
import { forgeCluster } from '../../deploy/cluster.ts';
import { type ExpectedRights, type Facts, itemsOf } from '../../doctor/facts.ts';
import { readFacts } from '../../doctor/read-facts.ts';
import { processEnvironment } from '../../config.ts';
import type { Clock } from '../../lib/clock.ts';
import { present } from '../../lib/fields.ts';
import { proxySettings } from '../../lib/proxy.ts';
import { Dialer } from '../../peering/link/dialer.ts';
import { VERSION } from '../../version.ts';
import { recordedIn } from '../install/recorded.ts';
import type { Session } from '../peering/environment.ts';

export async function gatherFacts({ client, clock, signal }: Session): Promise<Facts> {
  const facts = await readFacts({
    client,
    clock,
    signal,
    url: 'the API server',
    software: VERSION,
    expectedRights: expectedRights(),
    dial: async (endpoint, deadline) => whoAnswers(endpoint, deadline, clock),
  });
  const { name } = INSTALLATION_REF;
  const map = itemsOf(facts.lists.configMaps).find(({ metadata }) => metadata.name === name);
  return { ...facts, ...present({ installation: recordedIn(map) }) };
}

interface RoleManifest {
  kind: string;
  metadata: { name?: string; namespace?: string };
  rules?: PolicyRule[];
}

/** Of the role `cluster`, which every cluster has. Its image and options make no difference to its rights. */
function expectedRights(): ExpectedRights[] {
  return (forgeCluster({ image: 'none' }) as RoleManifest[]).flatMap(({ kind, metadata, rules }) => {
    const { name, namespace } = metadata;
    if ((kind !== 'ClusterRole' && kind !== 'Role') || name === undefined || rules === undefined) return [];
    return [{ kind, name, rules, ...(namespace !== undefined && { namespace }) }];
  });
}

/** The ClusterID that is proved at an endpoint. Nobody needs an identity to ask. */
async function whoAnswers(endpoint: string, signal: AbortSignal, clock: Clock): Promise<string> {
  try {
    const { socket, peer } = await new Dialer({
      clock,
      ...present({ proxies: proxySettings(processEnvironment()) }),
    }).secure(endpoint, signal);
    socket.destroy();
    return peer.clusterID;
  } catch (error) {
    // The reason is more than "aborted".
    if (signal.aborted) throw signal.reason;
    throw error;
  }
}
