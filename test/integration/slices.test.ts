import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { difference, requestCounts } from '../../bench/pods/api-requests.ts';
import { short } from '../support/long.ts';
import { ENDPOINTS, SlicesLab } from '../support/labs/slices-lab.ts';

/** Thousands of endpoints between two real API servers: how many writes that takes. `make bench BENCH=slices` measures how long. */

const SLICES = short('slices of a hundred endpoints', { short: 20, long: 100 });
const FLAPS = 4;
/** One of them. */
const FLAPPING = SLICES / 2;

let lab: SlicesLab;
beforeAll(async () => {
  lab = await SlicesLab.up(SLICES);
});
afterAll(async () => lab?.down());

test('one write for each slice, and one for each change of one endpoint; no other slice is touched', async () => {
  const { api } = lab.world.lab.foreignCluster;
  const start = await requestCounts(api);
  await lab.reflect();
  expect(lab.addresses).toBe(ENDPOINTS * SLICES);
  const made = difference(start, await requestCounts(api));
  expect(made.get('POST endpointslices')).toBe(SLICES);
  expect(made.get('PUT endpointslices')).toBeUndefined();
  const { versions } = lab;
  const before = await requestCounts(api);
  for (let flap = 0; flap < FLAPS; flap++) await lab.flap(FLAPPING, flap % 2 === 1);
  const after = difference(before, await requestCounts(api));
  expect(after.get('PUT endpointslices')).toBe(FLAPS);
  expect(after.get('POST endpointslices')).toBeUndefined();
  const touched = [...lab.versions].filter(([name, version]) => versions.get(name) !== version);
  expect(touched.map(([name]) => name)).toEqual([`tributary-many-${FLAPPING}`]);
});
