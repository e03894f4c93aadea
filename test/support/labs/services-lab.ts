/** Home, its provider and the account of home at the provider; the test plays the tunnel between them. */
import { endpointSlices, namespaces, services, type ResourceType } from '../../../src/api/resources.ts';
import { tunnels, type PeerView, type TunnelSpec } from '../../../src/api/tunnel.ts';
import type { Endpoint, EndpointSlice, KubeObject, Service } from '../../../src/api/wire.ts';
import { Caches } from '../../../src/kube/caches.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { errorMessage, hasCode, ignoring } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { NativeEndpoints } from '../../../src/hosting/tenants/native-endpoints.ts';
import { TenantNetwork } from '../../../src/hosting/tenants/tenant-network.ts';
import { AgentLab } from './agent-lab.ts';
import { eventually } from '../eventually.ts';

export const HOME_ID: string = 'a'.repeat(26);
export const PROVIDER_ID: string = 'b'.repeat(26);
/** Pods of home, in addresses of the provider. */
export const HOME_SEEN_AS = '100.99.0.0/16';

export const SLICE = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' };

export class ServicesLab {
  readonly lab: AgentLab;
  /** Under the account of home. */
  readonly peer: HttpClient;
  readonly #parts: readonly (TenantNetwork | NativeEndpoints)[];

  private constructor(lab: AgentLab, peer: HttpClient) {
    this.lab = lab;
    this.peer = peer;
    const common = { client: lab.foreign, clock: systemClock, log: silentLogger };
    const parts = { ...common, caches: new Caches(common) };
    this.#parts = [new TenantNetwork(parts), new NativeEndpoints(parts)];
  }

  static async up(): Promise<ServicesLab> {
    const lab = await AgentLab.up({ peer: HOME_ID, provider: PROVIDER_ID });
    const peer = createClient(await parseKubeconfig(lab.kubeconfig));
    const all = new ServicesLab(lab, peer);
    try {
      await all.#furnish();
    } catch (error) {
      await all.down();
      throw error;
    }
    return all;
  }

  async #furnish(): Promise<void> {
    const { lab } = this;
    const body = { metadata: { labels: { 'tributary.dev/tenancy': 'contract' } } };
    await lab.foreign.patch(namespaces, { name: 'tenant' }, { type: 'merge', body });
    for (const part of this.#parts) part.start(new AbortController().signal);
    await lab.start();
    await lab.ready();
  }

  async down(): Promise<void> {
    for (const part of this.#parts) await part.stop();
    await this.peer.close();
    await this.lab.down();
  }

  async slice(name: string): Promise<EndpointSlice | undefined> {
    const ref = { namespace: 'tenant', name: `tributary-${name}` };
    return orNone(this.lab.foreign.get(endpointSlices, ref));
  }

  /** Of all slices of a Service. */
  async addresses(side: 'home' | 'foreign', service: string): Promise<string[]> {
    const labelSelector = `kubernetes.io/service-name=${service}`;
    const namespace = side === 'home' ? 'shop' : 'tenant';
    const { items } = await this.lab[side].list(endpointSlices, { namespace, labelSelector });
    return items
      .flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses))
      .toSorted();
  }

  async service(name: string): Promise<Service | undefined> {
    return orNone(this.lab.foreign.get(services, { namespace: 'tenant', name }));
  }

  /** `address`, with a `!` where it is not ready. */
  async shows(name: string, wanted: string): Promise<void> {
    let last = '';
    const isShown = async (): Promise<boolean> => {
      const endpoints = (await this.slice(name))?.endpoints ?? [];
      last = endpoints
        .map(({ addresses, conditions }) => `${addresses[0]}${conditions?.ready === false ? '!' : ''}`)
        .join(' ');
      return last === wanted;
    };
    try {
      await eventually(`slice ${name}`, isShown);
    } catch (error) {
      throw new Error(`${(error as Error).message}: "${last}" instead of "${wanted}"`, { cause: error });
    }
  }

  /** What the API server says to the peer, or "made". */
  async tries(object: object): Promise<string> {
    const { kind } = object as { kind: string };
    const type = (kind === 'Service' ? services : endpointSlices) as ResourceType<KubeObject>;
    try {
      const made = await this.peer.create(type, object as KubeObject);
      // The agent may delete it first, because home has no such object.
      await this.peer
        .delete(type, { namespace: 'tenant', name: made.metadata.name })
        .catch(ignoring('NotFound'));
      return 'made';
    } catch (error) {
      return errorMessage(error);
    }
  }
}

