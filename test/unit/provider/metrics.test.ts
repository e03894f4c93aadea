import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { CONDITION_OFFLOADED } from '../../../src/api/names.ts';
import type { Node, Pod } from '../../../src/api/wire.ts';
import { virtualNodeMetrics } from '../../../src/provider/metrics.ts';

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
  const state: { node?: Node; pods: Pod[] } = { pods: [] };
  virtualNodeMetrics(registry, {
    nodeName: 'milan',
    node: () => state.node,
    pods: () => state.pods,
    isReachable: () => true,
  });
  const lines = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#') && !/ 0$|^$/u.test(line));
  expect(await lines()).toEqual(['tributary_virtual_node_foreign_reachable{node="milan"} 1']);
  state.node = node;
  state.pods = [pod('Running'), pod('Succeeded'), pod('Pending', 'ExceededQuota'), pod('Pending')];
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
