import { describe, expect, test } from '@jest/globals';

import { TributaryError } from '../../../../src/lib/errors.ts';
import { KernelError } from '../../../../src/network/host/rtnetlink.ts';
import { Work } from '../../../../src/network/host/work.ts';

const refuse = (errno: string) => async (): Promise<void> => {
  throw new KernelError(errno);
};

describe('what one set has done', () => {
  test('counts, also within each other', async () => {
    const work = new Work();
    await work.attempt('routes', async () => {
      await work.change('a route', async () => undefined);
      await work.attempt('two', async () => 2);
      return 0;
    });
    await work.remove('a link', async () => undefined);
    expect(work.report()).toEqual({ changes: 4, problems: [] });
  });

  test("says what the kernel refused, and that a tool's words are its own", async () => {
    const work = new Work();
    expect(await work.change('route 10.1.0.0/16 dev x metric 1', refuse('ENETUNREACH'))).toBe(false);
    await work.change('link x', refuse('EPERM'));
    await work.change('link x', refuse('EPERM'));
    await work.attempt('nftables', async () => {
      throw new TributaryError('Invalid', 'table t: syntax error');
    });
    expect(work.report()).toEqual({
      changes: 0,
      problems: [
        'route 10.1.0.0/16 dev x metric 1: the kernel refused it: ENETUNREACH',
        'link x: the kernel refused it: EPERM (it takes CAP_NET_ADMIN and the network of the host)',
        'table t: syntax error',
      ].map((message) => ({ reason: 'Refused', message })),
    });
  });

  test('what is gone already needs no removal', async () => {
    const work = new Work();
    expect(await work.remove('a route', refuse('ESRCH'))).toBe(true);
    expect(await work.remove('a link', refuse('EBUSY'))).toBe(false);
    expect(work.report()).toEqual({
      changes: 0,
      problems: [{ reason: 'Refused', message: 'removing a link: the kernel refused it: EBUSY' }],
    });
  });

  test('is told in so many lines and no more', async () => {
    const work = new Work();
    for (let i = 0; i < 1_000; i++) await work.change(`route ${i}`, refuse('ENODEV'));
    const { problems } = work.report();
    expect(problems).toHaveLength(17);
    expect(problems.at(-1)?.message).toBe('and 984 more');
  });

  test('what is about one route is told of every route', async () => {
    const work = new Work();
    for (let i = 0; i < 20; i++) await work.change(`route ${i}`, refuse('ENODEV'), `10.${i}.0.0/16`);
    await work.change('link x', refuse('EPERM'));
    const { problems } = work.report();
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toMatchObject({ about: '10.19.0.0/16' });
  });

  test('stops when it is told to stop', async () => {
    const aborted = async (): Promise<void> => {
      throw new TributaryError('Aborted', 'over');
    };
    await expect(new Work().change('a link', aborted)).rejects.toThrow('over');
  });
});