export const endpoint = (address: string, parts: Partial<Endpoint> = {}): Endpoint => ({
  addresses: [address],
  conditions: { ready: true, serving: true, terminating: false },
  ...parts,
});

const NOW = (): string => new Date(systemClock.now()).toISOString().replace(/\.\d+Z$/u, 'Z');

async function addTunnel(
  client: KubeClient,
  { id, views, seenAs }: { id: string; views: PeerView[]; seenAs: TunnelSpec['seenAs'] },
): Promise<void> {
  const keys = { apiVersion: 'tributary.dev/v1alpha1', kind: 'Tunnel' };
  const told = {
    publicKey: `${'A'.repeat(43)}=`,
    endpoints: [],
    pods: ['10.0.0.0/8'],
    external: ['10.70.0.0/20'],
  };
  const spec = {
    clusterID: id,
    access: 'OffloadedPods',
    transit: 'OffloadedPods',
    peer: told,
    seenAs,
  } as TunnelSpec;
  await client.create(tunnels, { ...keys, metadata: { name: id }, spec });
  await setTunnel(client, id, { status: 'True', views });
}

/** As if a tunnel had come up: each cluster sees the other's addresses as others, and is told how its own are seen. */
export async function joinNetworks({ home, foreign }: Pick<AgentLab, 'home' | 'foreign'>): Promise<void> {
  await addTunnel(foreign, {
    id: HOME_ID,
    views: [{ use: 'Pods', prefix: '10.1.0.0/16', as: HOME_SEEN_AS }],
    seenAs: [{ prefix: '10.0.0.0/8', as: '100.0.0.0/8' }],
  });
  await addTunnel(home, {
    id: PROVIDER_ID,
    views: [{ use: 'Pods', prefix: '10.0.0.0/8', as: '101.0.0.0/8' }],
    seenAs: [{ prefix: '10.1.0.0/16', as: HOME_SEEN_AS }],
  });
}

export async function setTunnel(
  client: KubeClient,
  id: string,
  { status, views }: { status: 'True' | 'False'; views?: PeerView[] },
): Promise<void> {
  const condition = {
    type: 'Ready',
    status,
    reason: status === 'True' ? 'AsExpected' : 'NoAnswer',
    message: 'as the test says',
    lastTransitionTime: NOW(),
  };
  const body = { status: { conditions: [condition], ...(views && { views }) } };
  await client.patch(tunnels, { name: id }, { type: 'merge', body }, { subresource: 'status' });
}

export async function orNone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (hasCode(error, 'NotFound')) return undefined;
    throw error;
  }
}
export const theirSlice = (endpoints: Endpoint[], parts: object = {}): object => ({
  ...SLICE,
  metadata: {
    namespace: 'tenant',
    generateName: 'try-',
    labels: {
      'kubernetes.io/service-name': 'web',
      'endpointslice.kubernetes.io/managed-by': 'tributary.dev',
      'tributary.dev/managed-by': PROVIDER_ID,
    },
  },
  addressType: 'IPv4',
  ports: [{ name: '', port: 80, protocol: 'TCP' }],
  endpoints,
  ...parts,
});
export const theirService = (spec: object, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    namespace: 'tenant',
    generateName: 'try-',
    labels: { 'tributary.dev/managed-by': PROVIDER_ID },
    ...metadata,
  },
  spec: { ports: [{ port: 80 }], ...spec },
});
