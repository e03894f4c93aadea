import { describe, expect, test } from '@jest/globals';
import type { KubeEvent } from '../../../../src/api/wire.ts';
import { homeEvent, readEvent, type RemoteEvent } from '../../../../src/provider/events/remote-events.ts';
import { homePod, NOW, remotePod } from '../support/pods.ts';

const nowMs = Date.parse(NOW);
const iso = (offsetMs: number): string => new Date(nowMs + offsetMs).toISOString().replace('.000Z', 'Z');
const home = homePod();
const remote = remotePod(home);
const places = { home, remote, virtualNode: 'milan', nodeName: 'milan-node', nowMs };

function event(parts: object = {}): KubeEvent {
  return {
    metadata: { name: 'web.1', namespace: 'tenant', uid: 'event-uid', creationTimestamp: iso(-60_000) },
    involvedObject: { kind: 'Pod', name: 'web', namespace: 'tenant', uid: 'remote-uid' },
    type: 'Warning',
    reason: 'BackOff',
    message: 'Back-off restarting failed container main in pod web_tenant(remote-uid)',
    source: { component: 'kubelet', host: 'node-7' },
    firstTimestamp: iso(-50_000),
    lastTimestamp: iso(-10_000),
    count: 4,
    ...parts,
  } as unknown as KubeEvent;
}
const read = (parts: object = {}): RemoteEvent => {
  const found = readEvent(event(parts), nowMs);
  if (found === undefined) throw new Error('not read');
  return found;
};

test('is told at home as it happened, of the pod at home, by whom and where', () => {
  const told = homeEvent(
    read({ involvedObject: { ...event().involvedObject, fieldPath: 'spec.containers{main}' } }),
    places,
  );
  expect(told).toMatchObject({
    metadata: { namespace: 'shop', labels: { 'tributary.dev/virtual-node': 'milan-node' } },
    involvedObject: {
      kind: 'Pod',
      name: 'web',
      namespace: 'shop',
      uid: home.metadata.uid,
      fieldPath: 'spec.containers{main}',
    },
    type: 'Warning',
    reason: 'BackOff',
    message: `Back-off restarting failed container main in pod web_shop(${home.metadata.uid})`,
    count: 4,
    firstTimestamp: iso(-50_000),
    lastTimestamp: iso(-10_000),
    source: { component: 'kubelet', host: 'milan-node' },
    reportingComponent: 'kubelet',
    reportingInstance: 'milan-node',
  });
  expect(told.metadata.name).toMatch(/^web\.[0-9a-f]{20}$/u);
});

test('its name follows from the event over there: counting on keeps it, another event or pod has another', () => {
  const name = (parts: object, pod = home): string | undefined =>
    homeEvent(read(parts), { ...places, home: pod }).metadata.name;
  expect(name({ count: 5, lastTimestamp: iso(0) })).toBe(name({}));
  expect(name({ metadata: { ...event().metadata, uid: 'other' } })).not.toBe(name({}));
  expect(name({}, homePod({ metadata: { uid: 'other' } }))).not.toBe(name({}));
  const long = `${'a'.repeat(199)}-${'b'.repeat(40)}`;
  expect(name({}, homePod({ metadata: { name: long } }))).toMatch(/^a{199}\.[0-9a-f]{20}$/u);
});

test('the form of events.k8s.io, as schedulers write it, becomes that of core/v1', () => {
  const told = homeEvent(
    read({
      reason: 'FailedScheduling',
      message: '0/3 nodes are available for tenant/web',
      source: {},
      reportingComponent: 'default-scheduler',
      firstTimestamp: null,
      lastTimestamp: null,
      count: undefined,
      eventTime: '2025-12-31T23:59:00.123456Z',
      series: { count: 7, lastObservedTime: '2025-12-31T23:59:59.123456Z' },
    }),
    places,
  );
  expect(told).toMatchObject({
    message: '0/3 nodes are available for shop/web',
    count: 7,
    firstTimestamp: '2025-12-31T23:59:00Z',
    lastTimestamp: '2025-12-31T23:59:59Z',
    source: { component: 'default-scheduler', host: 'milan-node' },
  });
  expect(told.eventTime).toBeUndefined();
  expect(told.series).toBeUndefined();
});

