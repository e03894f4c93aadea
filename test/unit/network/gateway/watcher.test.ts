import { expect, test } from '@jest/globals';
import { PeerWatch } from '../../../../src/network/gateway/watcher.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { tunnelOf } from '../../../support/network/tunnels.ts';

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

// WireGuard believes the source of any packet that bears the peer's key, and would send through the tunnel itself.
test.each([
  ['which has announced where it is', ['192.0.2.1:51820'], '192.0.2.1:51820'],
  ['which cannot be dialled', [], undefined],
])('a peer %s is not followed into a tunnel', async (_what, endpoints, good) => {
  const clock = new FakeClock();
  const watch = new PeerWatch({ clock, resolver: { literal: (given) => [...given] }, silenceMs: 2500 });
  const announced = tunnelOf('p');
  const peer = { ...announced.spec.peer, endpoints } as NonNullable<typeof announced.spec.peer>;
  const connection = { gateway: 'n1', endpoint: '100.64.3.4:51820' };
  const p = { ...announced, spec: { ...announced.spec, peer }, status: { ...announced.status, connection } };
  const other = tunnelOf('q', { status: { views: [{ prefix: 'a', as: 'fd00:9::/64', use: 'Pods' }] } });
  const seen = (endpoint?: string): boolean => {
    const states = [
      {
        publicKey: peer.publicKey,
        receivedBytes: 9,
        sentBytes: 9,
        ...(endpoint !== undefined && { endpoint }),
      },
    ];
    const probes = new Map([
      ['p', { alive: true, since: 0, lossPercent: 0, rttMs: 1, lastAnswerMs: clock.now() }],
    ]);
    return watch.observe({ tunnels: [p, other], states, probes, own: [] });
  };
  for (const inside of ['100.64.3.4:9', '100.65.0.1:51820', '[fd00:9::1]:51820']) {
    seen();
    await clock.advance(1000);
    expect(seen(inside)).toBe(true);
    expect(watch.endpointOf('p')).toBe(good);
    expect([...watch.astray]).toEqual([peer.publicKey]);
    await clock.advance(1000);
    expect(seen()).toBe(true);
    expect([...watch.astray]).toEqual([]);
  }
  // It moves as it likes elsewhere, and our own nodes may be what its packets come through.
  for (const outside of ['198.51.100.7:4', '172.30.0.11:30000']) {
    seen(outside);
    expect(watch.endpointOf('p')).toBe(outside);
    expect(watch.astray.size).toBe(0);
  }
});
