/** What the doctor is given of other rooms: the rights of our roles, and how an endpoint is dialled. */
import { connect, type TLSSocket } from 'node:tls';
import { once } from 'node:events';
import { isIP } from 'node:net';

import type { PolicyRule } from '../../api/rbac.ts';
import { forgeCluster } from '../../deploy/cluster.ts';
import type { ExpectedRights, Facts } from '../../doctor/facts.ts';
import { readFacts } from '../../doctor/read-facts.ts';
import { parseEndpoint } from '../../lib/endpoint.ts';
import { presentedChain, verifyChain } from '../../peering/identity/verify.ts';
import { VERSION } from '../../version.ts';
import type { Session } from '../peering/environment.ts';

export async function gatherFacts({ client, clock, signal }: Session): Promise<Facts> {
  return readFacts({
    client,
    clock,
    signal,
    url: 'the API server',
    software: VERSION,
    expectedRights: expectedRights(),
    dial: async (endpoint, deadline) => whoAnswers(endpoint, deadline, clock.now()),
  });
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

/**
 * The ClusterID that is proved at an endpoint. In TLS 1.3 the server proves itself before it knows the client, so that nobody needs an
 * identity to ask.
 */
async function whoAnswers(endpoint: string, signal: AbortSignal, nowMs: number): Promise<string> {
  const { host, port } = parseEndpoint(endpoint);
  const socket: TLSSocket = connect({
    host,
    port,
    ca: [],
    rejectUnauthorized: false,
    minVersion: 'TLSv1.3',
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host) === 0 && { servername: host }),
  });
  try {
    await once(socket, 'secureConnect', { signal });
    return verifyChain(presentedChain(socket), nowMs).clusterID;
  } catch (error) {
    // The reason is more than "aborted".
    if (signal.aborted) throw signal.reason;
    throw error;
  } finally {
    // The server closes the connection when it sees that nobody proves an identity.
    socket.on('error', () => undefined);
    socket.destroy();
  }
}
