import { describe, expect, test } from '@jest/globals';

import { decodeProbe, encodeProbe, PROBE_HEADER } from '../../../../src/network/probe/message.ts';
import {
  innerMtu,
  narrowed,
  nextSizes,
  payloadOf,
  type SearchState,
  SMALLEST_MTU,
} from '../../../../src/network/probe/path-mtu.ts';
import { Samples } from '../../../../src/network/probe/samples.ts';
import { fc } from '../../../support/property.ts';

describe('messages', () => {
  const message = { size: 100, token: '0123456789abcdef', sequence: 7 };

  test('a request is as large as it says, an answer a header, and both are read back', () => {
    const request = encodeProbe({ type: 'request', ...message });
    const answer = encodeProbe({ type: 'answer', ...message });
    expect([request.length, answer.length]).toEqual([100, PROBE_HEADER]);
    expect(decodeProbe(request)).toEqual({ type: 'request', ...message, isHeard: false });
    const heard = encodeProbe({ type: 'request', ...message, isHeard: true });
    expect(decodeProbe(heard)).toEqual({ type: 'request', ...message, isHeard: true });
    expect(decodeProbe(answer)).toEqual({ type: 'answer', ...message });
  });

  test('a request of an earlier version, which ends where that is said, is one as well', () => {
    const request = encodeProbe({ type: 'request', ...message, size: PROBE_HEADER });
    expect(decodeProbe(request)).toMatchObject({ type: 'request', isHeard: false });
  });

  test.each([
    ['cut off', (bytes: Uint8Array) => bytes.subarray(0, 99)],
    ['longer', (bytes: Uint8Array) => Buffer.concat([bytes, Buffer.alloc(1)])],
    ['shorter than a header', (bytes: Uint8Array) => bytes.subarray(0, PROBE_HEADER - 1)],
    ['of another protocol', (bytes: Uint8Array) => bytes.fill(0, 0, 4)],
    ['of an unknown type', (bytes: Uint8Array) => bytes.fill(9, 4, 5)],
    ['of a later version', (bytes: Uint8Array) => bytes.fill(1, 5, 6)],
  ])('one that is %s is nothing', (_, change) => {
    expect(decodeProbe(change(encodeProbe({ type: 'request', ...message })))).toBeUndefined();
  });

  test('anything else is nothing, and no error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const read = decodeProbe(bytes);
        return read === undefined || read.type === 'answer' || read.size === bytes.length;
      }),
    );
  });
});

describe('samples', () => {
  test('the median of the last ten, and the loss of the last thirty', () => {
    const samples = new Samples();
    expect([samples.rttMs, samples.lossPercent]).toEqual([undefined, 0]);
    for (const rtt of [1000, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9]) samples.answered(rtt);
    expect(samples.rttMs).toBe(5);
    for (let i = 0; i < 15; i++) samples.missed();
    expect(samples.lossPercent).toBeCloseTo((100 * 15) / 26);
    for (let i = 0; i < 15; i++) samples.missed();
    expect(samples.lossPercent).toBe(100);
    expect(samples.rttMs).toBe(5);
  });
});

describe('sizes', () => {
  test.each([
    [1280, '192.0.2.1', 1216],
    [1280, '2001:db8::1', 1200],
    [1500, '192.0.2.1', 1440],
    [100, '192.0.2.1', SMALLEST_MTU],
  ])('of %i bytes to %s, %i are left within', (outer, endpoint, inner) => {
    expect(innerMtu(outer, endpoint)).toBe(inner);
    // Whatever is smaller is filled up to sixteens, and must still fit.
    expect(inner % 16).toBe(0);
  });

  test('a packet is its payload and two headers', () => {
    expect([payloadOf(1420, '10.0.0.1'), payloadOf(1420, 'fd00::1')]).toEqual([1392, 1372]);
  });

  test('any limit is found, in three rounds at most, with eight sizes at once', () => {
    fc.assert(
      fc.property(fc.integer({ min: SMALLEST_MTU, max: 1420 }), (limit) => {
        let state: SearchState = { fits: SMALLEST_MTU - 1, over: 1420 };
        let rounds = 0;
        for (let sizes = nextSizes(state); sizes.length > 0; sizes = nextSizes(state)) {
          expect(sizes.length).toBeLessThanOrEqual(8);
          rounds += 1;
          state = narrowed(
            state,
            sizes,
            sizes.filter((size) => size <= limit),
          );
        }
        expect(rounds).toBeLessThanOrEqual(3);
        expect(state.fits).toBe(Math.min(limit, 1419) - (Math.min(limit, 1419) % 16));
      }),
    );
  });

  test('a smaller one that was lost by chance does not count against a larger one that was not', () => {
    expect(narrowed({ fits: 575, over: 1420 }, [600, 800, 1000, 1200], [600, 1000])).toEqual({
      fits: 1000,
      over: 1200,
    });
  });
});
