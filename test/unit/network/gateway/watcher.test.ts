import { expect, test } from '@jest/globals';
import { PeerWatch } from '../../../../src/network/gateway/watcher.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { tunnelOf } from '../../../support/tunnels.ts';

test('when bytes last came is told by their count, not by what it was at the first look', async () => {
  const clock = new FakeClock();
  const watch = new PeerWatch({ clock, resolver: { literal: () => [] }, silenceMs: 2500 });
  const tunnel = tunnelOf('p');
  const publicKey = tunnel.spec.peer?.publicKey ?? '';
  const seen = async (receivedBytes?: number): Promise<number | undefined> => {
    await clock.advance(1000);
    const states = receivedBytes === undefined ? [] : [{ publicKey, receivedBytes, sentBytes: 0 }];
    watch.observe({ tunnels: [tunnel], states, probes: new Map(), own: [] });
    return watch.receivedMs(tunnel);
  };
  expect(await seen(500)).toBeUndefined();
  expect(await seen(500)).toBeUndefined();
  expect(await seen(592)).toBe(clock.now());
  const heard = clock.now();
  expect(await seen(592)).toBe(heard);
  // A new link counts anew.
  expect(await seen(0)).toBe(heard);
  expect(await seen(0)).toBe(heard);
  expect(await seen(148)).toBe(clock.now());
  expect(await seen()).toBeUndefined();
});
