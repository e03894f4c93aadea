import { expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import type { Facts } from '../../../src/doctor/facts.ts';
import type { Finding } from '../../../src/doctor/finding.ts';
import { condition, facts, NOW } from './support/facts.ts';

/** Three nodes with the gateway on the first; the third is not Ready. */
function overlay(silentNodes: string[] | undefined): Facts {
  const node = (number: number): object => ({
    name: `h${number}`,
    address: `172.31.0.1${number}`,
    external: `10.70.0.${number}`,
    pods: [],
  });
  const map = (name: string, data: object): object => ({
    metadata: { name },
    data: { 'network.json': JSON.stringify(data) },
  });
  return facts({
    configMaps: [
      map('tributary-network', { nodes: [1, 2, 3].map(node), vxlan: { vni: 1, port: 4799 } }),
      map('tributary-gateway', { publicKey: '', endpoints: [], silentNodes }),
    ],
    leases: [
      {
        metadata: { name: 'tributary-gateway' },
        spec: { holderIdentity: 'h1', renewTime: new Date(NOW).toISOString() },
      },
    ],
    nodes: [{ metadata: { name: 'h3' }, status: { conditions: [condition('Ready', 'Unknown', 'Gone')] } }],
  });
}

const findings = (silent: string[] | undefined): Finding[] =>
  examine(overlay(silent)).filter(({ check }) => check === 'overlay');

test('names the nodes that do not answer, and between which addresses UDP must be let through', () => {
  const [found, ...others] = findings(['h2', 'h3', 'gone']);
  // Kubernetes says that h3 is not Ready.
  expect(others).toEqual([]);
  expect(found).toMatchObject({
    level: 'problem',
    tried: 'VXLAN between node h1 of the gateway and node h2',
  });
  expect(found?.remedy).toMatch(
    /from 172\.31\.0\.11:4799 to 172\.31\.0\.12:4799, and back from 172\.31\.0\.12:4799 to/u,
  );
});

test.each([
  ['they answer', [], 'ok', /they answer/u],
  ['the one that does not is not Ready', ['h3'], 'ok', /they answer/u],
  ['the gateway does not measure it', undefined, 'unknown', /not measured/u],
] as const)('nothing is wrong where %s', (_where, silent, level, says) => {
  const found = findings(silent && [...silent]);
  expect(found.map((each) => each.level)).toEqual([level]);
  expect(found[0]?.cameBack).toMatch(says);
});
