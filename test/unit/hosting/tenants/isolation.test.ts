import { expect, test } from '@jest/globals';
import type { NetworkPolicySpec } from '../../../../src/api/network-policy.ts';
import {
  forgeIsolation,
  guestBounds,
  openEgress,
  openIngress,
  ownRangesOf,
  type IsolationFacts,
} from '../../../../src/hosting/tenants/isolation.ts';
import { contains, parseAddress, parsePrefix } from '../../../../src/lib/prefix.ts';

const own = {
  inside: ['10.1.0.0/16', '10.96.0.0/12', 'fd00:1::/48'],
  nodes: ['192.168.7.4/32', '203.0.113.4/32', 'fd00:2::4/128'],
  beside: ['172.19.0.0/16', '198.51.100.9/32', '192.168.7.0/24', 'fd00:9::/64'],
};
const factsWith = (facts: Partial<IsolationFacts> = {}): IsolationFacts => ({
  peer: 'rome',
  prefixes: ['100.99.0.0/16'],
  own,
  ...facts,
});
/** What is open in both directions. */
function forge(facts: Partial<IsolationFacts> = {}): Required<Pick<NetworkPolicySpec, 'ingress' | 'egress'>> {
  const bounds = guestBounds(factsWith(facts));
  return { ingress: openIngress(bounds), egress: openEgress(bounds) };
}

/** Whether a packet to that address is let out, by the last egress rule alone. */
function isOutside(policy: ReturnType<typeof forge>, text: string): boolean {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(text);
  const { to = [] } = policy.egress.at(-1) ?? {};
  return to.some(
    ({ ipBlock }) =>
      ipBlock !== undefined &&
      contains(parsePrefix(ipBlock.cidr), address) &&
      !(ipBlock.except ?? []).some((except) => contains(parsePrefix(except), address)),
  );
}

test('one policy closes all pods both ways, and comes last; the others open, to pods of which their home says nothing', () => {
  const all = forgeIsolation('rome-shop', { a: 'b' }, factsWith());
  const none = (key: string): object => ({ matchExpressions: [{ key, operator: 'DoesNotExist' }] });
  expect(all.map(({ metadata }) => metadata)).toEqual(
    ['tributary-ingress', 'tributary-egress', 'tributary'].map((name) => ({
      name,
      namespace: 'rome-shop',
      labels: { a: 'b' },
    })),
  );
  expect(all.map(({ spec }) => spec)).toEqual([
    {
      podSelector: none('tributary.dev/ingress-policy'),
      policyTypes: ['Ingress'],
      ingress: forge().ingress,
    },
    { podSelector: none('tributary.dev/egress-policy'), policyTypes: ['Egress'], egress: forge().egress },
    { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [] },
  ]);
});

test('in come the same peer, namespaces of nobody, the home and our nodes', () => {
  expect(forge().ingress).toEqual([
    {
      from: [
        { namespaceSelector: { matchLabels: { 'tributary.dev/peer': 'rome' } } },
        {
          namespaceSelector: { matchExpressions: [{ key: 'tributary.dev/peer', operator: 'DoesNotExist' }] },
        },
        { ipBlock: { cidr: '192.168.7.4/32' } },
        { ipBlock: { cidr: '203.0.113.4/32' } },
        { ipBlock: { cidr: 'fd00:2::4/128' } },
        { ipBlock: { cidr: '100.99.0.0/16' } },
      ],
    },
  ]);
});

test('out go the same peer and the home, DNS by its ports, and the outside', () => {
  const { egress } = forge();
  expect(egress).toHaveLength(3);
  expect(egress[0]).toEqual({
    to: [
      { namespaceSelector: { matchLabels: { 'tributary.dev/peer': 'rome' } } },
      { ipBlock: { cidr: '100.99.0.0/16' } },
    ],
  });
  expect(egress[1]?.ports).toEqual(
    [53, 5353].flatMap((port) => [
      { protocol: 'UDP', port },
      { protocol: 'TCP', port },
    ]),
  );
});

