import { expect, test } from '@jest/globals';
import { ANNOTATION_APPLIED } from '../../../../src/api/names.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { appliedOf, readApplied } from '../../../../src/provider/forge/applied.ts';
import { nextChange } from '../../../../src/provider/forge/change.ts';
import { CONTEXT, homePod, remotePod } from '../support/pods.ts';

const base = homePod();
const body = remotePod(base);
const next = (spec: Partial<NonNullable<Pod['spec']>>, metadata: Partial<Pod['metadata']> = {}): Pod =>
  homePod({ metadata: { generation: 2, ...metadata }, spec });
const debug = { name: 'debug', image: 'tools' };
const more = { name: 'more', image: 'tools' };
const big = [{ name: 'main', image: 'web:1', resources: { requests: { cpu: '2' } } }];

test('nothing, when all has been carried across', () => {
  expect(nextChange(base, body, CONTEXT)).toBeUndefined();
});

test('the provider’s own changes are no reason', () => {
  const changed = remotePod(base, {
    spec: { containers: [{ name: 'main', image: 'mirror/web:1' }], priority: 7 },
  });
  expect(nextChange(base, changed, CONTEXT)).toBeUndefined();
});

test('labels and annotations: set, and only ours removed', () => {
  const home = homePod({ metadata: { labels: { a: '2' }, annotations: { b: '1' } } });
  const applied = JSON.stringify({ ...appliedOf(base), labels: ['a', 'old'], digest: 'x' });
  const remote = remotePod(base, { metadata: { annotations: { [ANNOTATION_APPLIED]: applied } } });
  const change = nextChange(home, remote, CONTEXT);
  expect(change).toMatchObject({
    subresource: undefined,
    patch: { metadata: { labels: { a: '2', old: null }, annotations: { b: '1' } } },
  });
  expect(change?.patch).not.toHaveProperty('spec');
});

test.each([
  [
    'an image',
    next({ containers: [{ name: 'main', image: 'web:2' }] }),
    { containers: [{ name: 'main', image: 'web:2' }] },
  ],
  ['a deadline', next({ activeDeadlineSeconds: 60 }), { activeDeadlineSeconds: 60 }],
  ['a grace period', next({ terminationGracePeriodSeconds: 1 }), { terminationGracePeriodSeconds: 1 }],
  [
    'a toleration',
    next({ tolerations: [{ key: 'a', operator: 'Exists' }] }),
    { tolerations: [{ key: 'a', operator: 'Exists' }] },
  ],
])('%s', (_what, home, spec) => {
  expect(nextChange(home, body, CONTEXT)?.patch).toMatchObject({ spec });
});

test('a toleration of everything, or of virtual nodes, stays at home', () => {
  const tolerations = [{ operator: 'Exists' }, { key: 'tributary.dev/virtual-node', operator: 'Exists' }];
  expect(nextChange(next({ tolerations }), body, CONTEXT)?.patch).not.toHaveProperty('spec');
});

test('ephemeral containers one by one, then the resize, then the record', () => {
  const home = next({ containers: big, ephemeralContainers: [debug, more] });
  const refused = new Map<string, string>();
  const order: string[] = [];
  for (
    let change = nextChange(home, body, CONTEXT, refused);
    change;
    change = nextChange(home, body, CONTEXT, refused)
  ) {
    order.push(`${change.subresource ?? 'pod'}: ${change.what}`);
    refused.set(change.what, 'no');
  }
  expect(order).toEqual([
    'ephemeralcontainers: ephemeral container "debug"',
    'ephemeralcontainers: ephemeral container "more"',
    'resize: resources',
    'pod: metadata and spec',
    'pod: annotations',
  ]);
});

test('what was refused is on record, and not asked for again in this generation', () => {
  const home = next({ ephemeralContainers: [debug] });
  const refused = new Map([['ephemeral container "debug"', 'x'.repeat(5000)]]);
  const change = nextChange(home, body, CONTEXT, refused);
  const patch = change?.patch as { metadata: { annotations: Record<string, string> } } | undefined;
  const annotations = patch?.metadata.annotations ?? {};
  const remote = remotePod(home, { metadata: { annotations }, spec: { ephemeralContainers: [] } });
  expect(readApplied(remote)?.refused?.['ephemeral container "debug"']).toHaveLength(1024);
  expect(nextChange(home, remote, CONTEXT)).toBeUndefined();
  expect(
    nextChange(next({ ephemeralContainers: [debug] }, { generation: 3 }), remote, CONTEXT)?.subresource,
  ).toBe('ephemeralcontainers');
});

