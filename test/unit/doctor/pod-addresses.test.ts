import { expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import type { Finding } from '../../../src/doctor/finding.ts';
import { facts, ID } from './support/facts.ts';

const NODES = [{ name: 'n1', address: '172.31.0.11', external: '10.70.0.2', pods: ['10.244.0.0/24'] }];
const pod = (name: string, ips: string[], more: { spec?: object; status?: object } = {}): object => ({
  metadata: { namespace: 'shop', name },
  spec: { nodeName: 'n1', ...more.spec },
  status: { phase: 'Running', podIPs: ips.map((ip) => ({ ip })), ...more.status },
});
const found = (
  pods: object[],
  ranges = ['10.244.0.0/24'],
  tunnels = [{ metadata: { name: ID } }],
): Finding[] =>
  examine(
    facts({
      configMaps: [
        {
          metadata: { name: 'tributary-network' },
          data: { 'network.json': JSON.stringify({ pods: ranges, nodes: NODES }) },
        },
      ],
      tunnels: tunnels.map((tunnel) => ({ spec: {}, ...tunnel })),
      pods,
    }),
  ).filter(({ check, subject }) => check === 'addresses' && subject === 'this cluster');

test('names pods with addresses of which peers are not told, and what to do', () => {
  const [one, ...others] = found([pod('in', ['10.244.0.5']), pod('out', ['10.9.0.5'])]);
  expect(others).toEqual([]);
  expect(one).toMatchObject({ level: 'problem' });
  expect(one?.cameBack).toBe(
    '1 of 2 pods lie out of 10.244.0.0/24: peers cannot reach them. The first: shop/out (10.9.0.5)',
  );
  expect(one?.remedy).toContain('--pod-cidr');
});

test.each([
  ['in the range of another node, or of none', pod('a', ['10.244.7.5']), ['10.244.0.0/16']],
  ['of the host', pod('a', ['172.31.0.11'], { spec: { hostNetwork: true } }), undefined],
  ['of a pod that has ended', pod('a', ['10.9.0.5'], { status: { phase: 'Succeeded' } }), undefined],
  ['of a pod elsewhere', pod('a', ['100.64.0.5'], { spec: { nodeName: 'virtual' } }), undefined],
  ['of a pod without one', pod('a', []), undefined],
  ['of a second family', pod('a', ['10.244.0.5', 'fd00::5']), undefined],
])('an address %s is fine', (_which, given, ranges) => {
  const findings = found([pod('in', ['10.244.0.6']), given], ranges);
  expect(findings.map(({ level }) => level)).toEqual(['ok']);
});

test('says nothing where there is no peer', () => {
  expect(found([pod('out', ['10.9.0.5'])], undefined, [])).toEqual([]);
});