test.each([
  ['8.8.8.8', true],
  ['2001:db8::1', true],
  ['10.200.0.1', true],
  ['10.1.2.3', false],
  ['10.96.0.1', false],
  ['192.168.7.4', false],
  // A node that comes has an address beside those that are known.
  ['192.168.7.5', false],
  ['192.168.8.5', true],
  ['203.0.113.4', false],
  ['203.0.113.5', true],
  ['fd00:2::4', false],
  ['198.51.100.9', false],
  ['198.51.100.8', true],
  ['172.19.7.7', false],
  ['fd00:9::7', false],
  ['fd00:1::7', false],
  ['fd00:2::7', true],
  ['169.254.169.254', false],
  ['168.63.129.16', false],
  ['100.100.100.200', false],
  ['fe80::1', false],
  ['fd00:ec2::254', false],
])('%s counts as outside: %s', (address, is) => {
  expect(isOutside(forge(), address)).toBe(is);
});

test.each(['10.200.0.1', '192.168.7.5', '172.20.1.1', '100.65.0.1', 'fd12::1', '169.254.169.254'])(
  'where our own ranges are not known, %s may be ours',
  (address) => {
    const policy = forge({ own: undefined });
    expect(isOutside(policy, address)).toBe(false);
    expect(isOutside(policy, '8.8.8.8')).toBe(true);
  },
);

test('what is no prefix is passed over, and nobody is everywhere', () => {
  const prefixes = ['', 'x', '0.0.0.0/0', '::/0', '10.9.0.1/16', '__proto__', '100.98.0.0/16'];
  const { ingress } = forge({
    prefixes,
    own: { inside: ['0.0.0.0/0', 'NaN'], nodes: ['no'], beside: [''] },
  });
  expect(ingress[0]?.from?.slice(2)).toEqual([{ ipBlock: { cidr: '100.98.0.0/16' } }]);
});

test('a peer that is seen where we are is not let through to us', () => {
  // The last one is from before it was reserved.
  const prefixes = ['10.0.0.0/8', '192.168.7.4/31', '100.98.0.0/16', '172.19.0.0/16'];
  expect(forge({ prefixes }).egress[0]?.to?.slice(1)).toEqual([
    { ipBlock: { cidr: '100.98.0.0/16' } },
    { ipBlock: { cidr: '172.19.0.0/16' } },
  ]);
});

test('a thousand prefixes of a peer are not all let through; a thousand nodes are all kept out of reach', () => {
  const thousand = Array.from({ length: 1000 }, (_, index) => [index >> 7, (index % 128) * 2] as const);
  const policy = forge({
    prefixes: thousand.map(([a, b]) => `100.${64 + a}.${b}.0/24`),
    own: { inside: [], beside: [], nodes: thousand.map(([a, b]) => `10.3.${a}.${b}/32`) },
  });
  expect(policy.ingress[0]?.from?.length).toBeLessThan(2 + 256 + 1024);
  expect(policy.egress.at(-1)?.to?.[0]?.ipBlock?.except?.length).toBeLessThanOrEqual(256);
  expect(thousand.filter(([a, b]) => isOutside(policy, `10.3.${a}.${b}`))).toEqual([]);
  expect(isOutside(policy, '10.4.0.1')).toBe(true);
});

test('our own ranges are told by the network, or not known', () => {
  expect(ownRangesOf(undefined)).toBeUndefined();
  expect(ownRangesOf({ pods: [], services: ['10.96.0.0/12'], apiServers: ['203.0.113.1'] })).toEqual({
    nodes: [],
    beside: ['203.0.113.1/32'],
  });
  const unknown = forge({ own: { nodes: [], beside: ['203.0.113.1/32'] } });
  expect(['10.9.9.9', '203.0.113.1', '203.0.113.2'].map((text) => isOutside(unknown, text))).toEqual([
    false,
    false,
    true,
  ]);
  const node = { name: 'n', external: '10.9.0.2', pods: [] };
  const nodes = [
    { ...node, address: '192.168.7.4', others: ['fd00:2::4', '203.0.113.4', 'none'] },
    { ...node, address: 'not an address' },
  ];
  const known = { pods: ['10.1.0.0/16'], services: ['10.96.0.0/12'], external: '10.9.0.0/16', nodes };
  const apiServers = ['10.0.0.9', 'fd00:3::9'];
  expect(ownRangesOf({ ...known, apiServers, reserved: ['172.19.0.0/16'] })).toEqual({
    inside: ['10.1.0.0/16', '10.96.0.0/12', '10.9.0.0/16'],
    nodes: ['192.168.7.4/32', 'fd00:2::4/128', '203.0.113.4/32'],
    beside: ['172.19.0.0/16', '10.0.0.9/32', 'fd00:3::9/128'],
  });
});
