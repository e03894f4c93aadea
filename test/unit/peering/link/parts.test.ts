import { describe, expect, test } from '@jest/globals';

import type { Offer } from '../../../../src/api/offer.ts';
import { parseEndpoint } from '../../../../src/lib/endpoint.ts';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { OutgoingCalls } from '../../../../src/peering/link/calls.ts';
import { contest } from '../../../../src/peering/link/contest.ts';
import { Delivery } from '../../../../src/peering/link/delivery.ts';
import { DocumentPaces } from '../../../../src/peering/link/document-paces.ts';
import {
  commonProtocol,
  helloTo,
  type NetworkKey,
  provedKeys,
  type SelfDescription,
} from '../../../../src/peering/link/hello.ts';
import { Outbox } from '../../../../src/peering/link/outbox.ts';
import { Throttle } from '../../../../src/peering/link/throttle.ts';
import type { DocumentChanges, Documents } from '../../../../src/peering/protocol/documents.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

describe('endpoint', () => {
  test.each([
    ['host:1', 'host', 1],
    ['a.example.org:65535', 'a.example.org', 65_535],
    ['10.0.0.1:7443', '10.0.0.1', 7443],
    ['[::1]:7443', '::1', 7443],
    ['[fe80::1%eth0]:7443', 'fe80::1%eth0', 7443],
  ])('%s', (endpoint, host, port) => {
    expect(parseEndpoint(endpoint)).toEqual({ host, port });
  });
  test.each([
    '',
    'host',
    'host:',
    ':1',
    'host:0',
    'host:65536',
    '::1:7443',
    'https://host:1',
    'a b:1',
    'u@h:1',
  ])('not %j', (endpoint) => {
    expect(() => parseEndpoint(endpoint)).toThrow('not HOST:PORT');
  });
});

describe('of two links', () => {
  test('both ends choose the same one, in whichever order they saw them', () => {
    const [lower, higher] = ['aaa', 'bbb'];
    // The lower one's own dialling is `Us` there and `Them` at the other end.
    expect(contest('Them', 'Us', { own: lower, peer: higher })).toBe('replace');
    expect(contest('Us', 'Them', { own: lower, peer: higher })).toBe('probe');
    expect(contest('Us', 'Them', { own: higher, peer: lower })).toBe('replace');
    expect(contest('Them', 'Us', { own: higher, peer: lower })).toBe('probe');
    for (const side of ['Us', 'Them'] as const) {
      expect(contest(side, side, { own: lower, peer: higher })).toBe('probe');
    }
  });
});

describe('hello', () => {
  const key = Buffer.alloc(32, 1);
  const self = (): SelfDescription => ({
    clusterName: 'n'.repeat(200),
    software: '1',
    endpoints: Array(20).fill('h:1') as string[],
  });

  test('fits what the other end takes', () => {
    const networkKeys = (): NetworkKey[] =>
      Array.from({ length: 20 }, (_, index) => ({ name: `${index}`, key }));
    const hello = helloTo('peer', 'own', { self, networkKeys });
    expect(hello.clusterName).toHaveLength(128);
    expect(hello.endpoints).toHaveLength(8);
    expect(hello.networkProofs).toHaveLength(8);
  });

  test('proves a key to the one it is meant for, and cannot be thrown back', () => {
    const keys = [{ name: 'k', key }];
    const { networkProofs } = helloTo('b', 'a', { self, networkKeys: () => keys });
    expect(provedKeys(networkProofs, keys, { peer: 'a', own: 'b' })).toEqual(['k']);
    expect(provedKeys(networkProofs, keys, { peer: 'b', own: 'a' })).toEqual([]);
    expect(provedKeys(networkProofs, keys, { peer: 'a', own: 'c' })).toEqual([]);
    expect(
      provedKeys(networkProofs, [{ name: 'k', key: Buffer.alloc(32) }], { peer: 'a', own: 'b' }),
    ).toEqual([]);
  });

  test('the highest version of both', () => {
    expect(commonProtocol([1, 2], [2, 1, 9])).toBe(2);
    expect(commonProtocol([1], [2])).toBeUndefined();
    expect(commonProtocol([1], [])).toBeUndefined();
  });
});

