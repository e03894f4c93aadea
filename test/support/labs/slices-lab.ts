/**
 * Thousands of endpoints between two real API servers: copied by the product as a process, and by the simplest
 * possible loop.
 */
import { endpointSlices, namespaces, services } from '../../../src/api/resources.ts';
import type { Endpoint, EndpointSlice } from '../../../src/api/wire.ts';
import { tenantCommand } from '../../../src/cli/tenant.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { eventually } from '../eventually.ts';
import { applyYaml, printed } from './rights-cluster.ts';
import { joinNetworks, HOME_ID, PROVIDER_ID, ServicesLab, SLICE } from './services-lab.ts';

/** In each slice. */
export const ENDPOINTS = 100;
const SERVICE = 'many';
/** The tenant of the simplest loop, with the same rights and policies as the agent's. */
const IDLE = 'idle';
const WAIT_MS = 120_000;

const nameOf = (index: number): string => `many-${index}`;
const address = (prefix: string, index: number, at: number): string => `${prefix}.${index}.${at + 1}`;

const endpoints = (prefix: string, index: number, firstReady = true): Endpoint[] =>
  Array.from({ length: ENDPOINTS }, (_, at) => ({
    addresses: [address(prefix, index, at)],
    conditions: { ready: at > 0 || firstReady, serving: true, terminating: false },
  }));

const sliceAtHome = (index: number): EndpointSlice =>
  ({
    ...SLICE,
    metadata: {
      namespace: 'shop',
      name: nameOf(index),
      labels: {
        'kubernetes.io/service-name': SERVICE,
        'endpointslice.kubernetes.io/managed-by': 'a-person',
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: endpoints('10.1', index),
  }) as unknown as EndpointSlice;

/** By name: the version of what is in a tenant namespace. */
type Versions = ReadonlyMap<string, string>;

export class SlicesLab {
  readonly world: ServicesLab;
  /** The number of endpoints at home. */
  readonly slices: number;
  readonly #there: Informer<EndpointSlice>;

  private constructor(world: ServicesLab, slices: number) {
    this.world = world;
    this.slices = slices;
    this.#there = new Informer<EndpointSlice>({
      client: world.lab.foreign,
      type: endpointSlices,
      list: { labelSelector: 'tributary.dev/managed-by' },
      clock: systemClock,
      log: silentLogger,
    });
  }

  static async up(slices: number): Promise<SlicesLab> {
    const lab = new SlicesLab(await ServicesLab.up(), slices);
    try {
      await lab.#furnish();
    } catch (error) {
      await lab.down();
      throw error;
    }
    return lab;
  }

  async #furnish(): Promise<void> {
    const { lab, peer } = this.world;
    const quota = ['--quota', 'cpu=100,memory=100Gi,pods=60'];
    const tenants = ['--peer', HOME_ID, '--namespace', `tenant,${IDLE}`];
    await applyYaml(lab.foreignCluster, await printed(tenantCommand, [...tenants, ...quota]));
    for (const name of ['tenant', IDLE]) {
      const body = { metadata: { labels: { 'tributary.dev/tenancy': 'contract' } } };
      await lab.foreign.patch(namespaces, { name }, { type: 'merge', body });
    }
    await joinNetworks(lab);
    await this.#there.start(new AbortController().signal);
    await Promise.all(
      Array.from({ length: this.slices }, async (_, index) =>
        lab.home.create(endpointSlices, sliceAtHome(index)),
      ),
    );
    // The policy at the provider learns the prefixes a moment after the tunnel.
    await eventually(
      'slices may be written',
      async () => {
        try {
          await peer.create(endpointSlices, asReflected(sliceAtHome(0)));
        } catch {
          return false;
        }
        await this.#clear();
        return true;
      },
      WAIT_MS,
    );
  }

  async down(): Promise<void> {
    await this.#there.stop();
    await this.world.down();
  }

  /**
   * Milliseconds from the creation of a Service at home, whose endpoints exist, until all of it is in the foreign
   * cluster.
   */
  async reflect(): Promise<number> {
    const { home } = this.world.lab;
    const began = performance.now();
    await home.create(services, {
      metadata: { namespace: 'shop', name: SERVICE },
      spec: { ports: [{ name: 'http', port: 80 }] },
    });
    await this.#has('tenant', this.slices);
    return performance.now() - began;
  }

  async withdraw(): Promise<void> {
    await this.world.lab.home.delete(services, { namespace: 'shop', name: SERVICE });
    await this.#has('tenant', 0);
  }

  /** Milliseconds of one list here and one create for each object there, all in parallel: the least that is necessary. */
  async nullMirror(): Promise<number> {
    const { lab, peer } = this.world;
    const began = performance.now();
    const { items } = await lab.home.list(endpointSlices, { namespace: 'shop' });
    const ours = items.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === SERVICE);
    await Promise.all(ours.map(async (slice) => peer.create(endpointSlices, asReflected(slice))));
    await this.#has(IDLE, this.slices);
    const took = performance.now() - began;
    await this.#clear();
    return took;
  }

  /** Changes whether the first endpoint of a slice is ready, and waits until that has arrived. */
  async flap(index: number, ready: boolean): Promise<void> {
    const body = { endpoints: endpoints('10.1', index, ready) };
    const ref = { namespace: 'shop', name: nameOf(index) };
    await this.world.lab.home.patch(endpointSlices, ref, { type: 'merge', body });
    const isThere = (): boolean =>
      this.#there.get(`tenant/tributary-${nameOf(index)}`)?.endpoints?.[0]?.conditions?.ready === ready;
    await eventually('the change', isThere, WAIT_MS);
  }

  get versions(): Versions {
    return new Map(
      this.#in('tenant').map(({ metadata }) => [metadata.name, metadata.resourceVersion] as const),
    );
  }

  /** Endpoints in the foreign cluster. */
  get addresses(): number {
    return this.#in('tenant').reduce((sum, slice) => sum + (slice.endpoints ?? []).length, 0);
  }

  #in(namespace: string): EndpointSlice[] {
    return [...this.#there.list()].filter(({ metadata }) => metadata.namespace === namespace);
  }

  async #has(namespace: string, count: number): Promise<void> {
    await eventually(`${count} slices in ${namespace}`, () => this.#in(namespace).length === count, WAIT_MS);
  }

  async #clear(): Promise<void> {
    await clear(this.world.peer, IDLE);
    await this.#has(IDLE, 0);
  }
}

/** As the agent makes it, built only from text. */
function asReflected({ metadata, addressType, ports, endpoints: list }: EndpointSlice): EndpointSlice {
  return {
    ...SLICE,
    metadata: {
      namespace: IDLE,
      name: `tributary-${metadata.name}`,
      labels: {
        'kubernetes.io/service-name': SERVICE,
        'endpointslice.kubernetes.io/managed-by': 'tributary.dev',
        'tributary.dev/managed-by': PROVIDER_ID,
      },
      annotations: { 'tributary.dev/home-namespace': 'shop' },
    },
    addressType,
    ports: ports ?? [],
    endpoints: (list ?? []).map((endpoint) => ({
      ...endpoint,
      addresses: endpoint.addresses.map((one) => one.replace('10.1.', '100.99.')),
    })),
  } as unknown as EndpointSlice;
}

async function clear(client: KubeClient, namespace: string): Promise<void> {
  const { items } = await client.list(endpointSlices, { namespace });
  await Promise.all(
    items.map(async ({ metadata: { name } }) =>
      client.delete(endpointSlices, { namespace, name }).catch(ignoring('NotFound')),
    ),
  );
}
