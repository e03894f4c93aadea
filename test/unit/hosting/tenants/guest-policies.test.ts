import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  type GuestNetworkPolicy,
  guestNetworkPolicies,
  type GuestNetworkPolicySpec,
} from '../../../../src/api/guest-network-policy.ts';
import type { NetworkPolicy } from '../../../../src/api/network-policy.ts';
import { ownNetworkData } from '../../../../src/api/own-network.ts';
import { configMaps, namespaces, networkPolicies } from '../../../../src/api/resources.ts';
import { guestPolicyName } from '../../../../src/hosting/tenants/guest-policy.ts';
import { GuestPolicies } from '../../../../src/hosting/tenants/guest-policies.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** What becomes of the policies of a home, in its tenant `rome-shop`. */

const SYSTEM = 'tributary-system';
let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let parts: GuestPolicies;

beforeEach(() => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [guestNetworkPolicies] });
  client = server.client();
  seedTenant('rome-shop', 'rome', { 'tributary.dev/home-namespace': 'shop' });
  seedTenant('rome-stock', 'rome', { 'tributary.dev/home-namespace': 'stock' });
  // The same name at home, of another peer.
  seedTenant('oslo-stock', 'oslo', { 'tributary.dev/home-namespace': 'stock' });
  server.seed(namespaces, { metadata: { name: 'default' } });
  isolate('rome-shop');
  const common = { client, clock, log: silentLogger };
  parts = new GuestPolicies({ ...common, caches: new Caches(common), systemNamespace: SYSTEM });
  parts.start(new AbortController().signal);
});
afterEach(async () => {
  await parts.stop();
  await client.close();
  await server.stop();
});

function seedTenant(name: string, peer: string, annotations: Record<string, string>): void {
  const prefixes = { 'tributary.dev/peer-prefixes': '100.99.0.0/16' };
  server.seed(namespaces, {
    metadata: { name, labels: { 'tributary.dev/peer': peer }, annotations: { ...prefixes, ...annotations } },
  });
}
const isolate = (namespace: string): void =>
  void server.seed(networkPolicies, {
    metadata: { namespace, name: 'tributary', labels: { 'app.kubernetes.io/name': 'tributary' } },
    spec: { podSelector: {} },
  });
const ask = (spec: Partial<GuestNetworkPolicySpec>, namespace = 'rome-shop', name = 'web'): void =>
  void server.seed(guestNetworkPolicies, {
    metadata: { namespace, name, generation: 1 },
    spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ...spec },
  });
const asked = (namespace = 'rome-shop'): GuestNetworkPolicy | undefined =>
  server.storage.get('guestnetworkpolicies.tributary.dev', `${namespace}/web`) as
    GuestNetworkPolicy | undefined;
const made = (namespace = 'rome-shop', name = 'web'): NetworkPolicy | undefined =>
  server.storage.get('networkpolicies.networking.k8s.io', `${namespace}/${guestPolicyName(name)}`);
const untilInForce = async (namespace?: string): Promise<void> =>
  clock.until('it is in force', () => asked(namespace)?.status?.observedGeneration === 1);

test('of what a home says, what is allowed becomes a NetworkPolicy; the rest stays closed, and is told', async () => {
  ask({
    ingress: [
      { from: [{ pods: { podSelector: { matchLabels: { app: 'db' } } } }] },
      { from: [{ ipBlock: { cidr: '10.0.0.0/8' } }] },
      {
        from: [{ pods: { podSelector: {}, homeNamespaces: ['stock', 'kube-system'] } }],
        ports: [{ port: 'http' }],
      },
    ],
    egress: [{ to: [{ ipBlock: { cidr: '100.99.0.0/12', except: ['100.99.7.0/24'] } }] }],
  });
  await untilInForce();
  const { metadata, spec } = made() ?? {};
  expect(metadata).toMatchObject({ name: 'tributary-guest-web', ownerReferences: [{ name: 'web' }] });
  expect(spec).toEqual({
    podSelector: {},
    policyTypes: ['Egress', 'Ingress'],
    ingress: [
      { from: [{ podSelector: { matchLabels: { app: 'db' } } }] },
      {
        from: [
          {
            namespaceSelector: {
              matchLabels: { 'tributary.dev/peer': 'rome' },
              matchExpressions: [
                { key: 'kubernetes.io/metadata.name', operator: 'In', values: ['rome-stock'] },
              ],
            },
            podSelector: {},
          },
        ],
        ports: [{ port: 'http' }],
      },
    ],
    // What is no prefix opens nothing.
    egress: [],
  });
  expect(asked()?.status?.closed).toEqual([
    'ingress rule 2: 10.0.0.0/8 is closed to pods of peers',
    'egress rule 1: 100.99.0.0/12 is closed to pods of peers',
  ]);
});

test('what is allowed changes with the addresses of this cluster, and the policy with it', async () => {
  ask({ egress: [{ to: [{ ipBlock: { cidr: '10.9.0.0/16' } }, { ipBlock: { cidr: '100.99.0.0/16' } }] }] });
  await untilInForce();
  const home = { ipBlock: { cidr: '100.99.0.0/16' } };
  expect(made()?.spec?.egress).toEqual([{ to: [home] }]);
  server.seed(configMaps, {
    metadata: { namespace: SYSTEM, name: 'tributary-network' },
    data: ownNetworkData({
      pods: ['10.1.0.0/16'],
      external: '10.9.7.0/24',
      gatewayAddress: '10.9.7.1',
      pools: [],
      nodes: [],
      vxlan: { vni: 1, port: 1 },
    }),
  });
  await clock.until('the outside is open but for us', () => made()?.spec?.egress?.[0]?.to?.length === 2);
  expect(made()?.spec?.egress).toEqual([
    { to: [{ ipBlock: { cidr: '10.9.0.0/16', except: ['10.9.7.0/24'] } }, home] },
  ]);
});

