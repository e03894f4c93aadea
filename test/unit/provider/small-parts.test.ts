import { describe, expect, test } from '@jest/globals';
import { TributaryError, type ErrorCode } from '../../../src/lib/errors.ts';
import { effectiveMappings } from '../../../src/provider/namespaces.ts';
import { podAddressFamily } from '../../../src/provider/pod-address.ts';
import { LossBudget } from '../../../src/lib/loss-budget.ts';
import { Patience } from '../../../src/provider/pods/patience.ts';
import { refusalOf } from '../../../src/provider/pods/refusal.ts';
import { FakeClock } from '../../support/fake-clock.ts';

describe('losses', () => {
  test('a drain ends at once; beyond it one in two seconds, each at its turn', async () => {
    const clock = new FakeClock();
    const budget = new LossBudget(clock);
    const lost = Array.from({ length: 25 }, (_, index) => `pod-${index}`);
    expect(lost.map((pod) => budget.take(pod))).toEqual([
      ...Array<number>(20).fill(0),
      2000,
      4000,
      6000,
      8000,
      10_000,
    ]);
    expect(lost.slice(20).map((pod) => budget.take(pod))).toEqual([2000, 4000, 6000, 8000, 10_000]);
    await clock.advance(4000);
    expect(lost.slice(20).map((pod) => budget.take(pod))).toEqual([0, 0, 2000, 4000, 6000]);
  });

  test('calm fills it again', async () => {
    const clock = new FakeClock();
    const budget = new LossBudget(clock);
    for (let index = 0; index < 20; index++) budget.take(`a-${index}`);
    await clock.advance(40_000);
    expect(Array.from({ length: 20 }, (_, index) => budget.take(`b-${index}`))).toEqual(Array(20).fill(0));
  });
});

test('patience lasts as long as asked, by key', async () => {
  const clock = new FakeClock();
  const patience = new Patience(clock);
  patience.hold('a', 1000);
  expect([patience.waitMs('a'), patience.waitMs('b')]).toEqual([1000, 0]);
  await clock.advance(999);
  expect(patience.waitMs('a')).toBe(1);
  await clock.advance(1);
  expect(patience.waitMs('a')).toBe(0);
  patience.hold('a', 1000);
  patience.forget('a');
  expect(patience.waitMs('a')).toBe(0);
});

test.each<[ErrorCode, string, string | undefined]>([
  ['Forbidden', 'exceeded quota: tributary', 'ExceededQuota'],
  ['Forbidden', 'violates PodSecurity', 'Forbidden'],
  ['Invalid', 'spec.x: Invalid value', 'Invalid'],
  ['NotFound', 'namespaces "t" not found', 'TenantNamespaceNotFound'],
  ['Conflict', 'x', undefined],
  ['Unavailable', 'x', undefined],
  ['Unavailable', 'Internal error occurred: failed calling webhook "quota": timeout', 'Forbidden'],
  ['Unreachable', 'x', undefined],
  ['Unauthorized', 'x', undefined],
  ['TooManyRequests', 'x', undefined],
])('%s "%s" is refused as %s', (code, message, reason) => {
  expect(refusalOf(new TributaryError(code, message))?.reason).toBe(reason);
});

describe('mappings', () => {
  const map = (text: string): { homeNamespace: string; tenantNamespace: string }[] =>
    text
      .split(' ')
      .filter(Boolean)
      .map((pair) => {
        const [homeNamespace = '', tenantNamespace = ''] = pair.split('>');
        return { homeNamespace, tenantNamespace };
      });
  test.each([
    ['asked', { asked: 'a>x', recorded: '', inUse: true }, 'a>x'],
    ['taken out, in use', { asked: 'a>x', recorded: 'a>x b>y', inUse: true }, 'a>x b>y'],
    ['taken out, empty', { asked: 'a>x', recorded: 'a>x b>y', inUse: false }, 'a>x'],
    ['all taken out', { asked: '', recorded: 'a>x', inUse: true }, 'a>x'],
    [
      'back under another tenant namespace, the old one in use',
      { asked: 'a>new', recorded: 'a>old', inUse: true },
      'a>old',
    ],
    [
      'back under another tenant namespace, the old one empty',
      { asked: 'a>new', recorded: 'a>old', inUse: false },
      'a>new',
    ],
  ])('%s', (_what, { asked, recorded, inUse }, expected) => {
    expect(effectiveMappings(map(asked), map(recorded), () => inUse)).toEqual(map(expected));
  });
});

test.each([
  ['10.0.0.1', 4],
  ['fd00::1', 6],
  ['2001:db8::1', 6],
  ['0.0.0.0', 0],
  ['127.9.9.9', 0],
  ['169.254.0.1', 0],
  ['224.0.0.1', 0],
  ['255.255.255.255', 0],
  ['::', 0],
  ['::1', 0],
  ['fe80::1', 0],
  ['ff02::1', 0],
  ['::ffff:127.0.0.1', 0],
  ['010.0.0.1', 0],
  ['1.2.3', 0],
  ['', 0],
])('the family of %s is %i', (text, family) => {
  expect(podAddressFamily(text)).toBe(family);
});
