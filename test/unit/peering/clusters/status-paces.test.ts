import { expect, test } from '@jest/globals';
import type { PeeringPhase } from '../../../../src/api/foreign-cluster.ts';
import { LABEL_DISCOVERED } from '../../../../src/api/names.ts';
import type { ForeignClusterFacts } from '../../../../src/peering/clusters/conditions.ts';
import { StatusPaces } from '../../../../src/peering/clusters/status-paces.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const metadata = { name: 'rome', uid: 'rome', labels: { [LABEL_DISCOVERED]: 'true' } };
/** A discovered cluster that nobody here wants: what is written of it, and what is to be written. */
const facts = (before: PeeringPhase, after: PeeringPhase): ForeignClusterFacts =>
  ({
    cluster: { metadata, spec: {}, status: { incoming: { phase: before } } },
    intent: undefined,
    outgoing: { phase: 'None' },
    incoming: { phase: after },
  }) as unknown as ForeignClusterFacts;

/** Writes when it may; returns for how long it waited, in milliseconds. */
async function waited(paces: StatusPaces, clock: FakeClock, seen: ForeignClusterFacts): Promise<number> {
  const began = clock.monotonic();
  for (;;) {
    const waitMs = paces.turn(seen);
    if (waitMs === 0) return clock.monotonic() - began;
    await clock.advance(waitMs);
  }
}

test('the end of a peering is shown soon, also if the two have peered and parted a hundred times in an hour', async () => {
  const clock = new FakeClock();
  const paces = new StatusPaces(clock);
  const waits: number[] = [];
  const phases: PeeringPhase[] = ['None', 'Offered', 'Accepted', 'Established', 'Ending', 'None'];
  for (let round = 0; round < 100; round++) {
    for (const [index, phase] of phases.slice(1).entries())
      waits.push(await waited(paces, clock, facts(phases[index] ?? 'None', phase)));
    await clock.advance(20_000);
  }
  expect(Math.max(...waits)).toBeLessThanOrEqual(40_000);
});

test('strangers are shown further and further apart', async () => {
  const clock = new FakeClock();
  const paces = new StatusPaces(clock);
  const waits: number[] = [];
  for (let n = 0; n < 20; n++) waits.push(await waited(paces, clock, facts('None', 'Pending')));
  expect(Math.max(...waits)).toBeGreaterThan(60_000);
});
