import { afterEach, expect, test } from '@jest/globals';

import { clock, joined, link, World } from './support/world.ts';

/** Who says at which addresses a peer is seen: a person, in its ForeignCluster. Nothing of these clusters overlaps. */

const worlds: World[] = [];
afterEach(async () => Promise.all(worlds.splice(0).map(async (world) => world.down())));

const PODS = '10.2.0.0/16';
/** A database beside the first one, says the second. */
const CLAIMED = '10.50.0.0/16';

async function pair(identityViews: boolean): Promise<{ a: World; b: World }> {
  const options = { identityViews: false, externalCidr: '10.72.0.0/20', podCidrs: [PODS, CLAIMED] };
  const a = await World.up('a', '10.1.0.0/16', { identityViews, externalCidr: '10.71.0.0/20' });
  const b = await World.up('b', PODS, options);
  worlds.push(a, b);
  a.peer(b, { outgoing: 'Established' });
  b.peer(a, { incoming: 'Established' });
  link(a, b);
  await joined(a, b);
  return { a, b };
}

const allow = (a: World, b: World, ownAddresses?: string[]): void =>
  a.peer(b, { outgoing: 'Established', network: { ...(ownAddresses && { ownAddresses }) } });

test('unasked it gets views of the pool; what is named it keeps, at once, and what is left out it gives back', async () => {
  const { a, b } = await pair(false);
  for (const prefix of [PODS, CLAIMED, '10.72.0.0/20']) expect(a.sees(b, prefix)).toMatch(/^100\./);
  allow(a, b, ['10.2.0.0/15']);
  await clock.until('its pods are seen as they are', () => a.sees(b, PODS) === PODS);
  expect(a.sees(b, CLAIMED)).toMatch(/^100\./);
  await clock.until('it is told', () => b.seenBy(a, PODS) === PODS);
  expect(a.tunnel(b)?.spec.ownAddresses).toEqual(['10.2.0.0/15']);
  allow(a, b, []);
  await clock.until('they are not any more', () => a.sees(b, PODS)?.startsWith('100.') === true);
  await clock.until('it is told that, too', () => b.seenBy(a, PODS) === a.sees(b, PODS));
});

test('over an upgrade, a view of before stays until a person says something', async () => {
  const { a, b } = await pair(true);
  expect([a.sees(b, PODS), a.sees(b, CLAIMED)]).toEqual([PODS, CLAIMED]);
  await a.restart({ identityViews: false });
  await clock.until('nothing is allowed by now', () => a.tunnel(b)?.spec.ownAddresses === undefined);
  await joined(a, b);
  expect([a.sees(b, PODS), a.sees(b, CLAIMED)]).toEqual([PODS, CLAIMED]);
  allow(a, b, [PODS]);
  await clock.until('what nobody named moves', () => a.sees(b, CLAIMED)?.startsWith('100.') === true);
  expect(a.sees(b, PODS)).toBe(PODS);
});
