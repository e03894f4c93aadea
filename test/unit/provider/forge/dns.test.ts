import { describe, expect, test } from '@jest/globals';
import type { PodSpec } from '../../../../src/api/wire.ts';
import { asksClusterDns, forgeDns } from '../../../../src/provider/forge/dns.ts';
import { nextChange } from '../../../../src/provider/forge/change.ts';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { CONTEXT, homePod, remotePod } from '../support/pods.ts';

const HOME = { nameservers: ['10.96.0.10'], domain: 'cluster.local' };
const SEARCHES = ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local'];
const NDOTS = { name: 'ndots', value: '5' };
const containers = [{ name: 'main', image: 'web:1' }];
const dnsOf = (spec: Partial<PodSpec>): object => forgeDns(homePod({ spec: { containers, ...spec } }), HOME);

describe('a pod that asks cluster DNS', () => {
  test.each<[string, Partial<PodSpec>]>([
    ['without a policy', {}],
    ['ClusterFirst', { dnsPolicy: 'ClusterFirst' }],
    ['ClusterFirstWithHostNet, on the pod network', { dnsPolicy: 'ClusterFirstWithHostNet' }],
  ])('asks that of home: %s', (_what, spec) => {
    expect(dnsOf(spec)).toEqual({
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['10.96.0.10'], searches: SEARCHES, options: [NDOTS] },
    });
  });

  test('has what it names itself after that, and its options win', () => {
    const dnsConfig = {
      nameservers: ['192.0.2.1', '10.96.0.10', '192.0.2.2', '192.0.2.3'],
      searches: ['lan', 'cluster.local'],
      options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
    };
    expect(dnsOf({ dnsConfig })).toEqual({
      dnsPolicy: 'None',
      dnsConfig: {
        nameservers: ['10.96.0.10', '192.0.2.1', '192.0.2.2'],
        searches: [...SEARCHES, 'lan'],
        options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
      },
    });
    expect(dnsOf({ dnsConfig: { options: [{ name: 'edns0' }] } })).toMatchObject({
      dnsConfig: { options: [NDOTS, { name: 'edns0' }] },
    });
  });

  test('names no more searches than an API server takes', () => {
    const many = Array.from({ length: 32 }, (_, n) => `s${n}`);
    const searchesOf = (searches: string[]): string[] =>
      forgeDns(homePod({ spec: { containers, dnsConfig: { searches } } }), HOME).dnsConfig?.searches ?? [];
    expect(searchesOf(many)).toEqual([...SEARCHES, ...many.slice(0, 29)]);
    const long = Array.from({ length: 12 }, (_, n) => `${n}`.padStart(200, 'x'));
    const shortened = searchesOf(long);
    expect(shortened.slice(0, 3)).toEqual(SEARCHES);
    expect(shortened).toHaveLength(12);
    expect(shortened.join(' ').length).toBeLessThanOrEqual(2048);
  });
});

test.each<[string, Partial<PodSpec>]>([
  ['that of its node', { dnsPolicy: 'Default' }],
  ['only what it names', { dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'] } }],
  ['on the network of a node, the DNS there', { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }],
])('a pod that asks %s goes on with that', (_what, spec) => {
  expect(asksClusterDns(homePod({ spec: { containers, ...spec } }))).toBe(false);
  expect(dnsOf(spec)).toEqual({});
});

test('without DNS of home each pod travels with what it says', () => {
  const spec = { containers, dnsPolicy: 'ClusterFirst' };
  expect(forgePod(homePod({ spec }), CONTEXT).spec).toMatchObject({ dnsPolicy: 'ClusterFirst' });
});

test('a pod that is over there is no different for it, with either DNS', () => {
  const home = homePod({ spec: { dnsPolicy: 'ClusterFirst' } });
  const context = { ...CONTEXT, homeDns: HOME };
  const { spec, metadata } = forgePod(home, context);
  expect(spec).toMatchObject({ dnsPolicy: 'None', dnsConfig: { searches: SEARCHES } });
  const { labels = {}, annotations = {} } = metadata;
  const remote = remotePod(home, { metadata: { labels, annotations }, ...(spec && { spec }) });
  expect(nextChange(home, remote, context)).toBeUndefined();
  expect(nextChange(home, remote, CONTEXT)).toBeUndefined();
});