test('a throttle stops reading for as long as was taken too early', async () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  const channel = { pause: () => seen.push('pause'), resume: () => seen.push('resume') };
  const rates = { messagesPerSecond: 10, messagesAtOnce: 2, bytesPerSecond: 1_000, bytesAtOnce: 1_000 };
  const throttle = new Throttle(channel, clock, rates);
  throttle.took(10);
  throttle.took(10);
  expect(seen).toEqual([]);
  throttle.took(10);
  expect(throttle.paused).toBe(true);
  await clock.advance(99);
  expect(seen).toEqual(['pause']);
  await clock.advance(1);
  expect(seen).toEqual(['pause', 'resume']);
  throttle.took(3_000);
  await clock.advance(1_900);
  expect(throttle.paused).toBe(true);
  await clock.advance(200);
  expect(throttle.paused).toBe(false);
});

describe('outbox', () => {
  const box = (): {
    clock: FakeClock;
    sent: DocumentChanges[];
    state: { documents: Documents | undefined };
    outbox: Outbox;
  } => {
    const clock = new FakeClock();
    const sent: DocumentChanges[] = [];
    const state: { documents: Documents | undefined } = { documents: {} };
    const outbox = new Outbox({
      documents: () => {
        if (state.documents === undefined) throw new Error('not known');
        return state.documents;
      },
      send: (_id, changes) => sent.push(changes),
      clock,
      log: silentLogger,
    });
    return { clock, sent, state, outbox };
  };
  const request = { clusterName: 'a', namespaces: [] };

  test('waits for each acknowledgement and then sends the last word, if it differs', () => {
    const { sent, state, outbox } = box();
    outbox.pump();
    expect(sent).toEqual([
      { request: null, acceptance: null, offer: null, grant: null, network: null, services: null },
    ]);
    expect(outbox.isSilent).toBe(false);
    state.documents = { request };
    outbox.pump();
    state.documents = {};
    outbox.pump();
    outbox.acknowledged(7, undefined);
    expect(sent).toHaveLength(1);
    outbox.acknowledged(1, undefined);
    expect(sent).toHaveLength(1);
    expect(outbox.isSilent).toBe(true);
    state.documents = { request };
    outbox.pump();
    expect(sent[1]).toEqual({ request });
  });

  test('sends in several messages what does not fit in one, and never what fits in none', () => {
    const { sent, state, outbox } = box();
    const large = { offer: { images: ['x'.repeat(700_000)] } as Offer, signature: 's' };
    const acceptance = { text: 'y'.repeat(600_000), signature: 's' };
    state.documents = { acceptance, offer: large };
    outbox.pump();
    outbox.acknowledged(1, undefined);
    expect(sent.map((each) => Object.keys(each))).toEqual([
      ['request', 'acceptance', 'grant', 'network', 'services'],
      ['offer'],
    ]);
    outbox.acknowledged(2, undefined);
    state.documents = { request, offer: { ...large, signature: 'z'.repeat(600_000) } };
    outbox.pump();
    outbox.acknowledged(3, undefined);
    expect(sent.slice(2)).toEqual([{ request, acceptance: null }]);
  });

  test('asks again for what was not known', async () => {
    const { clock, sent, state, outbox } = box();
    state.documents = undefined;
    outbox.pump();
    expect(sent).toEqual([]);
    state.documents = { request };
    await clock.advance(1_000);
    expect(sent).toMatchObject([{ request }]);
  });
});

