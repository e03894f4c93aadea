import { expect, test } from '@jest/globals';

import { type ErrorCode, TributaryError } from '../../../src/lib/errors.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { persistently } from '../../../src/lib/persistence.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Fails with each of the errors in turn, then succeeds. */
async function attempt(
  errors: Error[],
  { signal = new AbortController().signal, final }: { signal?: AbortSignal; final?: ErrorCode[] } = {},
): Promise<{ result: unknown; calls: number; said: unknown[]; tookMs: number }> {
  const clock = new FakeClock();
  const said: unknown[] = [];
  const write = (line: string): void => void said.push((JSON.parse(line) as { error?: string }).error);
  const log = createLogger({ level: 'info', now: () => 0, write });
  let calls = 0;
  const work = async (): Promise<string> => {
    const error = errors[calls++];
    if (error !== undefined) throw error;
    return Promise.resolve('done');
  };
  const options = { clock, log, complaint: 'it fails', ...(final && { final }) };
  const trying = persistently(work, options, signal).catch((error: unknown) => error);
  const result = await clock.during('attempts', trying);
  return { result, calls, said, tookMs: clock.monotonic() };
}

const failure = (code: ErrorCode): TributaryError => new TributaryError(code, `it is ${code}`);

test('what time cures is done again each second, and each cause is logged once', async () => {
  const codes: ErrorCode[] = ['Unavailable', 'Unavailable', 'Conflict', 'AlreadyExists', 'Unreachable'];
  expect(await attempt(codes.map(failure))).toEqual({
    result: 'done',
    calls: 6,
    said: ['it is Unavailable', 'it is Conflict', 'it is AlreadyExists', 'it is Unreachable'],
    tookMs: 5000,
  });
});

test.each([failure('Invalid'), failure('Forbidden'), failure('Aborted'), new TypeError('a bug')])(
  'it ends with %s',
  async (error) => {
    expect(await attempt([error])).toEqual({ result: error, calls: 1, said: [], tookMs: 0 });
  },
);

test('who waits for rights, too, says so', async () => {
  expect(await attempt([failure('Forbidden')], { final: [] })).toMatchObject({ result: 'done', calls: 2 });
});

test('a signal ends it', async () => {
  const signal = AbortSignal.abort(new Error('the process ends'));
  expect(await attempt([failure('Unavailable')], { signal })).toMatchObject({
    result: signal.reason,
    calls: 1,
  });
});
