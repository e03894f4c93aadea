import { expect, test } from '@jest/globals';

import { changesTo, type EtcdState } from '../../../lab/etcd-state.ts';

const encode = (text: string): string => Buffer.from(text).toString('base64');
const state = (entries: Record<string, string>): EtcdState =>
  new Map(Object.entries(entries).map(([key, value]) => [encode(key), encode(value)]));

test('what was added goes, what was changed or removed comes back', () => {
  const wanted = state({ '/registry/pods/a': '1', '/registry/pods/b': '1', '/registry/pods/c': '1' });
  const current = state({ '/registry/pods/a': '1', '/registry/pods/b': '2', '/registry/pods/d': '1' });
  expect(changesTo(current, wanted)).toEqual([
    { key: encode('/registry/pods/d') },
    { key: encode('/registry/pods/b'), value: encode('1') },
    { key: encode('/registry/pods/c'), value: encode('1') },
  ]);
});

test('Leases that programs renew and keys that are not of Kubernetes are left alone; other Leases go', () => {
  const wanted = state({
    '/registry/leases/kube-node-lease/n': 'old',
    '/registry/leases/kube-system/kube-scheduler': 'old',
    '/registry/leases/kube-node-lease/gone': 'old',
  });
  const current = state({
    '/registry/leases/kube-node-lease/n': 'new',
    '/registry/leases/kube-node-lease/milan': 'of a node that a test made',
    '/registry/leases/kube-system/kube-scheduler': 'new',
    '/registry/leases/kube-system/apiserver-1': 'new',
    '/registry/leases/tenant/home': 'new',
    compact_rev_key: '7',
  });
  expect(changesTo(current, wanted)).toEqual([
    { key: encode('/registry/leases/kube-node-lease/milan') },
    { key: encode('/registry/leases/tenant/home') },
  ]);
});
