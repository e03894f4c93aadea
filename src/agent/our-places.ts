import { API_SERVERS, apiServersOf } from '../api/api-servers.ts';
import { endpointSlices, nodes, services } from '../api/resources.ts';
import { slimNode } from '../api/slim-node.ts';
import type { Service } from '../api/wire.ts';
import { processEnvironment } from '../config.ts';
import type { Caches } from '../kube/caches.ts';
import type { ClusterBasics } from '../kube/client.ts';
import type { Credentials } from '../kube/credentials.ts';
import { joinEndpoint } from '../lib/endpoint.ts';
import { ignoring } from '../lib/errors.ts';
import { present } from '../lib/fields.ts';
import type { Component } from '../lib/lifecycle.ts';
import { persistently } from '../lib/persistence.ts';
import type { OurPlaces } from '../peering/borrowing/our-places.ts';

export interface OurPlacesParts {
  components: readonly Component[];
  /** As they are now. */
  read: () => OurPlaces;
}

interface OurPlacesOptions extends ClusterBasics {
  caches: Caches;
  /** How we reach our own API server. */
  credentials: Pick<Credentials, 'server' | 'ca'>;
  env?: Readonly<Record<string, string | undefined>>;
}

/** Where no provider may lead our agents: our nodes, and our API server by every address that is known of it. */
export function ourPlaces(options: OurPlacesOptions): OurPlacesParts {
  const { caches, credentials, env = processEnvironment() } = options;
  const { server, ca } = credentials;
  const ourNodes = caches.of(nodes, { transform: slimNode });
  const { namespace, name } = API_SERVERS;
  const slices = caches.of(endpointSlices, {
    list: { namespace, fieldSelector: `metadata.name=${name}` },
    name: 'cache of API servers',
  });
  let clusterIPs: readonly string[] = [];
  const service: Component = {
    name: 'addresses of the Service of API servers',
    start: async (signal) => {
      clusterIPs = await serviceAddresses(options, signal);
    },
  };
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = env;
  const reached = [server.host, ...(host === '' ? [] : [joinEndpoint(host, Number(port))])];
  const read = (): OurPlaces => {
    const slice = slices.get(`${namespace}/${name}`);
    const listening = apiServersOf(slice, 443);
    // Also of those that are not ready now.
    const behind = (slice?.endpoints ?? []).flatMap(({ addresses }) => addresses);
    const addresses = [...ourNodes.list()].flatMap(({ status }) => status?.addresses ?? []);
    return {
      hosts: [...clusterIPs, ...behind, ...addresses.map(({ address }) => address)],
      apiServers: [...reached, ...listening.map(({ address, port: at }) => joinEndpoint(address, at))],
      ...present({ ca }),
    };
  };
  return { components: [ourNodes, slices, service], read };
}

/**
 * Read once, since a Service keeps them as long as it is there; a watch of it would never have anything to tell. A right that is
 * missing is waited for, too.
 */
async function serviceAddresses(
  { client, clock, log }: ClusterBasics,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const complaint = 'the Service of our own API server cannot be read';
  const read = async (): Promise<Service | undefined> =>
    client.get(services, API_SERVERS, { signal }).catch(ignoring('NotFound'));
  const service = await persistently(read, { clock, log, complaint, final: [] }, signal);
  const { clusterIP, clusterIPs = [] } = service?.spec ?? {};
  return [...(clusterIP === undefined ? [] : [clusterIP]), ...clusterIPs];
}