test('nothing comes from the future', () => {
  const ahead = { firstTimestamp: iso(3_600_000), lastTimestamp: iso(7_200_000) };
  expect(homeEvent(read(ahead), places)).toMatchObject({ firstTimestamp: NOW, lastTimestamp: NOW });
});

describe('what is not told', () => {
  const subject = event().involvedObject;
  test.each<[string, object]>([
    ['of another kind', { involvedObject: { ...subject, kind: 'Secret' } }],
    ['without a UID', { involvedObject: { ...subject, uid: undefined } }],
    ['of a UID that is none', { involvedObject: { ...subject, uid: '../x' } }],
    ['of a UID that is a list', { involvedObject: { ...subject, uid: ['remote-uid'] } }],
    ['of a name that is none', { involvedObject: { ...subject, name: 'web/../../x' } }],
    ['about nothing', { involvedObject: undefined }],
    ['of a type that does not exist', { type: 'Fatal' }],
    ['with two words for a reason', { reason: 'Please Call' }],
    ['with a control character in its reason', { reason: 'Back\u001b[31mOff' }],
    ['with a reason without end', { reason: 'A'.repeat(129) }],
    ['without a reason', { reason: undefined }],
    ['an hour old', { lastTimestamp: iso(-3_600_000) }],
    ['at no time', { metadata: { uid: 'event-uid' }, firstTimestamp: 'x', lastTimestamp: {} }],
    ['with a giant UID of its own', { metadata: { ...event().metadata, uid: 'a'.repeat(65) } }],
  ])('%s', (_what, parts) => {
    expect(readEvent(event(parts), nowMs)).toBeUndefined();
  });
});

describe('what a provider may write is made harmless', () => {
  test.each<[string, unknown, string]>([
    ['control characters', 'a\u0000b\u001b[31mc\r\nd', 'a b [31mc d'],
    ['text that runs backwards', 'user\u202Egpj.exe', 'user gpj.exe'],
    ['half a character', 'a\uD800b', 'a b'],
    ['no text', { not: 'text' }, ''],
    ['nothing', undefined, ''],
    ['other languages', 'Zurück: 失敗 🚀', 'Zurück: 失敗 🚀'],
  ])('%s', (_what, message, expected) => {
    expect(read({ message }).message).toBe(expected);
  });

  test('a giant message is cut, at home as well', () => {
    const message = 'tenant/web '.repeat(100_000);
    expect(read({ message }).message).toHaveLength(1024);
    const longer = homePod({ metadata: { namespace: 'a-much-longer-namespace' } });
    expect(homeEvent(read({ message }), { ...places, home: longer }).message?.length).toBeLessThanOrEqual(
      1024,
    );
    const pairs = read({ message: `a${'🚀'.repeat(2000)}` }).message;
    expect(pairs.isWellFormed()).toBe(true);
  });

  test.each<[unknown, number]>([
    [1e300, 1_000_000_000],
    [-5, 1],
    ['9', 1],
    [NaN, 1],
    [2.9, 2],
  ])('a count of %p is %d', (count, expected) => {
    expect(read({ count }).count).toBe(expected);
  });

  test.each<[unknown, string]>([
    ['kubelet\u001b[2J', 'unknown'],
    ['a'.repeat(500), 'unknown'],
    [{ a: 1 }, 'unknown'],
    ['kubelet, rome', 'kubelet, rome'],
  ])('a component %p is %s', (component, expected) => {
    expect(read({ source: { component }, reportingComponent: component }).component).toBe(expected);
  });

  test('a field path with anything else in it is left out', () => {
    const fieldPath = 'spec.containers{main}\u001b[2J';
    const involvedObject = { ...event().involvedObject, fieldPath };
    expect(homeEvent(read({ involvedObject }), places).involvedObject).not.toHaveProperty('fieldPath');
  });
});
