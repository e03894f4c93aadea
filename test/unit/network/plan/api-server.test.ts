import { describe, expect, test } from '@jest/globals';

import type { OwnNetwork } from '../../../../src/api/own-network.ts';
import type { PeerView, TunnelSpec } from '../../../../src/api/tunnel.ts';
import type { TableConfig } from '../../../../src/network/host/host-config.ts';
import { gatewayPlan } from '../../../../src/network/plan/gateway.ts';
import { BERN, elementsOf, gatewayFacts, network, peer, ROME, rulesOf } from './facts.ts';

const SERVERS = [
  { address: '172.31.0.1', port: 6443 },
  { address: '172.31.0.2', port: 6443 },
];
const withServers = (endpoints = SERVERS): OwnNetwork => ({
  ...network,
  apiServer: { address: '10.70.15.254', port: 443, endpoints },
});
const OPEN = { apiServer: { address: '10.70.15.254', port: 443 } };
const plan = (spec: Partial<TunnelSpec>, own = withServers(), id = ROME): TableConfig =>
  gatewayPlan(
    gatewayFacts([peer({ id, spec }, { abroad: ['100.64.0.7', '100.64.0.8'], clients: ['100.64.0.7'] })], {
      network: own,
    }),
  ).nftables;
const rulesAbout = (table: TableConfig, text: string): string[] =>
  table.chains.flatMap(({ name, rules }) =>
    rules.filter((rule) => rule.includes(text)).map((rule) => `${name}: ${rule}`),
  );

describe('our API server, for our pods at a peer', () => {
  test('is reached at one address and port, by those that have a token, and by no other way', () => {
    const table = plan(OPEN, withServers(SERVERS.slice(0, 1)));
    const way = `ip saddr @clients4_${ROME} ip daddr 172.31.0.1 tcp dport 6443 ct original ip daddr 10.71.15.254`;
    expect(rulesAbout(table, '10.71.15.254')).toEqual([
      `to_servers: ${way} masquerade`,
      `from_${ROME}: ip saddr @clients4_${ROME} ip daddr 10.71.15.254 tcp dport 443 accept`,
      `from_${ROME}: ip daddr 10.71.15.254 counter drop comment "refused_${ROME}"`,
      `dnat_${ROME}: ip daddr 10.71.15.254 tcp dport 443 dnat ip to 172.31.0.1:6443`,
      `access_${ROME}: ${way} accept`,
      `api_${ROME}: ${way} accept`,
    ]);
    expect(elementsOf(table, `clients4_${ROME}`)).toEqual(['100.64.0.7']);
    expect(elementsOf(table, 'api4')).toEqual([
      `100.64.0.0/16 . ipv4 jump api_${ROME}`,
      `100.65.0.0/20 . ipv4 jump api_${ROME}`,
    ]);
    // Before the translation of the whole range.
    expect(rulesOf(table, `dnat_${ROME}`)?.[0]).toContain('tcp dport 443');
  });

  test.each([
    ['open', OPEN, 1],
    ['closed', {}, 0],
  ])('packets of open connections are judged anew where the way is %s', (_what, spec, before) => {
    const rules = rulesOf(plan(spec), `from_${ROME}`) ?? [];
    const end = rules.findIndex((rule) => rule.startsWith('ip daddr 10.71.15.254 counter drop'));
    expect(end).toBe(before);
    expect(rules.findIndex((rule) => rule.includes('established'))).toBeGreaterThan(end);
  });

  test('on the gateway’s own host is reached as well, within the bounds of the peer', () => {
    const table = plan(OPEN);
    expect(rulesOf(table, 'input')).toContain('ip saddr . meta nfproto vmap @api4');
    expect(rulesOf(table, `api_${ROME}`)?.slice(0, 2)).toEqual([
      expect.stringContaining('limit rate over 500/second'),
      expect.stringContaining('ct count over 8192'),
    ]);
  });

  test('the source is hidden before the chains that would keep it', () => {
    const { hook } = plan(OPEN).chains.find(({ name }) => name === 'to_servers') ?? {};
    const source = plan(OPEN).chains.find(({ name }) => name === 'source')?.hook;
    expect(hook).toMatchObject({ type: 'nat', hook: 'postrouting' });
    expect(hook?.priority).toBeLessThan(source?.priority ?? 0);
  });

  test.each<[string, Partial<TunnelSpec>, OwnNetwork]>([
    ['where the Tunnel does not say so', {}, withServers()],
    ['where none is known', OPEN, network],
    ['where they have another family', OPEN, withServers([{ address: 'fd00::1', port: 6443 }])],
    ['with a port that is none', OPEN, withServers([{ address: '172.31.0.1', port: 0 }])],
    ['with an address that is a rule', OPEN, withServers([{ address: '1.2.3.4 accept; drop', port: 1 }])],
    ['at another address', { apiServer: { address: '10.70.0.11', port: 443 } }, withServers()],
  ])('is not there %s', (_what, spec, own) => {
    const table = plan(spec, own);
    expect(table.chains.map(({ name }) => name)).not.toContain('to_servers');
    expect(rulesAbout(table, 'dport 443')).toEqual([]);
    expect(rulesAbout(table, 'clients')).toEqual([]);
  });

  test('peers are spread over the API servers, and each keeps its own', () => {
    const serverOf = (id: string): string | undefined =>
      rulesOf(plan(OPEN, withServers(), id), `dnat_${id}`)?.[0]?.split(' dnat ip to ')[1];
    const ids = Array.from({ length: 32 }, (_, n) => `p${n}`.padEnd(26, 'a'));
    expect(new Set(ids.map(serverOf))).toEqual(new Set(['172.31.0.1:6443', '172.31.0.2:6443']));
    expect(serverOf(BERN)).toBe(serverOf(BERN));
  });
});

describe('the API server of a peer, for its pods here', () => {
  const views: PeerView[] = [
    { use: 'Pods', prefix: '10.244.0.0/16', as: '100.64.0.0/16' },
    { use: 'External', prefix: '10.70.0.0/20', as: '100.65.0.0/20' },
  ];
  const told = { publicKey: '', endpoints: [], pods: [], external: [], apiServer: OPEN.apiServer };
  const home = (spec: Partial<TunnelSpec>): readonly string[] | undefined =>
    rulesOf(
      gatewayPlan(gatewayFacts([peer({ views, spec: { peer: told, ...spec } })])).nftables,
      `home_${ROME}`,
    );

  test('is not reached where our policy forbids it', () => {
    expect(home({ homeApiServer: 'Forbidden' })).toContain(
      'ip daddr 100.65.15.254 tcp dport 443 counter drop comment "refused_tenant"',
    );
    expect(home({})?.join()).not.toContain('dport 443');
  });
});
