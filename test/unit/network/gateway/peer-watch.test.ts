import { expect, test } from '@jest/globals';

import {
  chooseEndpoint,
  type EndpointChoice,
  type EndpointFacts,
  keepaliveSeconds,
  PeerWatch,
} from '../../../../src/network/gateway/peer-watch.ts';
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

const A = '192.0.2.1:51820';
const B = '192.0.2.2:51820';
const C = '192.0.2.3:51820';
/** Learnt from packets: the outside of a NAT. */
const LEARNT = '198.51.100.7:40001';

/** One look a second, with the choice handed on; where it went, without repeats. */
function watch(facts: (second: number) => Partial<EndpointFacts>, seconds: number): [number, string][] {
  const moves: [number, string][] = [];
  let before: EndpointChoice | undefined;
  for (let second = 0; second <= seconds; second++) {
    const now = second * 1000;
    before = chooseEndpoint({
      now,
      announced: [A],
      answering: false,
      ...(before && { before }),
      ...facts(second),
    });
    const endpoint = before?.endpoint ?? 'none';
    if (moves.at(-1)?.[1] !== endpoint) moves.push([second, endpoint]);
  }
  return moves;
}

test('begins with the first and goes round, longer from try to try', () => {
  expect(watch(() => ({ announced: [A, B, C] }), 60)).toEqual([
    [0, A],
    [5, B],
    [15, C],
    [30, A],
    [50, B],
  ]);
});

test('no try is longer than half a minute', () => {
  const moves = watch(() => ({ announced: [A, B] }), 600).map(([second]) => second);
  const tries = moves.slice(1).map((second, index) => second - (moves[index] ?? 0));
  expect(Math.max(...tries)).toBe(30);
});

test('one that answers is left where WireGuard has it', () => {
  expect(watch((second) => ({ answering: true, current: second < 5 ? A : LEARNT }), 100)).toEqual([
    [0, A],
    [5, LEARNT],
  ]);
});

test('a lost probe or two move nothing', () => {
  const moves = watch((second) => ({ answering: second % 10 !== 9, current: A, announced: [A, B] }), 100);
  expect(moves).toEqual([[0, A]]);
});

test('when it falls silent, an endpoint announced since it was chosen is tried at once', () => {
  const moves = watch(
    (second) => ({
      announced: second < 10 ? [A] : [B],
      answering: second < 12,
      current: second < 12 ? A : B,
    }),
    15,
  );
  expect(moves).toEqual([
    [0, A],
    [12, B],
  ]);
});

test('news that comes during the silence is tried at once as well', () => {
  expect(watch((second) => ({ announced: second < 7 ? [A] : [C, A] }), 8)).toEqual([
    [0, A],
    [7, C],
  ]);
});

test('without an announced endpoint, it is sought where it was heard', () => {
  const heard = (second: number): Partial<EndpointFacts> => ({
    announced: [],
    answering: second < 3,
    ...(second < 3 && { current: LEARNT }),
  });
  expect(watch(heard, 60)).toEqual([[0, LEARNT]]);
});

test('where it was heard comes in turn with what it announces', () => {
  const moves = watch((second) => ({ answering: second < 3, current: LEARNT }), 30);
  expect(moves).toEqual([
    [0, LEARNT],
    [3, A],
    [8, LEARNT],
    [18, A],
  ]);
});

test('where a gateway before us heard it is tried by the one that takes over', () => {
  expect(watch(() => ({ announced: [], lastKnown: LEARNT }), 60)).toEqual([[0, LEARNT]]);
  expect(watch(() => ({ lastKnown: LEARNT }), 6)).toEqual([
    [0, A],
    [5, LEARNT],
  ]);
});

test('a restart leaves a peer where it is until it is measured, though names become addresses meanwhile', () => {
  const moves = watch((second) => {
    const facts = { announced: second < 1 ? [] : [A], current: LEARNT };
    return second < 4 ? { ...facts, answering: undefined as never } : { ...facts, answering: true };
  }, 30);
  expect(moves).toEqual([[0, LEARNT]]);
});

test('who is never measured is not waited for for ever', () => {
  const facts: Partial<EndpointFacts> = { announced: [A, B], answering: undefined as never, current: A };
  expect(watch(() => facts, 6)).toEqual([
    [0, A],
    [5, B],
  ]);
});

test('nobody to dial', () => {
  expect(watch(() => ({ announced: [] }), 10)).toEqual([[0, 'none']]);
});

test('an endpoint taken back is left', () => {
  expect(watch((second) => ({ announced: second < 2 ? [A, B] : [B] }), 3)).toEqual([
    [0, A],
    [2, B],
  ]);
});

test('behind NAT the mapping is kept open more often', () => {
  expect([keepaliveSeconds(true), keepaliveSeconds(false)]).toEqual([25, 5]);
});

test('a peer that missed no probe is heard, however old its last answer; one that missed some is not for long', async () => {
  const clock = new FakeClock();
  const watch = new PeerWatch({ clock, resolver: { literal: (given) => [...given] }, silenceMs: 2500 });
  const tunnel = tunnelOf('p');
  const { peer } = tunnel.spec;
  const endpoint = '198.51.100.7:4';
  const states = [{ publicKey: peer?.publicKey ?? '', receivedBytes: 9, sentBytes: 9, endpoint }];
  const probe = { alive: true, since: 0, lossPercent: 0, lastAnswerMs: clock.now() };
  const seen = (more: { missed?: number }): string | undefined => {
    watch.observe({ tunnels: [tunnel], states, probes: new Map([['p', { ...probe, ...more }]]), own: [] });
    return watch.endpointOf('p');
  };
  expect(seen({})).toBe(endpoint);
  await clock.advance(30_000);
  expect(seen({})).toBe(endpoint);
  expect(seen({ missed: 1 })).not.toBe(endpoint);
});