describe('delivery', () => {
  const deliver = (
    outcome: (changes: DocumentChanges) => void,
    isPresent = (): boolean => true,
  ): { clock: FakeClock; got: DocumentChanges[]; delivery: Delivery } => {
    const clock = new FakeClock();
    const got: DocumentChanges[] = [];
    const received = async (_peer: unknown, changes: DocumentChanges): Promise<void> => {
      got.push(changes);
      outcome(changes);
    };
    const delivery = new Delivery({
      peer: { clusterID: 'p', publicKey: new Uint8Array(32) },
      isPresent,
      lending: { received },
      borrowing: { received },
      paces: new DocumentPaces(clock),
      clock,
      random: () => 0.5,
      log: silentLogger,
    });
    return { clock, got, delivery };
  };

  test('splits by side, and one side’s trouble does not keep the other from its words', async () => {
    const { got, delivery } = deliver((changes) => {
      if ('request' in changes) throw new TributaryError('Invalid', 'no');
    });
    const acks: (string | undefined)[] = [];
    delivery.give(
      { request: null, grant: null, offer: null },
      (problem) => acks.push(problem),
      () => undefined,
    );
    await settle();
    expect(got).toEqual([{ request: null }, { offer: null, grant: null }]);
    expect(acks).toEqual(['no']);
    expect(delivery.isIdle).toBe(true);
  });

  test('tries again what failed because of us, with what is newer in its place', async () => {
    let away = true;
    const { clock, got, delivery } = deliver(() => {
      if (away) throw new TributaryError('Unavailable', 'away');
    });
    const acks: (string | undefined)[] = [];
    const request = { clusterName: 'a', namespaces: [] };
    delivery.give(
      { request, acceptance: null },
      (problem) => acks.push(problem),
      () => undefined,
    );
    await clock.advance(5_000);
    const before = got.length;
    expect(before).toBeGreaterThan(2);
    expect(acks).toEqual(['away']);
    delivery.give(
      { request: null },
      (problem) => acks.push(problem),
      () => undefined,
    );
    await settle();
    expect(got.at(-1)).toEqual({ request: null, acceptance: null });
    away = false;
    await clock.advance(60_000);
    expect(delivery.isIdle).toBe(true);
    expect(got.at(-1)).toEqual({ request: null, acceptance: null });
    expect(acks).toEqual(['away', 'away']);
  });

  test('keeps of a peer that has gone what it has taken back, and nothing else', async () => {
    let isPresent = true;
    const { clock, got, delivery } = deliver(
      () => {
        throw new TributaryError('TooManyRequests', 'full');
      },
      () => isPresent,
    );
    delivery.give(
      { request: { clusterName: 'a', namespaces: [] }, acceptance: null },
      () => undefined,
      () => undefined,
    );
    await clock.advance(5_000);
    isPresent = false;
    await clock.advance(120_000);
    expect(got.at(-1)).toEqual({ acceptance: null });
    expect(delivery.isIdle).toBe(false);
    await delivery.stop();

    const stranger = deliver(
      () => {
        throw new TributaryError('TooManyRequests', 'full');
      },
      () => false,
    );
    stranger.delivery.give(
      { request: { clusterName: 'a', namespaces: [] } },
      () => undefined,
      () => undefined,
    );
    await settle();
    expect(stranger.delivery.isIdle).toBe(true);
  });

  test('ends when it is told to, whatever is left', async () => {
    const { clock, delivery } = deliver(() => {
      throw new Error('bug');
    });
    delivery.give(
      { request: null },
      () => undefined,
      () => undefined,
    );
    await clock.advance(1_000);
    await delivery.stop();
    expect(delivery.isIdle).toBe(true);
  });
});

test('calls: a cap, and answers that nobody waits for', async () => {
  const clock = new FakeClock();
  const calls = new OutgoingCalls({ clock, send: () => undefined, timeoutMs: 1_000, max: 2 });
  const waiting = [1, 2].map(async () => calls.call('dial', { stream: 'x' }, undefined));
  const outcomes = Promise.allSettled(waiting);
  await expect(calls.call('dial', { stream: 'x' }, undefined)).rejects.toMatchObject({
    code: 'TooManyRequests',
  });
  calls.answered(1, {});
  calls.answered(99, {});
  calls.refused(99, 'Invalid', 'x');
  await clock.advance(1_000);
  expect(await outcomes).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'Unreachable' } }]);
  calls.answered(2, {});
  calls.end('over');
  await expect(calls.call('dial', { stream: 'x' }, undefined)).rejects.toMatchObject({ code: 'Unreachable' });
});
