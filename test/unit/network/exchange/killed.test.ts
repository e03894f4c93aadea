import { afterEach, expect, test } from '@jest/globals';

import { mortal } from '../../../support/mortal.ts';
import { areJoined, clock, peered, unpeered, World } from './support/world.ts';

/** Killed after each write that there is, and started again: always the same end, and no address is ever changed. */

let worlds: World[] = [];
afterEach(async () => {
  await Promise.all(worlds.map(async (world) => world.down()));
  worlds = [];
});

const SAME = '10.244.0.0/16';

async function three(): Promise<[World, World, World]> {
  const found = await Promise.all(
    ['a', 'b', 'c'].map(async (letter) => World.up(letter, SAME, { presharedKeys: true })),
  );
  worlds.push(...found);
  return found as [World, World, World];
}

async function finished(): Promise<void> {
  await Promise.all(worlds.map(async (world) => world.down()));
  worlds = [];
}

/** By peer and prefix: all addresses under which that prefix was ever said to be seen. */
function everSaid({ told }: World): Map<string, Set<string>> {
  const all = new Map<string, Set<string>>();
  for (const { to, network } of told) {
    for (const { prefix, as } of network?.views ?? []) {
      const key = `${to} ${prefix}`;
      all.set(key, (all.get(key) ?? new Set()).add(as));
    }
  }
  return all;
}

const keyed = (one: World, other: World): boolean => {
  const [ours, theirs] = [one, other].map((world) => world.secret('tributary-preshared'));
  return ours?.[other.id] !== undefined && ours[other.id] === theirs?.[one.id];
};

function isComplete([a, b, c]: [World, World, World]): boolean {
  const ofC = a.sees(c, SAME) ?? '';
  const through = b.sees(a, ofC);
  return (
    [b, c].every((other) => areJoined(a, other) && keyed(a, other)) &&
    through !== undefined &&
    through === a.seenBy(b, ofC)
  );
}

test('on the way to two tunnels', async () => {
  let kills = 0;
  for (let writes = 0; ; writes++) {
    const all = await three();
    const [a, b, c] = all;
    await a.halt();
    const { client, died } = mortal(a.client, writes);
    const dying = a.start(client);
    peered(a, b);
    peered(a, c);
    await dying;
    await clock.until('done or dead', () => died() || isComplete(all), 20_000);
    await a.halt();
    if (died()) kills++;
    await a.start();
    await clock.until('complete', () => isComplete(all));
    for (const [key, seen] of everSaid(a)) expect([key, [...seen]]).toEqual([key, [...seen].slice(0, 1)]);
    for (const other of [b, c]) unpeered(a, other);
    await clock.until('all gone', () => all.every((world) => world.tunnels.length === 0));
    await clock.until('keys too', () =>
      all.every((world) => Object.keys(world.secret('tributary-preshared')).length === 0),
    );
    await finished();
    if (!died()) break;
  }
  // The ConfigMap; for each peer the Tunnel, its spec, its status, our half, the key; what is seen of transit.
  expect(kills).toBeGreaterThanOrEqual(10);
});

test('on the way out', async () => {
  let kills = 0;
  for (let writes = 0; ; writes++) {
    const all = await three();
    const [a, b, c] = all;
    peered(a, b);
    peered(a, c);
    await clock.until('complete', () => isComplete(all));
    await a.halt();
    for (const other of [b, c]) unpeered(a, other);
    const { client, died } = mortal(a.client, writes);
    const isOver = (): boolean =>
      a.tunnels.length === 0 &&
      ['', '-halves'].every((part) => Object.keys(a.secret(`tributary-preshared${part}`)).length === 0);
    await a.start(client);
    await clock.until('done or dead', () => died() || isOver(), 20_000);
    await a.halt();
    if (died()) kills++;
    await a.start();
    await clock.until('all gone', isOver);
    await finished();
    if (!died()) break;
  }
  // For each peer the Tunnel, our half and the key.
  expect(kills).toBeGreaterThanOrEqual(6);
});
