import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acceptancePolicies, type AcceptedService } from '../../src/api/acceptance-policy.ts';
import { advertisements, type ProviderServiceStatus } from '../../src/api/advertisement.ts';
import { GATEWAY_CONFIG_MAP, gatewayFactsData } from '../../src/api/own-network.ts';
import { configMaps, endpointSlices, namespaces, services } from '../../src/api/resources.ts';
import { tunnels, type Tunnel } from '../../src/api/tunnel.ts';
import type { EndpointSlice, KubeObject, Service } from '../../src/api/wire.ts';
import { hasCode } from '../../src/lib/errors.ts';
import { translate } from '../../src/network/views.ts';
import { type City, PeeringLab, peeringLabProblem, say, until } from '../support/labs/peering-lab.ts';

/** A database of Milan that is used in Rome, as two whole processes and real API servers see it. */

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`Services of providers are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

const OPTIONS = { 'pod-cidr': '10.244.0.0/16' };
const ACCEPTED: AcceptedService[] = [
  { namespace: 'data', name: 'db', homeNamespace: 'shop' },
  { namespace: 'data', name: 'db', homeNamespace: 'shop', homeName: 'taken' },
  { namespace: 'data', name: 'db', homeNamespace: 'nowhere' },
  { namespace: 'data', name: 'db', homeNamespace: 'kube-system' },
  { namespace: 'data', name: 'missing', homeNamespace: 'shop' },
];

const found = async <T>(work: Promise<T>): Promise<T | undefined> =>
  work.catch((error: unknown) => {
    if (hasCode(error, 'NotFound')) return undefined;
    throw error;
  });

describeInLab('Services of a provider', () => {
  let lab: PeeringLab;
  let rome: City;
  let milan: City;

  const standings = async (): Promise<ProviderServiceStatus[]> =>
    (await found(rome.client.get(advertisements, { name: milan.id })))?.status?.services ?? [];
  const standing = async (home: string): Promise<ProviderServiceStatus | undefined> =>
    (await standings()).find(({ homeNamespace, homeName }) => `${homeNamespace}/${homeName}` === home);
  const homeService = async (): Promise<Service | undefined> =>
    found(rome.client.get(services, { namespace: 'shop', name: 'db' }));
  const homeSlice = async (): Promise<EndpointSlice | undefined> =>
    found(rome.client.get(endpointSlices, { namespace: 'shop', name: 'tributary-db-ipv4' }));
  const tunnelAt = async (city: City, peer: City): Promise<Tunnel | undefined> =>
    found(city.client.get(tunnels, { name: peer.id }));
  const addresses = async (): Promise<[string | undefined, boolean | undefined][]> =>
    ((await homeSlice())?.endpoints ?? []).map(({ addresses: [first], conditions }) => [
      first,
      conditions?.ready,
    ]);
  const endpoints = async (...pods: [address: string, ready: boolean][]): Promise<void> => {
    const body = {
      endpoints: pods.map(([address, ready]) => ({ addresses: [address], conditions: { ready } })),
    };
    await milan.client.patch(endpointSlices, { namespace: 'data', name: 'db-1' }, { type: 'merge', body });
  };
  const tunnelState = async (status: 'True' | 'False'): Promise<void> => {
    const condition = {
      type: 'Ready',
      status,
      reason: status === 'True' ? 'AsExpected' : 'NoAnswer',
      message: 'as the test has it',
      lastTransitionTime: new Date().toISOString(),
    };
    const patch = { type: 'merge', body: { status: { conditions: [condition] } } } as const;
    await rome.client.patch(tunnels, { name: milan.id }, patch, { subresource: 'status' });
  };
  /** A pod of Milan, as Rome sees it. */
  const seen = async (address: string): Promise<string | undefined> =>
    translate((await tunnelAt(rome, milan))?.status?.views ?? [], address);
  const accept = async (accepted: AcceptedService[]): Promise<void> => {
    const patch = { type: 'merge', body: { spec: { services: accepted } } } as const;
    await rome.client.patch(acceptancePolicies, { name: 'all' }, patch);
  };

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    const create = async (
      city: City,
      type: Parameters<City['client']['create']>[0],
      object: object,
    ): Promise<void> => {
      await city.client.create(type, object as KubeObject);
    };
    for (const [city, letter] of [
      [rome, 'r'],
      [milan, 'm'],
    ] as const) {
      await city.run(OPTIONS);
      await create(city, configMaps, {
        metadata: { name: GATEWAY_CONFIG_MAP, namespace: 'tributary-system' },
        data: gatewayFactsData({
          publicKey: Buffer.alloc(32, letter).toString('base64'),
          endpoints: [`${city.address}:51820`],
        }),
      });
    }
    await create(rome, namespaces, { metadata: { name: 'shop' } });
    await create(rome, services, {
      metadata: { namespace: 'shop', name: 'taken' },
      spec: { ports: [{ port: 80 }] },
    });
    await create(milan, namespaces, { metadata: { name: 'data' } });
    const labels = { shared: 'yes' };
    await create(milan, services, {
      metadata: { namespace: 'data', name: 'db', labels },
      spec: { selector: { app: 'db' }, ports: [{ name: 'pg', port: 5432, targetPort: 'pg' }] },
    });
    await create(milan, services, {
      metadata: { namespace: 'data', name: 'secret' },
      spec: { selector: { app: 'secret' }, ports: [{ port: 1 }] },
    });
    await create(milan, endpointSlices, {
      metadata: { namespace: 'data', name: 'db-1', labels: { 'kubernetes.io/service-name': 'db' } },
      addressType: 'IPv4',
      ports: [{ name: 'pg', protocol: 'TCP', port: 6432 }],
      endpoints: [
        { addresses: ['10.244.3.7'], conditions: { ready: true } },
        { addresses: ['172.31.0.9'], conditions: { ready: true } },
      ],
    });
    await milan.lend({ services: [{ namespace: 'data', selector: { matchLabels: labels } }] });
    await rome.borrow();
  });
  afterAll(async () => lab?.down());

  test('are listed in the Advertisement, and nothing is made of them unasked', async () => {
    const began = performance.now();
    const [listed] = await until('Rome knows what is offered', async () => {
      const all = await standings();
      return all.length > 0 ? all : undefined;
    });
    say(`listed ${((performance.now() - began) / 1000).toFixed(2)} s after the policies`);
    expect(listed).toEqual({
      namespace: 'data',
      name: 'db',
      ports: [{ name: 'pg', protocol: 'TCP', port: 5432 }],
      state: 'Offered',
    });
    expect(await homeService()).toBeUndefined();
    const places = await until(
      'the gateway of Milan is told',
      async () => (await tunnelAt(milan, rome))?.spec.offered,
    );
    expect(places).toEqual([{ address: '10.244.3.7', protocol: 'TCP', port: 6432 }]);
  });

  test('one that is accepted is a Service here, with its pods as they are seen here', async () => {
    await until('the tunnel has views', async () => seen('10.244.3.7'));
    await tunnelState('True');
    const began = performance.now();
    await accept(ACCEPTED);
    await until('there is an endpoint', async () => (await addresses())[0]?.[1]);
    say(
      `a home Service with an endpoint ${((performance.now() - began) / 1000).toFixed(2)} s after it was accepted`,
    );
    expect((await homeService())?.spec).toMatchObject({
      type: 'ClusterIP',
      clusterIP: expect.stringMatching(/^\d/),
      ports: [{ name: 'pg', protocol: 'TCP', port: 5432, targetPort: 6432 }],
    });
    expect((await homeService())?.spec?.selector).toBeUndefined();
    expect(await homeSlice()).toMatchObject({
      metadata: {
        labels: {
          'kubernetes.io/service-name': 'db',
          'endpointslice.kubernetes.io/managed-by': 'tributary.dev',
          'tributary.dev/provider': milan.id,
        },
      },
      ports: [{ name: 'pg', protocol: 'TCP', port: 6432 }],
    });
    expect(await addresses()).toEqual([[await seen('10.244.3.7'), true]]);
    await until('our pods elsewhere get there', async () => (await tunnelAt(rome, milan))?.spec.used);
    expect((await tunnelAt(rome, milan))?.spec.used).toEqual([
      { address: await seen('10.244.3.7'), protocol: 'TCP', port: 6432 },
    ]);
  });

  test('a name that is taken is left alone, and it is told where there can be none', async () => {
    await until(
      'both of the same home namespace are told',
      async () =>
        (await standing('shop/taken'))?.state === 'Failed' && (await standing('shop/db'))?.state === 'Used',
    );
    expect(
      Object.fromEntries(
        (await standings()).map((one) => [`${one.homeNamespace}/${one.homeName}`, [one.state, one.reason]]),
      ),
    ).toEqual({
      'shop/db': ['Used', undefined],
      'shop/taken': ['Failed', 'NameTaken'],
      'nowhere/db': ['Failed', 'HomeNamespaceNotFound'],
      'kube-system/db': ['Failed', 'HomeNamespaceNotAllowed'],
      'shop/missing': ['NotOffered', undefined],
    });
    const { metadata, spec } = await rome.client.get(services, { namespace: 'shop', name: 'taken' });
    expect([metadata.labels, spec?.ports?.[0]?.port]).toEqual([undefined, 80]);
    await rome.client.create(namespaces, { metadata: { name: 'nowhere' } });
    await until(
      'a namespace that comes is used',
      async () => (await standing('nowhere/db'))?.state === 'Used',
    );
  });

  test('endpoints follow their pods, and the tunnel', async () => {
    await endpoints(['10.244.3.7', false], ['10.244.3.8', true]);
    const both = [
      [await seen('10.244.3.7'), false],
      [await seen('10.244.3.8'), true],
    ];
    await until('the new pod is there', async () => (await addresses()).length === 2);
    expect(await addresses()).toEqual(both);
    await tunnelState('False');
    await until('nothing is ready', async () => (await addresses()).every(([, ready]) => ready === false));
    expect(await homeService()).toBeDefined();
    await until('it is told why', async () => (await standing('shop/db'))?.reason === 'TunnelDown');
    await tunnelState('True');
    await until('ready again', async () => (await addresses())[1]?.[1]);
    expect(await addresses()).toEqual(both);
  });

  test('both killed: the Service stays the same one', async () => {
    const before = await homeService();
    await Promise.all([rome.kill(), milan.kill()]);
    await Promise.all([rome.run(OPTIONS), milan.run(OPTIONS)]);
    await endpoints(['10.244.3.9', true]);
    const view = await seen('10.244.3.9');
    await until('the endpoints follow', async () =>
      (await addresses()).some(([address]) => address === view),
    );
    expect((await homeService())?.metadata.uid).toBe(before?.metadata.uid);
  });

  test('what is not offered any more goes, and comes back', async () => {
    const merge = (shared: string | null): { type: 'merge'; body: object } => ({
      type: 'merge',
      body: { metadata: { labels: { shared } } },
    });
    await milan.client.patch(services, { namespace: 'data', name: 'db' }, merge(null));
    await until(
      'it is gone',
      async () => (await homeService()) === undefined && (await homeSlice()) === undefined,
    );
    await until('it is told', async () => (await standing('shop/db'))?.state === 'NotOffered');
    await until('closed', async () => (await tunnelAt(milan, rome))?.spec.offered === undefined);
    await milan.client.patch(services, { namespace: 'data', name: 'db' }, merge('yes'));
    await until('it is back', async () => (await addresses())[0]?.[1]);
  });

  test('the end of the peering takes it along', async () => {
    await rome.forgetPolicies();
    await until(
      'it is gone',
      async () => (await homeService()) === undefined && (await homeSlice()) === undefined,
    );
    expect(await rome.client.get(services, { namespace: 'shop', name: 'taken' })).toBeDefined();
  });
});
