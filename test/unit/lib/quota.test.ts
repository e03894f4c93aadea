import { describe, expect, test } from '@jest/globals';

import { Quota, type QuotaRule } from '../../../src/lib/quota.ts';

function makeQuota(
  limit: number,
  rule?: QuotaRule,
): {
  quota: Quota;
  evicted: string[];
  admit: (source: string, name: string) => boolean;
} {
  const quota = new Quota(limit, rule);
  const evicted: string[] = [];
  const admit = (source: string, name: string): boolean =>
    quota.admit(source, () => evicted.push(name)) !== undefined;
  return { quota, evicted, admit };
}

test('whoever floods displaces its own, the oldest first', () => {
  const { quota, evicted, admit } = makeQuota(10);
  for (const good of ['a', 'b', 'c']) expect(admit(good, good)).toBe(true);
  for (let bad = 0; bad < 10_000; bad++) expect(admit('flood', `bad${bad}`)).toBe(true);
  expect(quota.size).toBe(10);
  expect(evicted.slice(0, 3)).toEqual(['bad0', 'bad1', 'bad2']);
  expect(evicted.filter((name) => !name.startsWith('bad'))).toEqual([]);
  // Somebody new gets a place at the flood's expense.
  expect(admit('d', 'd')).toBe(true);
  expect(evicted).not.toContain('d');
});

test('where everybody holds one place, a newcomer is refused', () => {
  const { evicted, admit } = makeQuota(3);
  for (const source of ['a', 'b', 'c']) admit(source, source);
  expect(admit('d', 'd')).toBe(false);
  expect(evicted).toEqual([]);
});

test('what is confirmed is the youngest of its source again', () => {
  const quota = new Quota(2);
  const evicted: string[] = [];
  const first = quota.admit('a', () => evicted.push('first'));
  quota.admit('a', () => evicted.push('second'));
  first?.touch();
  quota.admit('b', () => evicted.push('third'));
  expect(evicted).toEqual(['second']);
});

test('a place that is released is free, once', () => {
  const quota = new Quota(2);
  const place = quota.admit('a', () => undefined);
  place?.release();
  place?.release();
  place?.touch();
  expect(quota.size).toBe(0);
});

describe('with a rule of its own', () => {
  let now = 0;
  /** A place goes to a source that has fewer, and where it was not touched for a second. */
  function makeRuled(limit: number): ReturnType<typeof makeQuota> {
    now = 0;
    return makeQuota(limit, {
      now: () => now,
      givesWay: ({ most, own, untouchedMs }) => most > own + 1 || untouchedMs >= 1_000,
    });
  }

  test('it is told how many places the two have', () => {
    const { evicted, admit } = makeRuled(4);
    for (const name of ['a1', 'a2', 'a3', 'a4']) admit('a', name);
    expect(admit('a', 'a5')).toBe(false);
    expect(['b1', 'b2', 'b3'].map((name) => admit('b', name))).toEqual([true, true, false]);
    expect(evicted).toEqual(['a1', 'a2']);
  });

  test('it is told for how long nobody has touched the place', () => {
    const { quota, evicted, admit } = makeRuled(2);
    const place = quota.admit('a', () => evicted.push('a'));
    admit('b', 'b');
    now = 999;
    expect(admit('c', 'c')).toBe(false);
    place?.touch();
    now = 1_000;
    expect(admit('c', 'c')).toBe(true);
    expect(evicted).toEqual(['b']);
    expect(admit('d', 'd')).toBe(false);
  });
});
