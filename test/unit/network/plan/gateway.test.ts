import { describe, expect, test } from '@jest/globals';

import type { PeerView } from '../../../../src/api/tunnel.ts';
import type { TableConfig } from '../../../../src/network/host/host-config.ts';
import { gatewayPlan } from '../../../../src/network/plan/gateway.ts';
import { BERN, elementsOf, gatewayFacts, KEYS, network, peer, ROME, rulesOf } from './facts.ts';

const BERN_VIEWS: PeerView[] = [{ use: 'Pods', prefix: '10.244.0.0/16', as: '100.66.0.0/16' }];
const table = (...parameters: Parameters<typeof gatewayFacts>): TableConfig =>
  gatewayPlan(gatewayFacts(...parameters)).nftables;

describe('the gateway’s plan', () => {
  test('translates only our own prefixes, each as this peer sees it', () => {
    const { nftables } = gatewayPlan(gatewayFacts([peer()]));
    expect(rulesOf(nftables, `dnat_${ROME}`)).toEqual([
      'ip daddr 10.96.0.0/16 dnat ip prefix to 10.244.0.0/16',
      'ip daddr 10.71.0.0/20 dnat ip prefix to 10.70.0.0/20',
    ]);
    expect(rulesOf(nftables, `snat_${ROME}`)).toEqual([
      'ip saddr 10.244.0.0/16 snat ip prefix to 10.96.0.0/16',
      'ip saddr 10.70.0.0/20 snat ip prefix to 10.71.0.0/20',
      'ip saddr . meta nfproto @views4 return',
      'meta nfproto ipv4 snat ip to 10.71.0.1',
    ]);
    expect(elementsOf(nftables, 'snat4')).toEqual([
      `100.64.0.0/16 . ipv4 jump snat_${ROME}`,
      `100.65.0.0/20 . ipv4 jump snat_${ROME}`,
    ]);
  });

  test('lets in what is exported, of the external range only answers and probes', () => {
    expect(rulesOf(table([peer()]), `from_${ROME}`)).toEqual([
      'ip daddr 10.96.0.0/16 accept',
      'ip daddr 10.71.0.0/20 ct state established,related accept',
      expect.stringMatching(/^ip daddr 10\.71\.0\.1 icmp type echo-request limit rate .* accept$/),
      expect.stringMatching(/^ip daddr 10\.71\.0\.1 udp dport 7481 limit rate .* accept$/),
      expect.stringMatching(/^ip daddr 10\.71\.0\.1 tcp dport 7481 limit rate .* accept$/),
      `counter drop comment "refused_${ROME}"`,
    ]);
  });

  test.each([
    ['no prefix', '10.244.0.0', '10.96.0.0/16'],
    ['a rule', '10.244.0.0/16', '10.96.0.0/16 accept; flush ruleset'],
    ['another length', '10.244.0.0/16', '10.96.0.0/8'],
    ['another family', '10.244.0.0/16', 'fd00::/16'],
    ['what is not exported', '172.31.0.0/16', '10.96.0.0/16'],
  ])('passes over %s', (_what, prefix, as) => {
    const nftables = table([peer({ seenAs: [{ prefix, as }] })]);
    expect(rulesOf(nftables, `from_${ROME}`)).toEqual([`counter drop comment "refused_${ROME}"`]);
    expect(rulesOf(nftables, `sent_${ROME}`)).toEqual([]);
  });

  test('writes IPv6 rules for IPv6 prefixes', () => {
    const views: PeerView[] = [{ use: 'Pods', prefix: 'fd00:244::/48', as: 'fd00:900::/48' }];
    const seenAs = [{ prefix: 'fd00:244::/48', as: 'fd00:700::/48' }];
    const { nftables, routes } = gatewayPlan(
      gatewayFacts([peer({ views, seenAs }, { abroad: ['fd00:900::9'], hosted: ['fd00:244::5'] })]),
    );
    expect(rulesOf(nftables, `dnat_${ROME}`)).toEqual([
      'ip6 daddr fd00:700::/48 dnat ip6 prefix to fd00:244::/48',
    ]);
    expect(elementsOf(nftables, 'from6')).toEqual([`fd00:900::/48 . ipv6 jump from_${ROME}`]);
    expect(rulesOf(nftables, `mss_${ROME}`)).toEqual(['meta nfproto ipv6 tcp option maxseg size set 1360']);
    expect(elementsOf(nftables, `abroad6_${ROME}`)).toEqual(['fd00:900::9']);
    expect(elementsOf(nftables, `abroad4_${ROME}`)).toBeUndefined();
    expect(elementsOf(nftables, 'hosted6')).toEqual(['fd00:244::5']);
    expect(rulesOf(nftables, `home_${ROME}`)?.[0]).toMatch(/^ip6 saddr != @hosted6_/);
    expect(routes).toContainEqual({ destination: 'fd00:900::/48', metric: 50, to: { link: 'wg' } });
  });

  const OPENING = 'ct status ! confirmed';
  const REFUSED = `counter drop comment "refused_${ROME}"`;
  const BOUNDS = [
    `${OPENING} limit rate over 500/second burst 2000 packets ${REFUSED}`,
    `${OPENING} ct count over 8192 ${REFUSED}`,
  ];

  test.each([
    ['None', []],
    [
      'AllPods',
      [
        `ip daddr @nodes4 ${REFUSED}`,
        `ip daddr @hosted4_${ROME} accept`,
        'ip daddr . meta nfproto @pods4 ip daddr != @hosted4 accept',
      ],
    ],
    [
      'OffloadedPods',
      [
        `ip daddr @nodes4 ${REFUSED}`,
        `ip daddr @hosted4_${ROME} accept`,
        `ip saddr @abroad4_${ROME} ip daddr . meta nfproto @pods4 ip daddr != @hosted4 accept`,
      ],
    ],
  ] as const)('with access %s accepts %j, as long as they are not too many', (access, rules) => {
    const nftables = table([peer({ spec: { access } }, { abroad: ['100.64.0.7'] })]);
    expect(rulesOf(nftables, `access_${ROME}`)).toEqual([
      ...BOUNDS,
      'oifname "wg" jump transit',
      ...rules,
      REFUSED,
    ]);
    // It has an element for each pod, and so it is there only where it is asked.
    const asked = JSON.stringify(nftables.chains).includes('@abroad4_');
    expect(elementsOf(nftables, `abroad4_${ROME}`)).toEqual(asked ? ['100.64.0.7'] : undefined);
  });

  test('pods of a peer that run here open connections to that peer only', () => {
    const nftables = table(
      [
        peer({}, { hosted: ['10.244.0.5'] }),
        peer({ id: BERN, key: KEYS[1] ?? '', views: BERN_VIEWS }, { hosted: ['10.244.1.6'] }),
      ],
      // The third is of a peer without a tunnel.
      { hosted: ['10.244.0.5', '10.244.1.6', '10.244.0.7'] },
    );
    expect(elementsOf(nftables, 'hosted4')).toEqual(['10.244.0.5', '10.244.0.7', '10.244.1.6']);
    // Also what was begun before.
    expect(rulesOf(nftables, 'forward')?.slice(1, 4)).toEqual([
      'oifname "wg" ct direction original jump hosted',
      'iifname != "wg" return',
      'ct state established,related accept',
    ]);
    expect(rulesOf(nftables, 'hosted')).toEqual([
      'ip saddr @hosted4 ip daddr . meta nfproto vmap @home4',
      'ip6 saddr @hosted6 ip6 daddr . meta nfproto vmap @home6',
    ]);
    expect(elementsOf(nftables, 'home4')).toContain(`100.66.0.0/16 . ipv4 jump home_${BERN}`);
    expect(rulesOf(nftables, `home_${ROME}`)).toEqual([
      `ip saddr != @hosted4_${ROME} counter drop comment "refused_tenant"`,
      ...BOUNDS,
    ]);
  });

  test.each([
    ['only we are translated', ['10.244.0.0/16', '10.71.0.0/20'], true],
    ['our pods are translated, too', ['10.96.0.0/16', '10.71.0.0/20'], false],
    ['nothing is', ['10.244.0.0/16', '10.70.0.0/20'], false],
  ])(
    'where %s, errors of our hosts leave as the gateway’s: %j, %s',
    (_what, [pods = '', external = ''], are) => {
      const seenAs = [
        { prefix: '10.244.0.0/16', as: pods },
        { prefix: '10.70.0.0/20', as: external },
      ];
      expect(rulesOf(table([peer({ seenAs })]), `sent_${ROME}`)).toEqual([
        ...(are
          ? ['ip saddr 10.70.0.0/20 meta l4proto 1 ct state related ip saddr set 10.71.0.1 accept']
          : []),
        `ip saddr ${pods} accept`,
        `ip saddr ${external} accept`,
      ]);
    },
  );

  test('exports views of others for transit only where both tunnels allow it', () => {
    const seenAs = [{ prefix: '100.66.0.0/16', as: '10.99.0.0/16' }];
    const peers = (...transit: ('OffloadedPods' | 'None')[]): TableConfig =>
      table([
        peer({ seenAs, spec: { transit: transit[0] ?? 'None' } }, { abroad: ['100.64.0.7'] }),
        peer(
          { id: BERN, key: KEYS[1] ?? '', views: BERN_VIEWS, spec: { transit: transit[1] ?? 'None' } },
          { abroad: ['100.66.0.8'] },
        ),
      ]);
    const open = peers('OffloadedPods', 'OffloadedPods');
    expect(rulesOf(open, `dnat_${ROME}`)).toEqual(['ip daddr 10.99.0.0/16 dnat ip prefix to 100.66.0.0/16']);
    expect(elementsOf(open, 'transit4')).toEqual(['100.64.0.7', '100.66.0.8']);
    for (const closed of [peers('None', 'OffloadedPods'), peers('OffloadedPods', 'None')]) {
      expect(rulesOf(closed, `dnat_${ROME}`)).toEqual([]);
      expect(elementsOf(closed, 'transit4')).toHaveLength(1);
    }
  });

  test('one more peer changes no rule and no element of others', () => {
    const one = table([peer()]);
    const two = table([peer(), peer({ id: BERN, key: KEYS[1] ?? '', views: BERN_VIEWS })]);
    for (const { name, rules } of one.chains) expect(rulesOf(two, name)).toEqual(rules);
    for (const { name } of one.sets) {
      expect(elementsOf(two, name)).toEqual(expect.arrayContaining(elementsOf(one, name) ?? []));
    }
    const fresh = two.chains.filter(({ name }) => rulesOf(one, name) === undefined);
    expect(fresh.map(({ name }) => name)).toEqual(
      ['from', 'dnat', 'access', 'home', 'mss', 'snat', 'sent'].map((part) => `${part}_${BERN}`),
    );
  });

  test('gives a public key to the older of two that claim it', () => {
    const claims = [
      peer({ id: ROME, created: '2026-02-01T00:00:00Z' }),
      peer({ id: BERN, created: '2026-01-01T00:00:00Z', views: BERN_VIEWS }),
      peer({ id: 'cork', key: 'not a key', views: [] }),
    ];
    expect(gatewayPlan(gatewayFacts(claims)).wireguard?.peers).toEqual([
      { publicKey: KEYS[0], allowedIPs: ['100.66.0.0/16'], keepalive: 25 },
    ]);
  });

  test('finds the pods and nodes of other hosts over VXLAN, its own in the main table', () => {
    const { routes, rules } = gatewayPlan(gatewayFacts([peer({}, { mtu: 1300 })]));
    expect(
      rules.map(({ family, incoming, from, table: number }) => ({ family, incoming, from, number })),
    ).toEqual([
      { family: 4, incoming: 'wg', number: 7480 },
      // Probes of other nodes.
      { family: 4, from: '10.70.0.11/32', number: 7480 },
    ]);
    const back = routes.filter((route) => route.table === 7480);
    expect(back.map(({ destination, to }) => ({ destination, to }))).toEqual([
      { destination: '10.70.0.12/32', to: { link: 'vx', gateway: '10.70.0.12' } },
      { destination: '10.244.1.0/24', to: { link: 'vx', gateway: '10.70.0.12' } },
    ]);
    expect(routes).toContainEqual({
      destination: '100.64.0.0/16',
      metric: 50,
      to: { link: 'wg' },
      source: '10.70.0.1',
      mtu: 1300,
    });
  });

  test('finds single pods that are not where the CIDRs of the nodes lead, wherever they are', () => {
    const third = { name: 'n3', address: '172.31.0.3', external: '10.70.0.13', pods: ['10.244.2.0/24'] };
    const nodes = [...network.nodes, third];
    const strays = new Map([
      ['10.244.2.5', 'n2'],
      ['10.244.9.5', 'n3'],
      // Table main has the way to these; where another node's CIDR would come first, it has to be asked.
      ['10.244.1.6', 'n1'],
      ['10.244.9.6', 'n1'],
      // Of a node that is gone, and of a family that VXLAN does not carry.
      ['10.244.2.7', 'n4'],
      ['fd00:244::7', 'n2'],
    ]);
    const { routes } = gatewayPlan(gatewayFacts([peer()], { network: { ...network, nodes }, strays }));
    const back = routes.filter((route) => route.table === 7480);
    expect(back.every(({ metric }) => metric === 100)).toBe(true);
    expect(back.slice(0, 3).map(({ destination, to }) => ({ destination, to }))).toEqual([
      { destination: '10.244.2.5/32', to: { link: 'vx', gateway: '10.70.0.12' } },
      { destination: '10.244.9.5/32', to: { link: 'vx', gateway: '10.70.0.13' } },
      { destination: '10.244.1.6/32', to: 'throw' },
    ]);
    expect(back.slice(3).map(({ destination }) => destination)).toEqual([
      '10.70.0.12/32',
      '10.244.1.0/24',
      '10.70.0.13/32',
      '10.244.2.0/24',
    ]);
  });

  test('asks for rules of the family of its routes only: a host without IPv6 refuses those of IPv6', () => {
    const nodes = network.nodes.map((node, at) => ({ ...node, external: `fd00:70::1${at}` }));
    const own = { ...network, external: 'fd00:70::/112', gatewayAddress: 'fd00:70::1', nodes };
    const { rules, routes } = gatewayPlan(gatewayFacts([], { network: own }));
    expect(rules.map(({ family }) => family)).toEqual([6, 6]);
    expect(routes.map(({ destination }) => destination)).toEqual(['fd00:70::11/128']);
  });

  test('needs no return path where it is alone', () => {
    const alone = { ...network, nodes: network.nodes.slice(0, 1) };
    const { rules, routes } = gatewayPlan(gatewayFacts([], { network: alone }));
    expect({ rules, routes }).toEqual({ rules: [], routes: [] });
  });
});
