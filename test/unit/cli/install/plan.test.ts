import { expect, test } from '@jest/globals';

import { checkOneProcess } from '../../../../src/cli/install/plan.ts';

const nodes = (...names: string[]): { nodes: { name: string; addresses: string[] }[] } => ({
  nodes: names.map((name) => ({ name, addresses: [] })),
});

test('one process is refused where it would leave nodes without a network', () => {
  const tunnels = { oneProcess: true, network: true };
  expect(() => checkOneProcess(nodes('a', 'b'), tunnels)).toThrow(
    'one process sets up the network of its own node only, and this cluster has 2: a, b.',
  );
  checkOneProcess(nodes('a'), tunnels);
  checkOneProcess(nodes('a', 'b'), { oneProcess: true, network: false });
  checkOneProcess(nodes('a', 'b'), { oneProcess: false, network: true });
});
