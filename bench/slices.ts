/** P5: many endpoints of one Service in EndpointSlices, from a cluster into another one; and one endpoint that flaps. */
import { downBorrowedLabs } from '../test/support/labs/borrowed-lab.ts';
import { ENDPOINTS, SlicesLab } from '../test/support/labs/slices-lab.ts';
import type { Bench } from './frame/bench.ts';
import { cutBy } from './frame/cut.ts';
import { ratios } from './frame/goals.ts';
import { difference, requestCounts } from './pods/api-requests.ts';

/** One of them flaps. */
const FLAPPING = 50;

export const slicesBench: Bench<{ slices: number; flaps: number }> = {
  name: 'slices',
  title: 'the endpoints of one Service into another cluster',
  what:
    `${ENDPOINTS} endpoints in each EndpointSlice. The null mirror is the simplest possible loop: one list here, one creation for each object ` +
    'there, all in parallel, with the same objects, rights and policies. Then one endpoint turns ready and not ready by turns.',
  parameters: { slices: 100, flaps: 20 },
  run: async ({ parameters: { slices, flaps }, rounds, say, signal }) => {
    const lab = await SlicesLab.up(slices);
    try {
      const { api } = lab.world.lab.foreignCluster;
      const ours: number[] = [];
      const theirs: number[] = [];
      const written: number[] = [];
      const touched: number[] = [];
      // The first round warms up compilers and caches of all programs.
      for (let round = 0; round <= rounds; round++) {
        const least = await cutBy(signal, async () => lab.nullMirror());
        const took = await cutBy(signal, async () => lab.reflect());
        const [before, versions] = [await requestCounts(api), lab.versions];
        for (let flap = 0; flap < flaps; flap++)
          await cutBy(signal, async () => lab.flap(FLAPPING % slices, flap % 2 === 1));
        const requests = difference(before, await requestCounts(api));
        const changed = [...lab.versions].filter(([name, version]) => versions.get(name) !== version);
        await cutBy(signal, async () => lab.withdraw());
        say(`round ${round}: null mirror ${least.toFixed(0)} ms, agent ${took.toFixed(0)} ms`);
        if (round === 0) continue;
        theirs.push(least);
        ours.push(took);
        written.push((requests.get('PUT endpointslices') ?? 0) / flaps);
        touched.push(changed.length);
      }
      return {
        measured: [
          { contender: 'agent', figure: 'ms until all are there', values: ours, digits: 0 },
          { contender: 'null mirror', figure: 'ms until all are there', values: theirs, digits: 0 },
        ],
        goals: [
          {
            id: 'P5',
            what: 'time until all endpoints are there, of the null mirror’s',
            values: ratios(ours, theirs ?? []),
            atMost: 1.1,
          },
          { id: 'P5-flap', what: 'writes for one flap of one endpoint', values: written, atMost: 1 },
          { id: 'P5-slices', what: 'EndpointSlices touched by one that flaps', values: touched, atMost: 1 },
        ],
      };
    } finally {
      await lab.down();
      // It was borrowed as tests borrow theirs; no test file comes after this one.
      await downBorrowedLabs([lab.world.lab.spec.name]);
    }
  },
};
