import { beforeEach, expect, test } from '@jest/globals';

import { accountToken } from '../../../src/kube/account-token.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let asked: number;
let problem: Error | undefined;
let token: ReturnType<typeof accountToken>;

beforeEach(() => {
  clock = new FakeClock();
  asked = 0;
  problem = undefined;
  const create = async (): Promise<object> => {
    await Promise.resolve();
    if (problem !== undefined) throw problem;
    asked += 1;
    return { spec: { expirationSeconds: 600 }, status: { token: `t${asked}` } };
  };
  const client = { create } as unknown as Pick<KubeClient, 'create'>;
  token = accountToken(client, { namespace: 'tributary-network', name: 'tributary-gateway' }, clock);
});

const after = async (seconds: number): Promise<string | undefined> => {
  await clock.advance(seconds * 1000);
  return token();
};

test('a token is kept for most of its life, and asked for once by all who want it', async () => {
  expect(await Promise.all([token(), token()])).toEqual(['t1', 't1']);
  expect(await after(400)).toBe('t1');
  expect(await after(30)).toBe('t2');
});

test('one that the API server refuses is replaced at once', async () => {
  expect(await token()).toBe('t1');
  expect(await token(undefined, true)).toBe('t2');
});

test('while no other can be had, it is used until it ends', async () => {
  expect(await token()).toBe('t1');
  problem = new Error('away');
  expect(await after(500)).toBe('t1');
  await expect(token(undefined, true)).rejects.toThrow('away');
  await expect(after(100)).rejects.toThrow('away');
});
