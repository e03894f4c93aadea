import { expect, test } from '@jest/globals';
import { ANNOTATION_WHEN_LOST } from '../../../../src/api/names.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { nextChange } from '../../../../src/provider/forge/change.ts';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { whenLostOf } from '../../../../src/api/when-lost.ts';
import { CONTEXT, homePod, remotePod } from '../support/pods.ts';

const owned = (apiVersion: string, kind: string, controller = true): Pod =>
  homePod({ metadata: { ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'o', controller }] } });
const bare = (restartPolicy: 'Always' | 'OnFailure' | 'Never', chosen?: string): Pod =>
  homePod({
    spec: { restartPolicy },
    ...(chosen !== undefined && { metadata: { annotations: { [ANNOTATION_WHEN_LOST]: chosen } } }),
  });

test.each<[string, Pod, string]>([
  ['a ReplicaSet', owned('apps/v1', 'ReplicaSet'), 'Replace'],
  ['a ReplicationController', owned('v1', 'ReplicationController'), 'Replace'],
  ['somebody else’s ReplicaSet', owned('example.org/v1', 'ReplicaSet'), 'WhenFenced'],
  ['a StatefulSet', owned('apps/v1', 'StatefulSet'), 'WhenFenced'],
  ['a Job', owned('batch/v1', 'Job'), 'WhenFenced'],
  ['a controller that we do not know', owned('example.org/v1', 'Robot'), 'WhenFenced'],
  ['an owner that is no controller', owned('apps/v1', 'ReplicaSet', false), 'WhenFenced'],
  ['nobody, and runs always', bare('Always'), 'WhenFenced'],
  ['nobody, and runs until it succeeds', bare('OnFailure'), 'Leave'],
  ['nobody, and runs once', bare('Never'), 'Leave'],
  ['nobody, and says so itself', bare('Never', 'Replace'), 'Replace'],
  ['nobody, and says what is not to be had', bare('Never', 'replace'), 'Leave'],
])('of a pod of %s', (_name, home, expected) => {
  expect(whenLostOf(home)).toBe(expected);
  expect(forgePod(home, CONTEXT).metadata.annotations).toMatchObject({ [ANNOTATION_WHEN_LOST]: expected });
});

test('what the guardian writes is neither a difference nor taken away by a change', () => {
  const home = homePod({ metadata: { annotations: { mood: 'good' } } });
  const made = remotePod(home);
  const ours = {
    'tributary.dev/recreated': '{"count":1,"restarts":{}}',
    'tributary.dev/result': 'true',
    'tributary.dev/when-lost': 'Replace',
  };
  const remote = remotePod(home, {
    metadata: { uid: 'another', annotations: { ...made.metadata.annotations, ...ours } },
  });
  expect(nextChange(home, remote, CONTEXT)).toBeUndefined();
  const changed = homePod({
    metadata: { generation: 2 },
    spec: { containers: [{ name: 'main', image: 'web:2' }] },
  });
  const text = JSON.stringify(nextChange(changed, remote, CONTEXT)?.patch);
  expect(text).toContain('web:2');
  expect(text).toContain('"mood":null');
  for (const key of Object.keys(ours)) expect(text).not.toContain(key);
});
