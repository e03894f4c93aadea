import type { HomeApiAddress } from './tunnel.ts';
import type { EndpointSlice } from './wire.ts';

/** The EndpointSlice of the Service `kubernetes`, which the API servers keep themselves. */
export const API_SERVERS = { namespace: 'default', name: 'kubernetes' } as const;

/** In the serving certificate of every API server (kubeadm, k3s, and the managed ones), under whichever address it is reached. */
export const API_SERVER_NAME = 'kubernetes.default.svc';

/** Where the API servers listen that are ready, in order of their addresses. None without a port, unless one is given for that. */
export function apiServersOf(slice: EndpointSlice | undefined, defaultPort?: number): HomeApiAddress[] {
  const port = slice?.ports?.find(({ name }) => name === 'https')?.port ?? defaultPort;
  if (port === undefined) return [];
  return (slice?.endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false)
    .flatMap(({ addresses }) => addresses)
    .toSorted()
    .map((address) => ({ address, port }));
}