test('a rule of which nothing is allowed goes; one that names nobody lets in whom the isolation lets in', async () => {
  ask({
    ingress: [{ from: [{ ipBlock: { cidr: '8.8.8.8/32' } }] }, { ports: [{ port: 80 }] }],
    policyTypes: ['Ingress'],
  });
  await untilInForce();
  expect(made()?.spec?.ingress).toEqual([
    {
      from: [
        { namespaceSelector: { matchLabels: { 'tributary.dev/peer': 'rome' } } },
        {
          namespaceSelector: { matchExpressions: [{ key: 'tributary.dev/peer', operator: 'DoesNotExist' }] },
        },
        { ipBlock: { cidr: '100.99.0.0/16' } },
      ],
      ports: [{ port: 80 }],
    },
  ]);
  expect(made()?.spec?.egress).toEqual([]);
});

test('where guests are not kept apart, all that the home says holds', async () => {
  ask({ egress: [{ to: [{ ipBlock: { cidr: '10.9.0.0/16' } }] }, {}] }, 'rome-stock');
  await untilInForce('rome-stock');
  expect(made('rome-stock')?.spec?.egress).toEqual([{ to: [{ ipBlock: { cidr: '10.9.0.0/16' } }] }, {}]);
  expect(asked('rome-stock')?.status?.closed).toBeUndefined();
});

test('one that somebody has widened is put right; one outside of tenants means nothing', async () => {
  ask({}, 'default');
  ask({});
  await untilInForce();
  const body = { spec: { ingress: [{}] } };
  const ref = { namespace: 'rome-shop', name: guestPolicyName('web') };
  await client.patch(networkPolicies, ref, { type: 'merge', body });
  await clock.until('it is as it was', () => made()?.spec?.ingress?.length === 0);
  expect(made('default')).toBeUndefined();
  expect(asked('default')?.status).toBeUndefined();
});

test('names that are too long for ours and for labels are shortened, each to its own', async () => {
  const name = 'n'.repeat(253);
  ask({}, 'rome-shop', name);
  await clock.until('it is made', () => made('rome-shop', name) !== undefined);
  expect(guestPolicyName(name).length).toBeLessThan(254);
  expect(guestPolicyName(`m${name.slice(1)}`)).not.toBe(guestPolicyName(name));
});

test('few words that become many addresses, and many ranges, come to an end', async () => {
  const nodes = Array.from({ length: 600 }, (_, index) => ({
    name: `n${index}`,
    address: `172.30.${index >> 7}.${(index % 128) * 2}`,
    external: '10.9.0.2',
    pods: [],
  }));
  server.seed(configMaps, {
    metadata: { namespace: SYSTEM, name: 'tributary-network' },
    data: ownNetworkData({
      pods: [],
      external: '10.9.7.0/24',
      gatewayAddress: '10.9.7.1',
      pools: [],
      nodes,
      vxlan: { vni: 1, port: 1 },
    }),
  });
  ask({
    ingress: Array.from({ length: 64 }, () => ({ from: [{ cluster: true }] })),
    policyTypes: ['Ingress'],
  });
  await clock.until('it is made with our nodes', () => (made()?.spec?.ingress?.[0]?.from?.length ?? 0) > 500);
  expect(JSON.stringify(made()?.spec).length).toBeLessThan(257 * 1024);
  expect(asked()?.status?.closed).toHaveLength(16);
  expect(asked()?.status?.closed?.[0]).toMatch(/with it the policy has more than 262144 bytes$/u);
  const many = Array.from({ length: 1024 }, (_, index) => `8.${index >> 8}.${index % 256}.0/24`);
  const ranges = many.map((cidr) => ({ ipBlock: { cidr, except: Array.from({ length: 256 }, () => cidr) } }));
  ask({ egress: [{ to: ranges }], policyTypes: ['Egress'] }, 'rome-shop', 'many');
  await clock.until('it is made', () => made('rome-shop', 'many') !== undefined);
  const { status } = server.storage.get(
    'guestnetworkpolicies.tributary.dev',
    'rome-shop/many',
  ) as unknown as GuestNetworkPolicy;
  expect(status?.closed?.at(-1)).toBeDefined();
});

test('what no NetworkPolicy can have is told, and the policy is not said to be in force', async () => {
  server.fault({ match: ({ path }) => path.includes(guestPolicyName('web')), status: 422, times: Infinity });
  ask({ ingress: [{ ports: [{ port: 'no such port' }] }] });
  await clock.until('it is told', () => asked()?.status?.closed !== undefined);
  expect(asked()?.status?.observedGeneration).toBeUndefined();
  expect(asked()?.status?.closed?.[0]).toMatch(/^all: /u);
});

test('two names never become one', () => {
  const long = 'n'.repeat(253);
  const [, digest = ''] = guestPolicyName(long).split('.');
  expect(digest).toMatch(/^[0-9a-f]{32}$/u);
  expect(guestPolicyName(digest)).not.toBe(guestPolicyName(long));
});

test('nothing is in force while the isolation is that of an earlier version, which is open to all', async () => {
  const key = 'rome-shop/tributary';
  const plural = 'networkpolicies.networking.k8s.io';
  const isolation = server.storage.get(plural, key);
  const of = (spec: object): void => void server.storage.update(plural, { ...isolation, spec } as never);
  of({ podSelector: {}, ingress: [{}] });
  ask({});
  await clock.until('it is told', () => asked()?.status?.closed !== undefined);
  expect(asked()?.status?.observedGeneration).toBeUndefined();
  of({ podSelector: {} });
  await untilInForce();
  expect(asked()?.status?.closed).toBeUndefined();
});
