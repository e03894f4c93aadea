import { expect, test } from '@jest/globals';
import type { Pod } from '../../../../src/api/wire.ts';
import { Echoes } from '../../../../src/provider/pods/echoes.ts';
import { homePod, UID } from '../support/pods.ts';

const at = (resourceVersion: string, uid = UID): Pod => homePod({ metadata: { uid, resourceVersion } });

/** `write`: begins a write, and answers it. */
function begin(): { echoes: Echoes; looks: string[]; write: () => (written?: Pod) => Promise<void> } {
  const looks: string[] = [];
  const echoes = new Echoes(({ metadata }) => looks.push(metadata.uid));
  const write = (): ((written?: Pod) => Promise<void>) => {
    const answer = Promise.withResolvers<Pod | undefined>();
    const done = echoes.around(at('6'), async () => answer.promise);
    return async (written) => {
      answer.resolve(written);
      await done;
    };
  };
  return { echoes, looks, write };
}

test('what was written is an echo once', async () => {
  const { echoes, looks, write } = begin();
  await write()(at('7'));
  expect(echoes.take(at('7'))).toBe(true);
  expect(echoes.take(at('7'))).toBe(false);
  expect(looks).toEqual([]);
});

test('also if the watch is faster than the answer', async () => {
  const { echoes, looks, write } = begin();
  const answer = write();
  expect(echoes.take(at('7'))).toBe(true);
  await answer(at('7'));
  expect(looks).toEqual([]);
  expect(echoes.take(at('8'))).toBe(false);
});

test('nothing is an echo that was not written', () => {
  expect(begin().echoes.take(at('7'))).toBe(false);
});

test('another change of the pod is none, and ends the wait', async () => {
  const { echoes, write } = begin();
  await write()(at('7'));
  expect(echoes.take(at('8'))).toBe(false);
  expect(echoes.take(at('7'))).toBe(false);
});

test('another change that comes before the answer is looked at after it', async () => {
  const { echoes, looks, write } = begin();
  const answer = write();
  expect(echoes.take(at('7'))).toBe(true);
  expect(echoes.take(at('8'))).toBe(true);
  expect(looks).toEqual([]);
  await answer(at('7'));
  expect(looks).toEqual([UID]);
  expect(echoes.take(at('9'))).toBe(false);
});

test('what was decided of an older state before it came back is decided again', async () => {
  const { echoes, write } = begin();
  await write()(at('7'));
  echoes.looks(at('6'));
  expect(echoes.take(at('7'))).toBe(false);
  await write()(at('8'));
  echoes.looks(at('8'));
  expect(echoes.take(at('8'))).toBe(true);
});

test('a successor of the name is another pod', async () => {
  const { echoes, write } = begin();
  await write()(at('7'));
  expect(echoes.take(at('7', 'another'))).toBe(false);
  expect(echoes.take(at('7'))).toBe(true);
});

test('after a write that leaves something to do, what comes back is looked at', async () => {
  const { echoes, looks, write } = begin();
  const answer = write();
  expect(echoes.take(at('7'))).toBe(true);
  await answer(undefined);
  expect(looks).toEqual([UID]);
  await write()(undefined);
  expect(echoes.take(at('7'))).toBe(false);
});

test('after a write that fails, too', async () => {
  const { echoes, looks } = begin();
  const fails = async (isSeen: boolean): Promise<void> =>
    echoes.around(at('6'), async () => {
      if (isSeen) expect(echoes.take(at('7'))).toBe(true);
      return Promise.reject(new Error('no'));
    });
  await expect(fails(true)).rejects.toThrow('no');
  expect(looks).toEqual([UID]);
  await expect(fails(false)).rejects.toThrow('no');
  expect(looks).toEqual([UID]);
  expect(echoes.take(at('7'))).toBe(false);
});
