import { describe, expect, test } from '@jest/globals';

import type { OwnNetwork } from '../../../../src/api/own-network.ts';
import type { PeerView, PrefixView, TunnelSpec } from '../../../../src/api/tunnel.ts';
import type { TableConfig } from '../../../../src/network/host/host-config.ts';
import { gatewayPlan } from '../../../../src/network/plan/gateway.ts';
import { BERN, gatewayFacts, network, peer, ROME, rulesOf } from './facts.ts';

/** Our pods at a peer reach ClusterIPs of ours. */

const RANGE = '10.97.0.0/16';
const own: OwnNetwork = { ...network, services: [RANGE, 'fd00:97::/108'] };
const seenAs = (as = RANGE): PrefixView[] => [
  { prefix: '10.244.0.0/16', as: '10.96.0.0/16' },
  { prefix: '10.70.0.0/20', as: '10.71.0.0/20' },
  { prefix: RANGE, as },
];
const OPEN: Partial<TunnelSpec> = { services: [RANGE], seenAs: seenAs() };

const plan = (spec: Partial<TunnelSpec> = OPEN, facts = own): TableConfig =>
  gatewayPlan(
    gatewayFacts(
      [
        peer({ id: ROME, spec }, { abroad: ['100.64.0.7'] }),
        peer({
          id: BERN,
          views: [{ use: 'Pods', prefix: '10.244.0.0/16', as: '100.66.0.0/16' }],
        }),
      ],
      { network: facts },
    ),
  ).nftables;
const rulesAbout = (table: TableConfig, text: string): string[] =>
  table.chains.flatMap(({ name, rules }) =>
    rules.filter((rule) => rule.includes(text)).map((rule) => `${name}: ${rule}`),
  );

test('only our pods there reach them, kube-proxy translates, and answers leave as they are', () => {
  expect(rulesAbout(plan(), RANGE)).toEqual([
    `from_${ROME}: ip saddr @abroad4_${ROME} ip daddr ${RANGE} accept`,
    `access_${ROME}: ip saddr @abroad4_${ROME} ip daddr @abroad4_${ROME} ct original ip daddr ${RANGE} accept`,
    `snat_${ROME}: ip saddr @abroad4_${ROME} ct original ip daddr ${RANGE} snat ip to 10.71.0.1`,
    `sent_${ROME}: ip saddr ${RANGE} accept`,
  ]);
});

test('what is behind them is reached as without them: our pods, and nothing else', () => {
  const [closed, open] = [plan({ seenAs: seenAs() }), plan()].map((table) =>
    rulesOf(table, `access_${ROME}`),
  );
  const way = open?.find((rule) => rule.includes(RANGE)) ?? '';
  expect(open?.filter((rule) => rule !== way)).toEqual(closed);
  // Before the rules about third clusters, which do not let a peer reach itself where transit is closed.
  expect(open?.indexOf(way)).toBeLessThan(open?.indexOf('oifname "wg" jump transit') ?? -1);
  // And after what bounds it.
  expect(open?.findIndex((rule) => rule.includes('ct count over'))).toBeLessThan(open?.indexOf(way) ?? -1);
});

test('a pod beside the one that asks answers by the gateway: before views would be kept', () => {
  const rules = rulesOf(plan(), `snat_${ROME}`) ?? [];
  const hairpin = rules.findIndex((rule) => rule.includes('ct original'));
  expect(hairpin).toBeGreaterThan(rules.findIndex((rule) => rule.startsWith('ip saddr 10.244.0.0/16')));
  expect(rules[hairpin + 1]).toBe('ip saddr . meta nfproto @views4 return');
});

const pods6: PeerView = { use: 'Pods', prefix: 'fd00:1::/48', as: 'fd00:64::/48' };
const both = [...seenAs(), { prefix: 'fd00:97::/108', as: 'fd00:97::/108' }];

test.each<[string, Partial<TunnelSpec>, OwnNetwork]>([
  ['the Tunnel does not say so', { seenAs: seenAs() }, own],
  ['the peer sees them elsewhere', { services: [RANGE], seenAs: seenAs('100.99.0.0/16') }, own],
  ['the peer has not told as what it sees them', { services: [RANGE], seenAs: seenAs().slice(0, 2) }, own],
  ['they are not ours any more', OPEN, { ...own, services: ['10.98.0.0/16'] }],
  ['they are not known', OPEN, network],
  ['the text is a rule', { services: [`${RANGE} accept;`], seenAs: seenAs() }, own],
  ['our pods there have no address of that family', { services: ['fd00:97::/108'], seenAs: both }, own],
])('the table is as ever where %s', (_why, spec, facts) => {
  const { services: _closed, ...rest } = spec;
  expect(plan(spec, facts)).toEqual(plan(rest, facts));
  expect(rulesAbout(plan(spec, facts), '/108')).toEqual([]);
});

test('both families', () => {
  const views: PeerView[] = [{ use: 'Pods', prefix: '10.244.0.0/16', as: '100.64.0.0/16' }, pods6];
  const spec = { services: own.services ?? [], seenAs: both };
  const { nftables } = gatewayPlan(gatewayFacts([peer({ views, spec })], { network: own }));
  expect(rulesAbout(nftables, '/108').map((rule) => rule.split(':')[0])).toEqual(
    // None answers by a gateway that has no address of that family.
    ['from', 'access', 'sent'].map((chain) => `${chain}_${ROME}`),
  );
});

describe('the Service of the API servers', () => {
  const SERVERS = ['172.31.0.1', '172.31.0.2'].map((address) => ({ address, port: 6443 }));
  const facts: OwnNetwork = {
    ...own,
    apiServer: { address: '10.70.15.254', port: 443, endpoints: SERVERS },
  };
  const apiServer = { address: '10.70.15.254', port: 443 };

  test('is closed where network.apiServer closes it: also for connections that are open', () => {
    const table = plan(OPEN, facts);
    expect(rulesAbout(table, 'ct reply')).toEqual(
      SERVERS.map(
        ({ address }) =>
          `from_${ROME}: ip daddr ${RANGE} ct reply ip saddr ${address} counter drop comment "refused_${ROME}"`,
      ),
    );
    const rules = rulesOf(table, `from_${ROME}`) ?? [];
    expect(rules.findIndex((rule) => rule.includes('ct reply'))).toBeLessThan(
      rules.findIndex((rule) => rule.endsWith(`ip daddr ${RANGE} accept`)),
    );
    expect(rulesAbout(table, 'dport 6443')).toEqual([]);
  });

  test('is open for the pods that have a token, to each API server, and hides them as the other way does', () => {
    const table = plan({ ...OPEN, apiServer }, facts);
    const clients = `ip saddr @clients4_${ROME}`;
    const ways = SERVERS.map(
      ({ address }) => `${clients} ip daddr ${address} tcp dport 6443 ct original ip daddr ${RANGE}`,
    );
    for (const chain of ['access', 'api'])
      expect(rulesOf(table, `${chain}_${ROME}`)).toEqual(
        expect.arrayContaining(ways.map((way) => `${way} accept`)),
      );
    expect(rulesOf(table, 'to_servers')).toEqual(
      expect.arrayContaining(ways.map((way) => `${way} masquerade`)),
    );
    expect(rulesAbout(table, 'ct reply')[0]).toBe(
      `from_${ROME}: ip saddr != @clients4_${ROME} ip daddr ${RANGE} ct reply ip saddr 172.31.0.1 ` +
        `counter drop comment "refused_${ROME}"`,
    );
  });
});
