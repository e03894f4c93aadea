import { expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import { condition, facts, ID } from './support/facts.ts';

const outgoing = (reason: string, message: string): object => ({
  metadata: { name: 'm' },
  spec: { clusterID: ID },
  status: {
    clusterID: ID,
    outgoing: { phase: 'Established', reason, message },
    incoming: { phase: 'None', reason: 'NotWanted' },
  },
});

test.each([
  ['OfferRefused', 'cpu: 0.03 EUR asked', /raise maxPrices/u],
  ['Withdrawn', 'the provider has withdrawn its offer', /tributary unpeer/u],
])('an offer that is %s while it is in use is a warning', (reason, message, remedy) => {
  const given = facts({ foreignClusters: [outgoing(reason, message)] });
  const finding = examine(given).find(({ check, tried }) => check === 'policies' && tried.startsWith('use '));
  expect(finding).toMatchObject({
    level: 'warning',
    cameBack: `Established (${reason}): ${message}`,
    remedy: expect.stringMatching(remedy),
    run: `kubectl describe advertisement ${ID}`,
  });
});

test('a virtual node that takes no new pods is a warning', () => {
  const node = {
    metadata: { name: 'v' },
    spec: { kubeconfigSecretRef: { namespace: 'a', name: 'b' } },
    status: { conditions: [condition('Ready', 'True', 'Closed', 'why')] },
  };
  const finding = examine(facts({ virtualNodes: [node] })).find(({ check }) => check === 'virtual-nodes');
  expect(finding).toMatchObject({
    level: 'warning',
    cameBack: 'Closed: why',
    remedy: expect.stringContaining('room elsewhere'),
  });
});
