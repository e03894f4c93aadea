import { describe, expect, test } from '@jest/globals';

import type { AddressPort, TunnelSpec } from '../../../../src/api/tunnel.ts';
import { decideSpec, type NetworkPeer } from '../../../../src/network/exchange/tunnel-spec.ts';
import type { TableConfig } from '../../../../src/network/host/host-config.ts';
import { gatewayPlan } from '../../../../src/network/plan/gateway.ts';
import { peer as lender } from '../exchange/support/peer.ts';
import { elementsOf, gatewayFacts, peer, ROME, rulesOf } from './facts.ts';

const place = (address: string, protocol: AddressPort['protocol'] = 'TCP', port = 5432): AddressPort => ({
  address,
  protocol,
  port,
});
const table = (spec: Partial<TunnelSpec>): TableConfig =>
  gatewayPlan(gatewayFacts([peer({ spec })])).nftables;

describe('the gateway’s plan for Services that a peer is offered', () => {
  test('lets that peer reach their addresses at their ports', () => {
    const nftables = table({
      offered: [
        place('10.244.1.9'),
        place('10.244.1.8'),
        place('10.244.1.8', 'UDP', 53),
        place('10.244.1.8'),
      ],
    });
    expect(nftables.sets.find(({ name }) => name === `offeredtcp4_${ROME}`)).toEqual({
      name: `offeredtcp4_${ROME}`,
      type: 'ipv4_addr . inet_service',
      interval: false,
      elements: [{ key: '10.244.1.8 . 5432' }, { key: '10.244.1.9 . 5432' }],
    });
    expect(elementsOf(nftables, `offeredudp4_${ROME}`)).toEqual(['10.244.1.8 . 53']);
    expect(rulesOf(nftables, `access_${ROME}`)?.slice(-3)).toEqual([
      `ip daddr . tcp dport @offeredtcp4_${ROME} ip daddr != @hosted4 accept`,
      `ip daddr . udp dport @offeredudp4_${ROME} ip daddr != @hosted4 accept`,
      `counter drop comment "refused_${ROME}"`,
    ]);
  });

  test.each(['10.245.0.1', '172.31.0.1', '10.70.0.11', 'fd00:244::1', '10.244.0.1 accept', ''])(
    'passes over %j: no pod of ours that this peer sees',
    (address) => {
      expect(table({ offered: [place(address)] })).toEqual(table({}));
    },
  );

  test('says nothing where the peer may reach nothing, or everything', () => {
    for (const access of ['None', 'AllPods'] as const) {
      expect(table({ access, offered: [place('10.244.1.8')] })).toEqual(table({ access }));
    }
  });

  test('forwards pods of ours elsewhere to those of its Services that are used', () => {
    const used = [place('100.64.1.8'), place('100.99.0.1')];
    const nftables = table({ used });
    expect(elementsOf(nftables, 'usedtcp4')).toEqual(['100.64.1.8 . 5432']);
    expect(rulesOf(nftables, 'transit')).toEqual([
      'ip saddr @transit4 ip daddr @transit4 accept',
      'ip6 saddr @transit6 ip6 daddr @transit6 accept',
      'ip saddr @transit4 ip daddr . tcp dport @usedtcp4 accept',
      'counter drop comment "refused_transit"',
    ]);
    expect(table({ used, transit: 'None' })).toEqual(table({ transit: 'None' }));
  });
});

describe('the Tunnel of a peer', () => {
  const about = (changes: Partial<NetworkPeer> = {}): NetworkPeer =>
    lender({ clusterID: ROME, incoming: true, ...changes });
  const [one, other] = [[place('10.244.1.8')], [place('100.64.1.8')]];
  const specOf = (facts: Partial<Parameters<typeof decideSpec>[0]>): TunnelSpec =>
    decideSpec({ peer: about(), heard: undefined, exported: [], ...facts }).spec;

  test('bears what is offered to it and used of it', () => {
    expect(specOf({ services: { offered: one, used: other } })).toMatchObject({ offered: one, used: other });
    expect(specOf({ services: { offered: [], used: [] } })).not.toHaveProperty('offered');
  });

  test('keeps what is stored while nothing is known, and gives up what is no more', () => {
    const current = { ...specOf({}), offered: one, used: other };
    expect(specOf({ current, services: { offered: undefined, used: undefined } })).toEqual(current);
    const now = specOf({ current, services: { offered: [], used: undefined } });
    expect(now).toEqual({ ...specOf({}), used: other });
  });

  test('offers only to those whose pods we run, and uses only those that run ours', () => {
    const services = { offered: one, used: other };
    expect(specOf({ peer: about({ incoming: false }), services })).not.toHaveProperty('offered');
    expect(specOf({ peer: about({ outgoing: false }), services })).not.toHaveProperty('used');
  });

  test('holds no more than its schema takes', () => {
    const many = Array.from({ length: 5000 }, (_, n) => place(`10.244.${n >> 8}.${n & 255}`));
    expect(specOf({ services: { offered: many, used: [] } }).offered).toHaveLength(4096);
  });
});
