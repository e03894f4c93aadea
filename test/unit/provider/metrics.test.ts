import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { CONDITION_OFFLOADED } from '../../../src/api/names.ts';
import type { Node, Pod } from '../../../src/api/wire.ts';
import { virtualNodeMetrics } from '../../../src/provider/metrics.ts';
import { PodTally } from '../../../src/provider/pod-tally.ts';

const pod = (phase: string, refused?: string): Pod =>
  ({
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'web', resources: { requests: { cpu: '250m', memory: '1Mi' } } }] },
    status: {
      phase,
      ...(refused && { conditions: [{ type: CONDITION_OFFLOADED, status: 'False', reason: refused }] }),
    },
  }) as unknown as Pod;

const node = {
  metadata: { name: 'milan' },
  status: { allocatable: { cpu: '1500m', memory: '1Gi' }, conditions: [{ type: 'Ready', status: 'True' }] },
} as unknown as Node;

test('a virtual node shows what it has, what is asked of it, and why pods do not run', async () => {
  const registry = new Registry();
  const state: { node?: Node } = {};
  const tally = new PodTally();
  virtualNodeMetrics(registry, {
    nodeName: 'milan',
    node: () => state.node,
    pods: tally,
    isReachable: () => true,
  });
  const lines = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#') && !/ 0$|^$/u.test(line));
  expect(await lines()).toEqual(['tributary_virtual_node_foreign_reachable{node="milan"} 1']);
  state.node = node;
  const pods = [pod('Running'), pod('Succeeded'), pod('Pending', 'ExceededQuota'), pod('Pending')];
  for (const [index, each] of pods.entries()) tally.change(String(index), each, undefined);
  expect(await lines()).toEqual([
    'tributary_virtual_node_ready{node="milan"} 1',
    'tributary_virtual_node_foreign_reachable{node="milan"} 1',
    'tributary_virtual_node_allocatable_cpu_cores{node="milan"} 1.5',
    'tributary_virtual_node_allocatable_memory_bytes{node="milan"} 1073741824',
    // The one that has finished asks for nothing.
    'tributary_virtual_node_requested_cpu_cores{node="milan"} 0.75',
    'tributary_virtual_node_requested_memory_bytes{node="milan"} 3145728',
    'tributary_virtual_node_pods{node="milan",phase="Pending"} 2',
    'tributary_virtual_node_pods{node="milan",phase="Running"} 1',
    'tributary_virtual_node_pods{node="milan",phase="Succeeded"} 1',
    'tributary_virtual_node_refused_pods{node="milan",reason="ExceededQuota"} 1',
  ]);
});

test('the tally of pods follows what becomes of each', () => {
  const tally = new PodTally();
  const [pending, running] = [pod('Pending'), pod('Running')];
  tally.change('a', pending, undefined);
  tally.change('b', pending, undefined);
  tally.change('a', running, pending);
  expect(tally.phases()).toEqual(
    new Map([
      ['Pending', 1],
      ['Running', 1],
    ]),
  );
  expect(tally.requested().get('cpu')).toBe(500n);
  const larger = structuredClone(running);
  larger.spec?.containers.push({ name: 'more', resources: { requests: { cpu: '1' } } });
  tally.change('a', larger, running);
  expect(tally.requested().get('cpu')).toBe(1500n);
  // The last state that a deletion brings need not be the one that was counted.
  tally.change('a', undefined, pod('Failed'));
  tally.change('b', undefined, pending);
  expect(tally.requested().get('cpu') ?? 0n).toBe(0n);
  expect([...tally.phases().values()].every((count) => count === 0)).toBe(true);
});
