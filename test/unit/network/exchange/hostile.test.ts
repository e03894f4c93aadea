import { afterEach, expect, test } from '@jest/globals';

import type { NetworkDocument } from '../../../../src/api/peer-documents.ts';
import { clock, joined, keyOf, peered, World } from './support/world.ts';

/** What a peer may say that is meant to hurt, or is simply wrong. */

let worlds: World[] = [];
afterEach(async () => {
  await Promise.all(worlds.map(async (world) => world.down()));
  worlds = [];
});

const PODS = '10.244.0.0/16';

async function pair(): Promise<{
  a: World;
  b: World;
  say: (changes: Partial<NetworkDocument>) => Promise<void>;
}> {
  const [a, b] = [await World.up('a', PODS), await World.up('b', '10.2.0.0/16')];
  worlds.push(a, b);
  peered(a, b);
  await joined(a, b);
  const { network } = b.exchange.documents(a.id);
  await b.halt();
  let marker = 0;
  const say = async (changes: Partial<NetworkDocument>): Promise<void> => {
    const endpoints = [...(changes.endpoints ?? []), `192.0.2.1:${++marker}`];
    const said = { ...(network as NetworkDocument), ...changes, endpoints };
    await a.exchange.received({ clusterID: b.id }, { network: said }).catch((error: Error) => {
      expect(error).toMatchObject({ code: 'Invalid' });
    });
    await clock.until(
      'it was taken',
      () =>
        a.tunnel(b)?.spec.peer === undefined || a.tunnel(b)?.spec.peer?.endpoints.at(-1) === endpoints.at(-1),
    );
  };
  return { a, b, say };
}

const views = (a: World, b: World): string[] => (a.tunnel(b)?.status?.views ?? []).map(({ as }) => as);
const refused = (a: World, b: World): string[] =>
  (a.tunnel(b)?.status?.refused ?? []).map(({ prefix }) => prefix);

test('everything, loopback, link-local, multicast, host bits and nonsense are never seen', async () => {
  const { a, b, say } = await pair();
  const pods = [
    '0.0.0.0/0',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '224.0.0.0/4',
    '::/0',
    '10.3.0.1/16',
    '999.0.0.0/8',
    '10.3.0.0/16',
  ];
  await say({ pods });
  await clock.until('the good one is seen', () => a.sees(b, '10.3.0.0/16') !== undefined);
  expect(views(a, b)).toEqual(['10.3.0.0/16', a.sees(b, '10.70.0.0/20')]);
  expect(refused(a, b)).toEqual(['0.0.0.0/0', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '::/0']);
});

test('our Services, nodes and pods under its name are seen elsewhere', async () => {
  const { a, b, say } = await pair();
  const pods = ['10.96.0.0/16', PODS, '172.30.0.0/24'];
  await say({ pods });
  await clock.until('all are seen', () => pods.every((prefix) => a.sees(b, prefix) !== undefined));
  for (const prefix of pods) expect(a.sees(b, prefix)).toMatch(/^100\./);
});

test('thousands of prefixes are cut to what a Tunnel holds, and others keep their room', async () => {
  const { a, b, say } = await pair();
  const some = (count: number, base: number): string[] =>
    Array.from({ length: count }, (_, index) => `10.${base + (index >> 8)}.${index & 255}.0/24`);
  await say({ pods: some(256, 10), transit: some(1_024, 20) });
  await clock.until('many are seen', () => views(a, b).length > 200);
  expect(views(a, b).length).toBeLessThanOrEqual(1_024);
  const c = await World.up('c', PODS);
  worlds.push(c);
  peered(a, c);
  await joined(a, c);
});

test('wrong views of ours: other lengths, other families, not ours, everything as one', async () => {
  const { a, b, say } = await pair();
  await say({
    views: [
      { prefix: PODS, as: '10.9.0.0/24' },
      { prefix: '10.70.0.0/20', as: 'fd00::/20' },
      { prefix: '10.96.0.0/16', as: '10.96.0.0/16' },
    ],
  });
  await clock.until('nothing is believed', () => a.tunnel(b)?.spec.seenAs === undefined);
  await say({
    views: [
      { prefix: PODS, as: '0.0.0.0/16' },
      { prefix: '10.70.0.0/20', as: '100.64.0.0/20' },
    ],
  });
  await clock.until('the good one is', () => a.tunnel(b)?.spec.seenAs?.length === 1);
  expect(a.tunnel(b)?.spec.seenAs).toEqual([{ prefix: '10.70.0.0/20', as: '100.64.0.0/20' }]);
});

test('the key of another peer, or ours: no end of a tunnel, and the other keeps it', async () => {
  const { a, b, say } = await pair();
  const c = await World.up('c', PODS);
  worlds.push(c);
  peered(a, c);
  await joined(a, c);
  await say({ publicKey: keyOf('c') });
  await clock.until('refused', () => a.tunnel(b)?.spec.peer === undefined);
  expect(a.tunnel(b)?.spec.keyOf).toBe(c.id);
  expect(a.tunnel(c)?.spec.peer?.publicKey).toBe(keyOf('c'));
  await say({ publicKey: keyOf('b') });
  await clock.until('back', () => a.tunnel(b)?.spec.peer?.publicKey === keyOf('b'));
  expect(a.tunnel(b)?.spec.keyOf).toBeUndefined();
  await say({ publicKey: keyOf('a') });
  await clock.until('ours is refused', () => a.tunnel(b)?.spec.keyOf === a.id);
  expect(a.tunnel(b)?.spec.peer).toBeUndefined();
});

test('a key that its owner announces after somebody else becomes its own when the other gives it up', async () => {
  const { a, b, say } = await pair();
  await say({ publicKey: keyOf('c') });
  const c = await World.up('c', PODS);
  worlds.push(c);
  peered(a, c);
  await clock.until('the later one is refused', () => a.tunnel(c)?.spec.keyOf === b.id);
  await say({ publicKey: keyOf('b') });
  await clock.until('it has its key', () => a.tunnel(c)?.spec.peer?.publicKey === keyOf('c'));
  expect(a.tunnel(c)?.spec.keyOf).toBeUndefined();
});

test('endpoints that are our own doors are not dialled', async () => {
  const { a, b, say } = await pair();
  await say({
    endpoints: ['127.0.0.1:22', '[::1]:22', '169.254.169.254:80', 'x:0', 'gateway.example:51820'],
  });
  expect(a.tunnel(b)?.spec.peer?.endpoints).toEqual(['gateway.example:51820', '192.0.2.1:1']);
});
