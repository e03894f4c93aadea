import { expect, test } from '@jest/globals';
import type { WebSocket } from 'ws';
import { PeerDialler, PeerEndpoints } from '../../../../src/peering/reach/dialler.ts';
import { DEFAULT_LIMITS } from '../../../../src/peering/reach/ports.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const MINUTE_MS = 60_000;

test('a peer without a link is dialled once a minute, however many ask, and at once when it is back', async () => {
  const clock = new FakeClock();
  const dials: number[] = [];
  let [isAway, isLinked] = [true, false];
  const peers = {
    isLinked: () => isLinked,
    endpoints: () => ['peer:7443'],
    askDial: async () => Promise.reject(new Error('not there')),
    dial: async () => {
      dials.push(clock.monotonic());
      if (isAway) throw new Error('refused');
      return Promise.resolve({ on: () => undefined, pause: () => undefined } as unknown as WebSocket);
    },
  };
  const endpoints = new PeerEndpoints(peers, clock);
  const dialler = new PeerDialler({ peers, endpoints, limits: DEFAULT_LIMITS, clock });
  const ask = async (): Promise<unknown> =>
    dialler.connect('peer', new AbortController().signal).catch((error: unknown) => String(error));
  const said = await clock.during('the first ones', Promise.all(Array.from({ length: 20 }, ask)));
  expect(dials).toHaveLength(1);
  expect(said[0]).toMatch(/refused/);
  expect(said[19]).toMatch(/there is no link, and dialling has failed a moment ago/);
  for (let second = 0; second < 600; second++) {
    await ask();
    await clock.advance(1_000);
  }
  expect(dials.length).toBeLessThanOrEqual(1 + (10 * MINUTE_MS) / DEFAULT_LIMITS.avoidDirectMs);
  isAway = false;
  isLinked = true;
  expect(await ask()).toHaveProperty('pause');
});
