import { expect, test } from '@jest/globals';

import { mustBe, waitFor } from '../../../../src/cli/install/waiting.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

let said: string[] = [];

async function waited(
  run: (session: Parameters<typeof waitFor>[0], clock: FakeClock) => Promise<unknown>,
): Promise<void> {
  said = [];
  const clock = new FakeClock();
  const io = { out: (text: string) => void said.push(text.trim()), err: () => {} };
  const signal = new AbortController().signal;
  const session = { client: new FakeApi({ types: [] }).client(), clock, io, signal };
  await clock.during('the wait', run(session, clock));
}

test('what stays the same is said less and less often, and what changes is said again at once', async () => {
  await waited(async (session, clock) => {
    const began = clock.monotonic();
    await waitFor(session, {
      what: 'for pods',
      timeoutMs: 60_000,
      look: async () => Promise.resolve(clock.monotonic() - began < 40_000 ? 'one' : 'two'),
    });
  });
  expect(said).toEqual([
    'waiting for pods, 5 s: one',
    'waiting for pods, 10 s: one',
    'waiting for pods, 20 s: one',
    'waiting for pods, 40 s: two',
    'waiting for pods, 45 s: two',
    'waiting for pods, 55 s: two',
  ]);
});

test('where it does not come in time, the error says what was missing, and what to do', async () => {
  await waited(async (session) => {
    const look = async (): Promise<string> => Promise.resolve('no image');
    const wait = { what: 'for a role to be ready', timeoutMs: 10_000, look };
    await expect(mustBe(session, wait)).rejects.toThrow(
      /^waited 10 s for a role to be ready, without success: no image$/v,
    );
    await expect(mustBe(session, { ...wait, advice: 'Name another one' })).rejects.toThrow(
      /: no image\. Name another one$/v,
    );
  });
});
