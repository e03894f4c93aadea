import { API_SERVER_NAME } from '../api/api-servers.ts';
import type { HomeReachReason } from '../api/tunnel.ts';
import type { HomeApiServer } from '../api/virtual-node.ts';
import type { NetworkView } from './network-view.ts';

/** Where programs over there find the home API server. */
export interface HomeApiServerPlace extends HomeApiServer {
  /** What the names of the Service default/kubernetes stand for over there; absent where `host` is reached as it is. */
  alias?: string;
}

/**
 * None: pods over there cannot reach it, and get no token for it. Unknown: it will be known soon, and a pod that needs it
 * waits, since its environment cannot be changed later.
 */
export type HomeApiServerWay =
  | ({ kind: 'At' } & HomeApiServerPlace)
  | { kind: 'None' | 'Unknown'; reason: HomeReachReason; message: string };

/** Names by which in-cluster clients know the API server; the last one with the domain that nearly all clusters have. */
export const SERVICE_NAMES: readonly string[] = [
  API_SERVER_NAME,
  'kubernetes.default',
  `${API_SERVER_NAME}.cluster.local`,
];

/** What people name in the VirtualNode comes first, then the way through the tunnel. */
export function homeApiServerWay(
  named: HomeApiServer | undefined,
  { homeApiServer }: Pick<NetworkView, 'homeApiServer'>,
): HomeApiServerWay {
  if (named !== undefined) return { kind: 'At', ...named };
  if (homeApiServer.kind !== 'At') return homeApiServer;
  const { address, port } = homeApiServer;
  return { kind: 'At', host: API_SERVER_NAME, port, alias: address };
}
