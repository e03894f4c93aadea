/** How long each role takes from the start of its process until it is Ready, beside a Node.js that does nothing; and how large the image is. */
import type { Bench, Found, Goal, Measured } from '../frame/bench.ts';
import { imageBytes } from '../frame/image-size.ts';
import { StartBed, ROLES, type Started } from './bed.ts';

const MIB = 1024 * 1024;
const BARE = 'node -e 0';

export const startBench: Bench<{ ops: number }> = {
  name: 'start',
  title: 'from the start of a process to Ready',
  what:
    'One cluster, in whose network the roles are started one after another with the flags of the image, each until its /readyz says ' +
    'yes. `node -e 0` is a Node.js that does nothing, from its start to its end. Role `peer` has a virtual node of a second cluster.',
  parameters: { ops: 18_100 },
  // A port; the following ones are used, too.
  limits: { ops: { least: 1_024, most: 65_500 } },
  problem: () => (process.getuid?.() === 0 ? undefined : 'networks of the clusters need root'),
  run: async ({ parameters, rounds, say, before, nodeFlags }) => {
    const bed = await StartBed.up({ opsPort: parameters.ops, before, nodeFlags, progress: say });
    try {
      // Fills the caches of the machine, and makes what roles make once; not counted.
      await round(bed, () => undefined);
      const results = new Map<string, Started[]>();
      for (let number = 1; number <= rounds; number++) {
        await round(bed, (name, started) => {
          results.set(name, [...(results.get(name) ?? []), started]);
          say(`round ${number}, ${name}: ${started.ms.toFixed(0)} ms, CPU ${started.cpuMs.toFixed(0)} ms`);
        });
      }
      return found(results);
    } finally {
      await bed.down();
    }
  },
};

async function round(bed: StartBed, done: (name: string, started: Started) => void): Promise<void> {
  done(BARE, await bed.bare());
  for (const [program, suffix] of bed.programs) {
    for (const role of ROLES) done(`${role}${suffix}`, await bed.start(role, program));
    await bed.stopAll();
  }
}

function found(results: ReadonlyMap<string, readonly Started[]>): Found {
  const measured: Measured[] = [];
  const add = (figure: string, of: (started: Started) => number): void => {
    for (const [contender, all] of results)
      measured.push({ contender, figure, values: all.map(of), digits: 0 });
  };
  add('ms until Ready', ({ ms }) => ms);
  add('CPU ms until Ready', ({ cpuMs }) => cpuMs);
  const image = imageBytes();
  if (image === undefined) {
    return {
      measured,
      goals: [],
      remarks: ['The image is not built on this machine yet (make image): its size is not known.'],
    };
  }
  const size = image / MIB;
  const goal: Goal = {
    id: 'image',
    what: 'MiB of the image, compressed',
    values: [size],
    atMost: 60,
    digits: 1,
  };
  return { measured, goals: [goal] };
}