const resized = 'resources';
/** The remote pod after a change was recorded on it. */
const recorded = (
  home: Pod,
  change: ReturnType<typeof nextChange>,
  spec: Partial<NonNullable<Pod['spec']>> = {},
): Pod => {
  const { metadata } = (change?.patch ?? {}) as { metadata?: Partial<Pod['metadata']> };
  return remotePod(home, { metadata: { annotations: metadata?.annotations ?? {} }, spec });
};
const small = { containers: [{ name: 'main', image: 'web:1' }] };

test('what was refused stays on record when only a label changes', () => {
  const home = next({ containers: big });
  const remote = recorded(home, nextChange(home, body, CONTEXT, new Map([[resized, 'too large']])), small);
  const labelled = next({ containers: big }, { labels: { a: '1' } });
  const change = nextChange(labelled, remote, CONTEXT);
  expect(change).toMatchObject({ what: 'metadata and spec', patch: { metadata: { labels: { a: '1' } } } });
  expect(readApplied(recorded(labelled, change))?.refused).toEqual({ [resized]: 'too large' });
});

test('an image that was refused is asked for again in the next generation, also after a label in between', () => {
  const home = next({ containers: [{ name: 'main', image: 'web:2' }] });
  const refused = new Map([['metadata and spec', 'no such image']]);
  let remote = recorded(home, nextChange(home, body, CONTEXT, refused), small);
  expect(readApplied(remote)).toMatchObject({ images: { main: 'web:1' } });
  const labelled = next({ containers: home.spec?.containers ?? [] }, { labels: { a: '1' } });
  remote = recorded(labelled, nextChange(labelled, remote, CONTEXT), small);
  const third = next(
    { containers: home.spec?.containers ?? [], activeDeadlineSeconds: 60 },
    { generation: 3 },
  );
  expect(nextChange(third, remote, CONTEXT)?.patch).toMatchObject({
    spec: { containers: [{ name: 'main', image: 'web:2' }], activeDeadlineSeconds: 60 },
  });
});

test('a resize that was refused for quota is asked for until there is room, then the record says so', () => {
  const home = next({ containers: big });
  const full = 'exceeded quota: tributary, requested: cpu=2';
  const remote = recorded(home, nextChange(home, body, CONTEXT, new Map([[resized, full]])), small);
  expect(nextChange(home, remote, CONTEXT)?.subresource).toBe('resize');
  expect(nextChange(home, remote, CONTEXT, new Map([[resized, full]]))).toBeUndefined();
  const there = { ...remote, spec: { ...remote.spec, containers: big } } as Pod;
  const last = nextChange(home, there, CONTEXT);
  expect(last?.what).toBe('annotations');
  const done = recorded(home, last, { containers: big });
  expect(readApplied(done)).not.toHaveProperty('refused');
  expect(nextChange(home, done, CONTEXT)).toBeUndefined();
});

test('resources of the pod as a whole are resized, too', () => {
  const resources = { requests: { cpu: '2' }, limits: { memory: '2Gi' } };
  const home = next({ resources });
  expect(nextChange(home, body, CONTEXT)).toMatchObject({
    subresource: 'resize',
    patch: { spec: { resources } },
  });
  expect(nextChange(home, remotePod(base, { spec: { resources } }), CONTEXT)?.subresource).toBeUndefined();
});

test('resources that the provider filled in are its own', () => {
  const filled = [{ name: 'main', image: 'web:1', resources: { requests: { cpu: '2', memory: '1Gi' } } }];
  expect(
    nextChange(next({ containers: big }), remotePod(base, { spec: { containers: filled } }), CONTEXT)
      ?.subresource,
  ).toBeUndefined();
});

test.each([
  '',
  '{',
  'null',
  '7',
  '{"generation":"1"}',
  '{"generation":1,"digest":"x","images":{},"labels":[7],"annotations":[]}',
])('a damaged record (%s): everything is carried across again', (text) => {
  const remote = remotePod(base, { metadata: { annotations: { [ANNOTATION_APPLIED]: text } } });
  expect(readApplied(remote)).toBeUndefined();
  expect(nextChange(base, remote, CONTEXT)?.what).toBe('metadata and spec');
});
