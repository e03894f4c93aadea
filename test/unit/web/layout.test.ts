import { expect, test } from '@jest/globals';

import { layoutOf } from '../../../web/layout.ts';

const overlaps = (width: number, count: number): boolean => {
  const { own, others, card } = layoutOf(width, count);
  const all = [own, ...others];
  return all.some((a, i) =>
    all.slice(i + 1).some((b) => Math.abs(a.x - b.x) < card.width && Math.abs(a.y - b.y) < card.height),
  );
};

test.each(
  [320, 390, 768, 1280].flatMap((width) =>
    [0, 1, 2, 3, 6, 8, 10, 14].map((count) => [width, count] as const),
  ),
)('at %d pixels %d clusters are inside of the map', (width, count) => {
  const { others, card, height } = layoutOf(width, count);
  for (const { x, y } of others) {
    expect(x - card.width / 2).toBeGreaterThanOrEqual(0);
    expect(x + card.width / 2).toBeLessThanOrEqual(width);
    expect(y - card.height / 2).toBeGreaterThanOrEqual(0);
    expect(y + card.height / 2).toBeLessThanOrEqual(height);
  }
});

test.each(
  [320, 560, 700, 760, 1100].flatMap((width) =>
    [1, 2, 3, 5, 6, 7, 8, 10, 12, 14].map((count) => [width, count] as const),
  ),
)('at %d pixels no two of %d clusters lie on each other', (width, count) =>
  expect(overlaps(width, count)).toBe(false),
);
