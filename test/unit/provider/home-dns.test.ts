import { describe, expect, test } from '@jest/globals';

import { homeDnsWay, type OwnDns, ownDnsOf } from '../../../src/provider/home-dns.ts';
import type { HomeDnsView } from '../../../src/api/tunnel.ts';

const CONF = {
  nameservers: ['10.96.0.10'],
  searches: ['agents.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'lan'],
};

describe('the DNS of this cluster', () => {
  const unnamed = { nameservers: [], domain: undefined };

  test('is what the own pod asks', () => {
    expect(ownDnsOf(CONF, unnamed)).toEqual({ nameservers: ['10.96.0.10'], domain: 'cluster.local' });
  });

  test('is what people name, each for itself', () => {
    expect(ownDnsOf(CONF, { ...unnamed, nameservers: ['10.96.0.53'] })).toEqual({
      nameservers: ['10.96.0.53'],
      domain: 'cluster.local',
    });
    expect(ownDnsOf(CONF, { ...unnamed, domain: 'rome.example' })).toEqual({
      nameservers: ['10.96.0.10'],
      domain: 'rome.example',
    });
  });

  test('has no domain where the process is no pod, whatever its host searches', () => {
    expect(ownDnsOf({ nameservers: ['192.0.2.1'], searches: ['svc.corp.example'] }, unnamed).domain).toBe(
      undefined,
    );
  });
});

describe('which DNS pods over there ask', () => {
  const open: HomeDnsView = { kind: 'Open', ranges: ['10.96.0.0/16', 'fd00:96::/108'] };
  const own: OwnDns = { nameservers: ['10.96.0.10'], domain: 'cluster.local' };
  const way = (changes: Partial<OwnDns>, homeDns: HomeDnsView = open): object =>
    homeDnsWay({ homeDns }, { ...own, ...changes });

  test('ours, as far as its addresses are ClusterIPs that they reach', () => {
    expect(way({})).toEqual({ kind: 'At', ...own });
    expect(way({ nameservers: ['169.254.20.10', '10.96.0.10', 'fd00:96::a'] })).toMatchObject({
      nameservers: ['10.96.0.10', 'fd00:96::a'],
    });
  });

  test.each<[string, Partial<OwnDns>, string]>([
    ['NodeLocal DNSCache is no ClusterIP', { nameservers: ['169.254.20.10'] }, 'only 169.254.20.10'],
    ['none is known', { nameservers: [] }, '--cluster-dns'],
    ['what is known is no address', { nameservers: ['kube-dns'] }, '--cluster-dns'],
    ['the domain is not known', { domain: undefined }, '--cluster-domain'],
  ])('theirs where %s', (_why, changes, words) => {
    const message: unknown = expect.stringContaining(words);
    expect(way(changes)).toEqual({ kind: 'None', reason: 'NoClusterDNS', message });
  });

  test.each<[HomeDnsView]>([
    [{ kind: 'NotChosen' }],
    [{ kind: 'None', reason: 'SeenElsewhere', message: 'm' }],
    [{ kind: 'Unknown', reason: 'PeerHasNoViewOfUs', message: 'm' }],
  ])('what the network says comes first: %j', (said) => {
    expect(way({}, said)).toEqual(said);
  });
});
