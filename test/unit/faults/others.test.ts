/** What is no history of pods: objects of strangers, writes, secrets, processes, and the words of the caller. */
import { describe, expect, test } from '@jest/globals';

import { processFaults, processIn } from '../../../faults/auditor/checks/processes.ts';
import { copyDifferences } from '../../../faults/auditor/checks/copies.ts';
import { quietFaults, type Written } from '../../../faults/auditor/checks/quiet.ts';
import { canariesIn, canaryOf, overlap } from '../../../faults/auditor/checks/secrets.ts';
import { isStranger, strangerFaults } from '../../../faults/auditor/checks/strangers.ts';
import { commandOf } from '../../../faults/auditor/commands.ts';
import { configOf } from '../../../faults/auditor/config.ts';
import * as contract from '../../../faults/auditor/contract.ts';
import { type RawObject, type StoredObject, storedObject } from '../../../faults/auditor/snapshot-model.ts';
import * as names from '../../../src/api/names.ts';
import { fc } from '../../support/property.ts';

describe('objects of strangers', () => {
  const ours = { namespaces: new Set(['shop']), nodes: new Set(['milan']) };
  const object = (fields: Partial<RawObject['metadata']> = {}, rest: object = {}): RawObject => ({
    metadata: { name: 'a', namespace: 'other', uid: 'u', resourceVersion: '1', ...fields },
    ...rest,
  });
  const stored = (
    fields?: Partial<RawObject['metadata']>,
    rest?: object,
    resource = 'configmaps',
  ): StoredObject => storedObject(resource, object(fields, rest));
  const faults = (before: StoredObject[], after: StoredObject[]): string[] =>
    strangerFaults({ cluster: 'home', objects: before }, { cluster: 'home', objects: after }, ours).map(
      ({ what }) => what,
    );
  const by = (manager: string, time: string): Partial<RawObject['metadata']> => ({
    resourceVersion: time,
    managedFields: [{ manager, operation: 'Update', time, fieldsV1: {} }],
  });

  test.each([
    ['nothing', {}, {}, []],
    [
      'a value',
      { data: { a: '1' } },
      { data: { a: '2' } },
      [
        'configmaps other/a in home was changed (resourceVersion 1, now 2), by somebody whom managedFields do not name',
      ],
    ],
  ])('%s was changed', (_what, before, after, expected) => {
    const version = JSON.stringify(before) === JSON.stringify(after) ? '1' : '2';
    expect(faults([stored({}, before)], [stored({ resourceVersion: version }, after)])).toEqual(expected);
  });

  test('a label of ours on it is a write', () => {
    const after = stored({ resourceVersion: '2', labels: { 'tributary.dev/peer': 'x' } });
    expect(faults([stored()], [after])).toHaveLength(1);
  });

  test('who has written counts: Kubernetes itself may, others may not, and both together may not', () => {
    const [old, by2] = [stored(by('kubectl', '1')), stored(by('kube-controller-manager', '2'))];
    expect(faults([old], [by2])).toEqual([]);
    expect(faults([old], [stored(by('tributary', '2'))])).toEqual([
      'configmaps other/a in home was changed (resourceVersion 1, now 2), by tributary',
    ]);
    expect(faults([], [by2])).toEqual([]);
    expect(faults([], [stored(by('tributary', '2'))])).toHaveLength(1);
  });

  test('what went, and what was made anew', () => {
    expect(faults([stored()], [])).toEqual(['configmaps other/a in home is gone (uid u)']);
    expect(faults([stored()], [stored({ uid: 'v' })])[0]).toContain(
      'was deleted and made anew (uid u, now v)',
    );
  });

  test('the status of a Node is written all the time, its labels are not', () => {
    const node = (status: object, fields: object = {}): StoredObject =>
      stored({ namespace: '', ...fields }, { status }, 'nodes');
    expect(faults([node({ at: 1 })], [node({ at: 2 }, { resourceVersion: '2' })])).toEqual([]);
    expect(faults([node({})], [node({}, { resourceVersion: '2', labels: { a: 'b' } })])).toHaveLength(1);
  });

  test.each([
    ['configmaps', 'other/a', [], true],
    ['configmaps', 'shop/a', [], false],
    ['secrets', 'tributary-system/a', [], false],
    ['namespaces', '/shop', [], false],
    ['namespaces', '/other', ['tributary.dev/peer'], true],
    ['nodes', '/milan', [], false],
    ['nodes', '/real', ['tributary.dev/cluster'], true],
    ['clusterroles.rbac.authorization.k8s.io', '/tributary-cluster', [], false],
    ['clusterroles.rbac.authorization.k8s.io', '/edit', [], true],
    ['persistentvolumes', '/tributary-1234', [], false],
    ['foreignclusters.tributary.dev', '/milan', [], false],
    ['services', 'other/a', ['tributary.dev/offered-service'], false],
    ['events', 'other/a', [], false],
    ['leases.coordination.k8s.io', 'other/a', [], false],
    ['endpointslices.discovery.k8s.io', 'default/kubernetes', [], false],
  ])('%s %s with keys %j is a stranger: %p', (resource, path, keys, expected) => {
    const [namespace = '', name = ''] = path.split('/');
    expect(isStranger({ ...stored(), resource, namespace, name, keys }, ours)).toBe(expected);
  });
});

