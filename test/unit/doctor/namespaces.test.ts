import { expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import type { Facts } from '../../../src/doctor/facts.ts';
import type { Level } from '../../../src/doctor/finding.ts';
import { condition, facts, ID } from './support/facts.ts';

/** What the doctor says of namespaces and of pods that are not where they should be, and of who wants nothing. */

const cluster = (status: object, spec: object = {}): object => ({
  metadata: { name: 'm' },
  spec: { clusterID: ID, ...spec },
  status: { clusterName: 'milan', clusterID: ID, ...status },
});
const sentAway = (nodeName: string | undefined, conditions: readonly object[]): object => ({
  metadata: { namespace: 'shop', name: 'web' },
  spec: { ...(nodeName !== undefined && { nodeName }), nodeSelector: { 'tributary.dev/virtual-node': 'v' } },
  status: { phase: 'Pending', conditions },
});
const offloading = (status: string, reason: string, message: string): object => ({
  metadata: { namespace: 'shop', name: 'offloading' },
  spec: {},
  status: { conditions: [condition('Ready', status, reason, message)] },
});

interface Case {
  name: string;
  given: Facts;
  check: string;
  level: Level;
  says: RegExp;
  /** In the remedy or its command. */
  todo?: RegExp;
}

const CASES: readonly Case[] = [
  {
    name: 'a pod that its own template sends to a virtual node, in a namespace that is not offloaded',
    given: facts({
      virtualNodes: [
        { metadata: { name: 'v' }, spec: { kubeconfigSecretRef: { namespace: 'a', name: 'b' } } },
      ],
      pods: [sentAway('v', [condition('tributary.dev/Offloaded', 'False', 'NamespaceNotOffloaded', 'no')])],
    }),
    check: 'pods',
    level: 'problem',
    says: /NamespaceNotOffloaded: no/u,
    todo: /take the nodeSelector tributary.dev\/virtual-node out of it/u,
  },
  {
    name: 'one like it that no node takes',
    given: facts({ pods: [sentAway(undefined, [])] }),
    check: 'pods',
    level: 'problem',
    says: /its own template sends it there; its namespace is not offloaded/u,
    todo: /take the nodeSelector tributary.dev\/virtual-node out of it/u,
  },
  {
    name: 'a namespace that is offloaded to no cluster',
    given: facts({ offloadings: [offloading('False', 'NoClusterSelected', 'there is no virtual node')] }),
    check: 'namespaces',
    level: 'problem',
    says: /NoClusterSelected: there is no virtual node/u,
    todo: /tributary unoffload shop.*describe namespaceoffloading/u,
  },
  {
    name: 'a namespace whose pods are at home still',
    given: facts({ offloadings: [offloading('False', 'PodsAtHome', 'restart them')] }),
    check: 'namespaces',
    level: 'warning',
    says: /restart them/u,
    todo: /as the message says/u,
  },
  {
    name: 'a namespace that comes home',
    given: facts({ offloadings: [offloading('False', 'Ending', 'pods come home')] }),
    check: 'namespaces',
    level: 'ok',
    says: /pods come home/u,
  },
  {
    name: 'a provider whose peer has ended the peering asks for nothing, also if it uses others',
    given: facts({
      acceptancePolicies: [{ metadata: { name: 'others' } }],
      foreignClusters: [
        cluster(
          {
            outgoing: { phase: 'None', reason: 'NoPolicyMatches', message: 'no AcceptancePolicy selects it' },
            incoming: { phase: 'None', reason: 'NotWanted' },
          },
          { incoming: 'Enabled' },
        ),
      ],
    }),
    check: 'policies',
    level: 'ok',
    says: /no AcceptancePolicy/u,
  },
];

test.each(CASES)('$name', ({ given, check, level, says, todo }) => {
  const findings = examine(given).filter((finding) => finding.check === check && finding.level === level);
  const found = findings.find(({ cameBack }) => says.test(cameBack));
  expect({ found, all: examine(given) }).toMatchObject({ found: { check, level } });
  if (todo !== undefined) expect(`${found?.remedy ?? ''} ${found?.run ?? ''}`).toMatch(todo);
});
