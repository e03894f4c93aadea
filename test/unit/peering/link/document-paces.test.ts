import { expect, test } from '@jest/globals';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Delivery } from '../../../../src/peering/link/delivery.ts';
import { DOCUMENT_PACES, DocumentPaces } from '../../../../src/peering/link/document-paces.ts';
import type { DocumentChanges, RequestDocument } from '../../../../src/peering/protocol/documents.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

interface World {
  clock: FakeClock;
  got: DocumentChanges[];
  delivery: Delivery;
}

function world(
  isPresent = (): boolean => true,
  clock = new FakeClock(),
  paces = new DocumentPaces(clock),
): World {
  const got: DocumentChanges[] = [];
  const received = async (_peer: unknown, changes: DocumentChanges): Promise<void> => {
    got.push(changes);
    return Promise.resolve();
  };
  const delivery = new Delivery({
    peer: { clusterID: 'p', publicKey: new Uint8Array(32) },
    isPresent,
    lending: { received },
    borrowing: { received },
    network: { received },
    services: { received },
    paces,
    clock,
    random: () => 0.5,
    log: silentLogger,
  });
  return { clock, got, delivery };
}

const nothing = (): void => undefined;
const asking = (clusterName: string): { request: RequestDocument } => ({
  request: { clusterName, namespaces: [] },
});

/** Says something ten times a second. */
async function talk({ clock, delivery }: World, say: (n: number) => unknown, seconds: number): Promise<void> {
  for (let n = 0; n < seconds * 10; n++) {
    delivery.give(say(n) as DocumentChanges, nothing, nothing);
    await clock.advance(100);
  }
}

test.each([
  ['request', 65, 12],
  ['acceptance', 65, 12],
  ['offer', 65, 12],
  ['grant', 65, 12],
  ['network', 52, 6],
  ['services', 170, 40],
] as const)(
  'of a %s that never stops changing, at most %d are taken in two minutes, then %d, and the last one in the end',
  async (kind, most, later) => {
    const talking = world();
    await talk(talking, (n) => ({ [kind]: { n } }), 120);
    const first = talking.got.length;
    expect(first).toBeGreaterThan(DOCUMENT_PACES[kind].free);
    expect(first).toBeLessThanOrEqual(most);
    await talk(talking, (n) => ({ [kind]: { later: n } }), 120);
    expect(talking.got.length - first).toBeLessThanOrEqual(later);
    talking.delivery.give({ [kind]: { n: 'last' } }, nothing, nothing);
    await talking.clock.advance(900_000);
    expect(talking.got.at(-1)).toEqual({ [kind]: { n: 'last' } });
    expect(talking.delivery.isIdle).toBe(true);
  },
);

test('a large document counts for as many changes as it is large', async () => {
  const talking = world();
  const filler = 'x'.repeat(300_000);
  await talk(talking, (n) => ({ offer: { n, filler } }), 600);
  expect(talking.got.length).toBeLessThan(20);
});

test('neither other documents wait, nor the answer, nor what has not changed', async () => {
  const talking = world();
  await talk(talking, (n) => asking(`name ${n}`), 30);
  const acks: (string | undefined)[] = [];
  talking.delivery.give({ ...asking('last'), acceptance: null }, (problem) => acks.push(problem), nothing);
  await settle();
  expect(talking.got.at(-1)).toEqual({ acceptance: null });
  expect(acks).toEqual([undefined]);
  const before = talking.got.length;
  await talk(talking, () => ({ acceptance: null }), 30);
  expect(talking.got.slice(before).filter((one) => 'acceptance' in one)).toHaveLength(300);
});

test('a new link brings no new budget', async () => {
  const clock = new FakeClock();
  const paces = new DocumentPaces(clock);
  await talk(world(undefined, clock, paces), (n) => asking(`${n}`), 30);
  const again = world(undefined, clock, paces);
  await talk(again, (n) => asking(`again ${n}`), 5);
  expect(again.got.length).toBeLessThan(3);
});

test('what waits for its turn is dropped once its sender has gone', async () => {
  let isPresent = true;
  const talking = world(() => isPresent);
  await talk(talking, (n) => asking(`name ${n}`), 30);
  expect(talking.delivery.isIdle).toBe(false);
  const before = talking.got.length;
  isPresent = false;
  await talking.clock.advance(60_000);
  expect(talking.got).toHaveLength(before);
  expect(talking.delivery.isIdle).toBe(true);
});