test('writes in the quiet window', () => {
  const one = (name: string, mark: string): Written => ({ cluster: 'home', name, mark });
  const faults = quietFaults(
    [one('a', '1'), one('b', '1'), one('c', '1')],
    [one('a', '1'), one('b', '2'), one('d', '1')],
    3,
  );
  expect(faults.map(({ what }) => what)).toEqual([
    'b in home was written (1, now 2) within 3 s, though there was nothing to do',
    'c in home went within 3 s, though there was nothing to do',
    'd in home was made within 3 s, though there was nothing to do',
  ]);
});

test('copies that differ', () => {
  const copy = {
    cluster: 'milan',
    name: 'configmaps tenant/a',
    homeName: 'shop/a',
    home: '1',
    remote: '2',
    isImmutable: false,
  };
  const faults = copyDifferences([copy, { ...copy, remote: '1' }, { ...copy, isImmutable: true }]);
  expect(faults.map(({ what }) => what)).toEqual([
    'configmaps tenant/a in milan has other data (hash 2) than shop/a at home (hash 1)',
  ]);
});

describe('canaries', () => {
  test('are found plain, escaped, and wherever they begin within base64', () => {
    const value = fc.string({ minLength: 8, maxLength: 40 });
    fc.assert(
      fc.property(value, fc.string(), fc.string(), (secret, before, after) => {
        const canaries = [canaryOf(secret, 0)];
        const whole = before + secret + after;
        for (const text of [
          whole,
          JSON.stringify({ whole }),
          Buffer.from(whole).toString('base64'),
          Buffer.from(whole).toString('base64url'),
        ])
          expect(canariesIn(text, canaries)).toHaveLength(1);
      }),
    );
  });

  test('are not found where they are not', () => {
    const canaries = [canaryOf('canary-1234', 0)];
    expect(canariesIn(`canary-123 ${Buffer.from('canary-1934').toString('base64')}`, canaries)).toEqual([]);
    expect(overlap(canaries)).toBeGreaterThanOrEqual('canary-1234'.length - 1);
    expect(overlap([])).toBe(0);
  });
});

describe('processes', () => {
  const rest = Array.from({ length: 49 }, (_, index) => String(index + 4)).join(' ');
  test.each([
    [`7 (node) S ${rest}`, { name: 'node', started: '22' }],
    [`7 (a (b) c) R ${rest}`, { name: 'a (b) c', started: '22' }],
    [`7 (node) Z ${rest}`, undefined],
  ])('%s', (stat, expected) => {
    expect(processIn(stat)).toEqual(expected);
  });

  test('only those that ended unannounced count', () => {
    const one = { pid: 7, started: '1', name: 'node', isKilled: false };
    expect(processFaults([one, { ...one, endedAt: 0, isKilled: true }])).toEqual([]);
    expect(processFaults([{ ...one, endedAt: 0 }])).toHaveLength(1);
  });
});

describe('the words of the caller', () => {
  test.each([
    '{"do":"guess"}',
    '{"do":"begin"}',
    '{"do":"watch-process","pid":"x"}',
    '{"do":"lost","cluster":"a"}',
    '{',
  ])('no command: %s', (line) => expect(() => commandOf(line)).toThrow(/./u));
  test('commands', () => {
    expect(commandOf('{"do":"killed","pid":7}')).toEqual({ do: 'killed', pid: 7 });
    expect(commandOf('{"do":"lost","cluster":"a","uid":"b"}')).toEqual({
      do: 'lost',
      cluster: 'a',
      uid: 'b',
    });
  });

  const config = { home: { kubeconfig: '/h' }, providers: [] };
  test('lists and bounds may be left out', () => {
    expect(configOf(config)).toMatchObject({
      hosts: [],
      canaries: [],
      bounds: { settleSeconds: 60, quietSeconds: 3, skewSeconds: 5 },
    });
  });
  test.each([
    [{ ...config, home: {} }, 'home.kubeconfig'],
    [{ ...config, canaries: ['short'] }, 'canaries[0] is too short'],
    [{ ...config, bounds: { settleSeconds: 0 } }, 'bounds.settleSeconds'],
    [{ ...config, bounds: { settleMinutes: 1 } }, 'bounds.settleMinutes'],
    [
      { ...config, providers: [{ name: 'home', kubeconfig: '/p', node: 'n', namespaces: [] }] },
      'must differ',
    ],
  ])('%j: %s', (value, message) => {
    expect(() => configOf(value)).toThrow(message);
  });
});

test('the names that the auditor reads in the documents are those that the program writes', () => {
  expect(contract.HOME_UID).toBe(names.LABEL_HOME_UID);
  expect(contract.MANAGED_BY).toBe(names.LABEL_MANAGED_BY);
  expect(contract.RECREATED).toBe(names.ANNOTATION_RECREATED);
  expect(contract.RESULT).toBe(names.ANNOTATION_RESULT);
  expect(contract.OFFLOADED).toBe(names.CONDITION_OFFLOADED);
  expect(contract.STATUS_CUT).toBe(names.CONDITION_STATUS_CUT);
  expect(contract.LOST).toBe(names.OFFLOADED_REASONS.lost);
  expect(contract.DAEMON_SET).toBe(names.OFFLOADED_REASONS.daemonSet);
});
