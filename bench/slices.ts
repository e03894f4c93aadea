/**
 * 10,000 endpoints of one Service in 100 EndpointSlices, from a cluster into another one: how long until all are there,
 * compared, alternately, with the simplest possible loop (one list here, one create for each object there, with the same objects, rights and policies); and how many writes one flapping endpoint costs.
 *
 * Usage: node bench/slices.ts [--rounds 5] [--flaps 20]
 */
// The lab's PKI stands on decorators.
import 'reflect-metadata';
import { parseArgs } from 'node:util';

import { SlicesLab } from '../test/support/labs/slices-lab.ts';
import { difference, requestCounts, writes } from './pods/api-requests.ts';
import { shown, spread, table } from './frame/statistics.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, flaps: { type: 'string', default: '20' } },
});
const [rounds, flaps] = [Number(values.rounds), Number(values.flaps)];

const SLICES = 100;
const lab = await SlicesLab.up(SLICES);
try {
  const { api } = lab.world.lab.foreignCluster;
  // Warms up compilers and caches of all programs; not counted.
  await lab.nullMirror();
  await lab.reflect();
  await lab.withdraw();
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = 1; round <= rounds; round++) {
    theirs.push(await lab.nullMirror());
    ours.push(await lab.reflect());
    if (round < rounds) await lab.withdraw();
    process.stderr.write(
      `round ${round}: null mirror ${theirs.at(-1)?.toFixed(0)} ms, Tributary ${ours.at(-1)?.toFixed(0)} ms\n`,
    );
  }
  const [mine, least] = [spread(ours), spread(theirs)];
  const ratios = spread(ours.map((took, index) => took / (theirs[index] ?? Number.NaN)));
  process.stdout.write(
    `\n${lab.addresses} endpoints in ${SLICES} EndpointSlices, ms until all are there: median (least–most) of ${rounds}\n\n`,
  );
  process.stdout.write(
    table([
      ['', 'ms', 'endpoints/s'],
      ['null mirror', shown(least, 0), (10_000_000 / least.median).toFixed(0)],
      ['Tributary', shown(mine, 0), (10_000_000 / mine.median).toFixed(0)],
      ['times as long', shown(ratios, 2), ''],
    ]),
  );
  const [before, versions] = [await requestCounts(api), lab.versions];
  for (let flap = 0; flap < flaps; flap++) await lab.flap(50, flap % 2 === 1);
  const after = difference(before, await requestCounts(api));
  const changed = [...lab.versions].filter(([name, version]) => versions.get(name) !== version);
  process.stdout.write(
    `\none endpoint that flaps ${flaps} times: ${after.get('PUT endpointslices') ?? 0} writes of EndpointSlices over there ` +
      `(of all kinds and all writers: ${writes(after)}), ${changed.length} of ${SLICES} slices touched\n`,
  );
} finally {
  await lab.down();
}
