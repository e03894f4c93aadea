import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import type { Right } from '../../../src/api/rbac.ts';
import * as agent from '../../../src/deploy/rights/agent.ts';
import { CLUSTER_RIGHTS, GATEWAY_RIGHTS, NODE_ROLE_RIGHTS } from '../../../src/deploy/rights/cluster.ts';
import { Pace, type PaceOptions } from '../../../src/lib/pace.ts';
import { VERDICT_PACE } from '../../../src/network/gateway/reports.ts';
import { STATUS_PACES } from '../../../src/peering/clusters/status-paces.ts';
import { STRANGER_PACE } from '../../../src/peering/lending/strangers.ts';
import { DOCUMENT_PACES } from '../../../src/peering/link/document-paces.ts';
import { HOME_PACES } from '../../../src/provider/home-paces.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { WRITERS } from '../../support/hostile/writers.ts';

/** What writes in this cluster because another side says something, and how often. */

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete']);
const isWrite = ({ verbs }: Right): boolean => verbs.some((verb) => WRITES.has(verb));

const parts: readonly (readonly [part: string, right: Right])[] = [
  ...[CLUSTER_RIGHTS, GATEWAY_RIGHTS, NODE_ROLE_RIGHTS]
    .flat()
    .flatMap((place) => place.parts)
    .flatMap(({ part, rights }) => rights.map((right) => [part, right] as const)),
  ...Object.values(agent)
    .filter((table): table is readonly Right[] => Array.isArray(table))
    .flat()
    .map((right) => ['agent', right] as const),
].filter(([, right]) => isWrite(right));

const named = [...new Set(parts.map(([part, { resource }]) => `${part}: ${resource}`))].toSorted();
const known = Object.entries(WRITERS)
  .flatMap(([part, resources]) => Object.keys(resources).map((resource) => `${part}: ${resource}`))
  .toSorted();

test('of each right to write it is said who drives it, what bounds it, and where that is shown', () => {
  // A right that is missing in WRITERS: say there who can make us write that, and what bounds it.
  expect(known).toEqual(named);
});

test('each bound is shown by a test that there is', () => {
  for (const writer of Object.values(WRITERS).flatMap((resources) => Object.values(resources))) {
    if (writer.by === 'nobody') continue;
    expect(readFileSync(writer.shown.file, 'utf8')).toContain(writer.shown.test);
  }
});

describe('what never ends is written so often at most', () => {
  const MINUTES = 60_000;

  async function turns(options: Omit<PaceOptions, 'clock'>, forMs: number): Promise<number> {
    const clock = new FakeClock();
    const pace = new Pace({ clock, ...options });
    let count = 0;
    while (clock.monotonic() < forMs) {
      const waitMs = pace.turn('key');
      if (waitMs === 0) count++;
      else await clock.advance(waitMs);
    }
    return count;
  }

  test.each<[name: string, pace: Omit<PaceOptions, 'clock'>, inFiveMinutes: number, inAnHour: number]>([
    ['request', DOCUMENT_PACES.request, 70, 300],
    ['acceptance', DOCUMENT_PACES.acceptance, 70, 300],
    ['offer', DOCUMENT_PACES.offer, 70, 300],
    ['grant', DOCUMENT_PACES.grant, 70, 300],
    ['network', DOCUMENT_PACES.network, 60, 180],
    ['services', DOCUMENT_PACES.services, 200, 900],
    ['a stranger', STRANGER_PACE, 25, 80],
    ['the status of a stranger', STATUS_PACES.strangers, 30, 90],
    ['the status of another cluster', STATUS_PACES.known, 195, 860],
    ['the status of a pod', HOME_PACES.podStatus, 75, 300],
    ['a volume', HOME_PACES.volume, 25, 80],
    ['a node', HOME_PACES.nodeStatus, 110, 450],
    ['a virtual node', HOME_PACES.virtualNodeStatus, 110, 450],
    ['a tunnel', VERDICT_PACE, 40, 150],
  ])('%s', async (_name, pace, inFiveMinutes, inAnHour) => {
    expect(await turns(pace, 5 * MINUTES)).toBeLessThanOrEqual(inFiveMinutes);
    expect(await turns(pace, 60 * MINUTES)).toBeLessThanOrEqual(inAnHour);
  });
});
