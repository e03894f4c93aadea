import { expect, test } from '@jest/globals';

import type { ClusterFacts } from '../../../../src/cli/install/facts.ts';
import { checkOneProcess, planLines } from '../../../../src/cli/install/plan.ts';
import { defaultValues, type InstallValues } from '../../../../src/deploy/installation/values.ts';

const nodes = (...names: string[]): { nodes: { name: string; addresses: string[] }[] } => ({
  nodes: names.map((name) => ({ name, addresses: [] })),
});

test('one process is refused where it would leave nodes without a network', () => {
  const tunnels = { oneProcess: true, network: true };
  expect(() => checkOneProcess(nodes('a', 'b'), tunnels, false)).toThrow(
    'one process sets up the network of its own node only, and this cluster has 2: a, b. Pods on the others would reach no peer. ' +
      'Leave --one-process false, or build no tunnels: --network false',
  );
  checkOneProcess(nodes('a'), tunnels, false);
  checkOneProcess(nodes('a', 'b'), { oneProcess: true, network: false }, false);
  checkOneProcess(nodes('a', 'b'), { oneProcess: false, network: true }, false);
});

test('one process that is recorded is told as such, with what to do', () => {
  expect(() => checkOneProcess(nodes('a', 'b'), { oneProcess: true, network: true }, true)).toThrow(
    'this installation is recorded with --one-process true. But one process sets up the network of its own node only, and this cluster ' +
      'has 2: a, b. Pods on the others would reach no peer. Add --one-process false to give each role a process of its own; or build ' +
      'no tunnels: add --network false',
  );
});

test.each<[Partial<InstallValues>, string, RegExp]>([
  [{}, 'processes', /one for each role, peer and node$/],
  [{ agents: 'shared' }, 'processes', /one for each role and node, and one for all peers$/],
  [{ agents: 'shared', oneProcess: true }, 'processes', /one for all roles and peers$/],
  [{}, 'tunnels', /, WireGuard of the kernel where it has it, else wireguard-go$/],
  [{ wireguard: 'kernel' }, 'tunnels', /, WireGuard of the kernel only$/],
  [{ wireguard: 'userspace' }, 'tunnels', /, wireguard-go only$/],
  [{ wireguard: 'kernel', network: false }, 'tunnels', / none$/],
])('the summary says what was chosen: %j', (chosen, what, says) => {
  const none = { cidrs: [], source: '' };
  const facts: ClusterFacts = {
    version: 'v1.36.3',
    ...nodes('a'),
    pods: none,
    services: none,
    cni: '',
    usedNodePorts: [],
    forbidden: [],
    withoutWireGuard: [],
    unserved: [],
  };
  const lines = planLines(facts, { ...defaultValues(), ...chosen }, '0.1.0');
  expect(lines.find((line) => line.trim().startsWith(what))).toMatch(says);
});
