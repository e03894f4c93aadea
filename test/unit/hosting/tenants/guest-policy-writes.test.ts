import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  type GuestNetworkPolicy,
  guestNetworkPolicies,
  type GuestNetworkPolicySpec,
} from '../../../../src/api/guest-network-policy.ts';
import type { NetworkPolicy } from '../../../../src/api/network-policy.ts';
import type { OwnNetwork } from '../../../../src/api/own-network.ts';
import { ownNetworkData } from '../../../../src/api/own-network.ts';
import { configMaps, namespaces, networkPolicies } from '../../../../src/api/resources.ts';
import { CLOSED_WITHIN_MS, GuestPolicies } from '../../../../src/hosting/tenants/guest-policies.ts';
import { forgeGuestPolicy } from '../../../../src/hosting/tenants/guest-policy.ts';
import { guestBounds, ownRangesOf } from '../../../../src/hosting/tenants/isolation.ts';
import type { ByteRate } from '../../../../src/hosting/peer-writes.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** How much is written for few words of a home. */

const SYSTEM = 'tributary-system';
const POLICIES = 'networkpolicies.networking.k8s.io';
const ASKED = 'guestnetworkpolicies.tributary.dev';
const MIB = 1024 * 1024;
/** Of both, a tenth and less of what holds. */
const RATE = { burstMiB: 3, mibPerMinute: 0.4 } as const;
const COUNT = 30;

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let parts: GuestPolicies;

beforeEach(() => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [guestNetworkPolicies] });
  client = server.client();
  server.seed(namespaces, {
    metadata: {
      name: 'rome-shop',
      labels: { 'tributary.dev/peer': 'rome' },
      annotations: { 'tributary.dev/peer-prefixes': '100.99.0.0/16', 'tributary.dev/home-namespace': 'shop' },
    },
  });
  server.seed(networkPolicies, {
    metadata: {
      namespace: 'rome-shop',
      name: 'tributary',
      labels: { 'app.kubernetes.io/name': 'tributary' },
    },
    spec: { podSelector: {} },
  });
  server.seed(configMaps, {
    metadata: { namespace: SYSTEM, name: 'tributary-network' },
    data: ownNetworkData(OWN),
  });
});
afterEach(async () => {
  await parts.stop();
  await client.close();
  await server.stop();
});

/** Nodes that cannot be put together into wider ranges. */
const OWN: OwnNetwork = {
  pods: ['10.1.0.0/16'],
  external: '10.9.7.0/24',
  gatewayAddress: '10.9.7.1',
  pools: [],
  nodes: Array.from({ length: 250 }, (_, at) => ({
    name: `n${at}`,
    address: `172.30.${at >> 7}.${(at % 128) * 2}`,
    external: '10.9.0.2',
    pods: [],
  })),
  vxlan: { vni: 1, port: 1 },
};

function start(more: { rate?: ByteRate; mostBytes?: number }): void {
  const common = { client, clock, log: silentLogger };
  parts = new GuestPolicies({ ...common, ...more, caches: new Caches(common), systemNamespace: SYSTEM });
  parts.start(new AbortController().signal);
}
/** A few words that become our nodes, and all that is not ours. */
const SPEC: GuestNetworkPolicySpec = {
  podSelector: {},
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{}],
  egress: [{}],
};
const ask = (name: string): void =>
  void server.seed(guestNetworkPolicies, {
    metadata: { namespace: 'rome-shop', name, generation: 1 },
    spec: SPEC,
  });
const made = (): NetworkPolicy[] =>
  ([...server.storage.list(POLICIES)] as unknown as NetworkPolicy[]).filter(({ metadata }) =>
    metadata.name.startsWith('tributary-guest'),
  );
const statuses = (): GuestNetworkPolicy['status'][] =>
  ([...server.storage.list(ASKED)] as unknown as GuestNetworkPolicy[]).map(({ status }) => status);
const opened = (prefix: string): number =>
  made().filter((policy) => JSON.stringify(policy).includes(prefix)).length;
const setPrefix = (prefix: string): void => {
  const tenant = server.storage.get('namespaces', 'rome-shop');
  if (tenant === undefined) throw new Error('no tenant');
  const annotations = { ...tenant.metadata.annotations, 'tributary.dev/peer-prefixes': prefix };
  server.storage.update('namespaces', { ...tenant, metadata: { ...tenant.metadata, annotations } });
};
const stored = (): number => server.log.filter((line) => /^PATCH .*networkpolicies/u.test(line)).length;

test('a home whose addresses change without end has its policies made anew as a budget of bytes allows; none stays open to what it has no more', async () => {
  for (let at = 0; at < COUNT; at++) ask(`web-${at}`);
  const began = clock.now();
  start({ rate: RATE });
  await clock.until('all are there', () => opened('100.99.0.0/16') === COUNT);
  const size = JSON.stringify(made()[0]).length;
  for (let time = 0; time < 12; time++) {
    setPrefix(`100.${time + 10}.0.0/16`);
    await clock.advance(1_000);
  }
  const most = (): number =>
    (RATE.burstMiB + ((clock.now() - began) / 60_000) * RATE.mibPerMinute) * MIB + size;
  expect(stored() * size).toBeLessThan(most());
  setPrefix('100.99.0.0/16');
  await clock.advance(CLOSED_WITHIN_MS + 1_000);
  expect(opened('100.21.0.0/16')).toBe(0);
  await clock.until('all are as they should be', () => opened('100.99.0.0/16') === COUNT, 10 * 60_000);
  expect(stored() * size).toBeLessThan(most());
});

test('for which there is no room is not made, stays closed, and that is told', async () => {
  ask('web-0');
  start({ mostBytes: 40_000 });
  await clock.until('it is made', () => made().length === 1);
  for (let at = 1; at < 5; at++) {
    ask(`web-${at}`);
    await clock.advance(1_000);
  }
  const fitting = made().length;
  expect(fitting).toBeLessThan(5);
  const closed = statuses().filter((status) => status?.observedGeneration === undefined);
  expect(closed).toHaveLength(5 - fitting);
  expect(closed[0]?.closed).toEqual(['all: the policies of peer rome would have more than 40000 bytes here']);
  server.storage.remove(ASKED, 'rome-shop/web-0');
  server.storage.remove(POLICIES, 'rome-shop/tributary-guest-web-0');
  await clock.until('another has its place', () => made().length === fitting, 10 * 60_000);
});

test('exceptions of ours count among what is compared, as those of the home do', async () => {
  start({});
  const ranges = Array.from({ length: 1024 }, (_, at) => ({
    ipBlock: { cidr: `8.${at >> 8}.${at % 256}.0/24` },
  }));
  const bounds = guestBounds({ peer: 'rome', prefixes: ['100.99.0.0/16'], own: ownRangesOf(OWN) });
  const forge = (rules: number): string[] =>
    forgeGuestPolicy(
      {
        metadata: { name: 'web', namespace: 'rome-shop', uid: 'u' },
        spec: { ...SPEC, egress: Array.from({ length: rules }, () => ({ to: ranges })) },
      } as unknown as GuestNetworkPolicy,
      { peer: 'rome', bounds, tenantOf: () => undefined },
    ).closed;
  expect(forge(1)).toEqual([]);
  expect(forge(3)[0]).toBe('egress rule 2: the policy names too many ranges');
});
