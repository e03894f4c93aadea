import { expect, test } from '@jest/globals';
import type { ForeignCluster } from '../../../../src/api/foreign-cluster.ts';
import { isAcquainted } from '../../../../src/peering/clusters/acquaintance.ts';
import { wishOf, type WishInputs } from '../../../../src/peering/clusters/wish.ts';
import type { PeeringReport } from '../../../../src/peering/ports.ts';
import { acceptance, byPerson, discovered, linked, MILAN, NOW, sharing } from './support/objects.ts';

const acquainted = (
  clusters: ForeignCluster[],
  policies: WishInputs['policies'],
  ...phases: PeeringReport['phase'][]
): boolean =>
  isAcquainted(
    wishOf({ clusterID: MILAN, clusters, view: linked(MILAN), policies, joinToken: undefined, now: NOW }),
    phases.map((phase) => ({ phase })),
  );
const none = { acceptance: [], sharing: [] };

test('a cluster that only came in is a stranger, also to a policy that means anyone', () => {
  const anyone = { acceptance: [acceptance({ anyone: true })], sharing: [sharing({ anyone: true })] };
  expect(acquainted([], anyone)).toBe(false);
  expect(acquainted([discovered(MILAN)], none)).toBe(false);
  expect(acquainted([discovered(MILAN)], anyone, 'Pending', 'Offered')).toBe(false);
});

test('one that somebody here means, or with which something is agreed on, is none', () => {
  const chosen = { acceptance: [], sharing: [sharing({ clusterIDs: [MILAN] })] };
  expect(acquainted([discovered(MILAN)], chosen)).toBe(true);
  expect(acquainted([discovered(MILAN, { outgoing: 'Enabled' })], none)).toBe(true);
  expect(acquainted([discovered(MILAN, { incoming: 'Enabled' })], none)).toBe(true);
  expect(acquainted([byPerson('milan', { clusterID: MILAN })], none)).toBe(true);
  expect(acquainted([discovered(MILAN)], none, 'None', 'Established')).toBe(true);
  expect(acquainted([], none, 'Ending')).toBe(true);
});
