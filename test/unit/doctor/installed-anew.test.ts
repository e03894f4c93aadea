import { describe, expect, test } from '@jest/globals';

import { examine } from '../../../src/doctor/examine.ts';
import type { Facts } from '../../../src/doctor/facts.ts';
import type { Finding } from '../../../src/doctor/finding.ts';
import { condition, facts, ID } from './support/facts.ts';

describe('a cluster that was installed anew, with another ID', () => {
  const NEW = 'n'.repeat(26);
  const named = (name: string, clusterID: string, status: object, spec: object = {}): object => ({
    metadata: { name },
    spec: { clusterID, ...spec },
    status: { clusterName: 'home', clusterID, ...status },
  });
  const LOST = { conditions: [condition('Connected', 'False', 'EndpointUnreachable', 'connection refused')] };
  const UP = { link: { connected: true }, conditions: [condition('Connected', 'True', 'AsExpected')] };
  const linkOf = (given: Facts, subject: string): Finding | undefined =>
    examine(given).find((one) => one.subject === subject && one.tried.startsWith('link of'));

  test.each([
    ['one that was only seen', {}, 'warning', 'kubectl delete foreigncluster old'],
    [
      'one that was let in',
      { incoming: 'Enabled' },
      'problem',
      'tributary unpeer old --force && kubectl delete foreigncluster old',
    ],
  ])('has both told apart, and the old one to be deleted: %s', (_what, spec, level, run) => {
    const old = named('old', ID, LOST, { endpoint: 'h:1', ...spec });
    const dialled = new Map([['old', { endpoint: 'h:1', clusterID: NEW }]]);
    const given = facts({ foreignClusters: [old, named('new', NEW, UP)] }, { dialled });
    expect(linkOf(given, `home (${NEW})`)).toMatchObject({ level: 'ok' });
    expect(linkOf(given, `home (${ID})`)).toMatchObject({ level, run, remedy: expect.stringContaining(NEW) });
    const endpoint = examine(given).find(({ tried }) => tried.startsWith('dial h:1'));
    expect(endpoint).toMatchObject({ level, run, cameBack: `another cluster: ${NEW}, and not ${ID}` });
    expect(examine(given, 'home').some(({ subject }) => subject === `home (${ID})`)).toBe(true);
  });

  test('one that does not answer, with nobody of its name, has both said', () => {
    const given = facts({ foreignClusters: [named('old', ID, LOST)] });
    expect(linkOf(given, 'home')?.remedy).toMatch(
      /is its role cluster running.*gone for good: kubectl delete/u,
    );
  });
});
