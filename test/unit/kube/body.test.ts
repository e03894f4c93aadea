import { PassThrough, Readable } from 'node:stream';
import { expect, jest, test } from '@jest/globals';
import { collect, lines } from '../../../src/kube/body.ts';

async function* chunks(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}

async function collectLines(source: AsyncIterable<Buffer>): Promise<string[]> {
  const found: string[] = [];
  for await (const line of lines(source)) found.push(line.toString());
  return found;
}

test.each<[string, string[], string[]]>([
  ['one a chunk', ['a\n', 'b\n'], ['a', 'b']],
  ['many a chunk', ['a\nb\nc\n'], ['a', 'b', 'c']],
  ['over many chunks', ['a', 'b', 'c\nd', 'e\n'], ['abc', 'de']],
  ['a break of its own', ['a', '\n', 'b\n'], ['a', 'b']],
  ['empty lines', ['\n\na\n'], ['', '', 'a']],
  ['an unfinished last line', ['a\nb'], ['a']],
  ['nothing', [], []],
])('lines: %s', async (_what, texts, expected) => {
  expect(await collectLines(chunks(...texts))).toEqual(expected);
});

test('every way of cutting a text gives the same lines', async () => {
  const text = 'first\nzweite äöü\n\nlast one\n';
  const bytes = Buffer.from(text);
  for (let size = 1; size <= bytes.length; size++) {
    const source = async function* (): AsyncGenerator<Buffer> {
      for (let at = 0; at < bytes.length; at += size)
        yield await Promise.resolve(bytes.subarray(at, at + size));
    };
    expect(await collectLines(source())).toEqual(text.split('\n').slice(0, -1));
  }
});

test('a long line in small chunks takes linear time; one beyond the limit is refused', async () => {
  const chunk = Buffer.alloc(1024, 'x');
  const source = async function* (count: number): AsyncGenerator<Buffer> {
    for (let index = 0; index < count; index++) yield await Promise.resolve(chunk);
    yield Buffer.from('\n');
  };
  const searched = jest.spyOn(chunk, 'indexOf');
  const joined = jest.spyOn(Buffer, 'concat');
  try {
    const count = 15 * 1024;
    expect((await collectLines(source(count)))[0]).toHaveLength(count * 1024);
    // Each chunk is searched once, and all are joined once.
    expect(searched).toHaveBeenCalledTimes(count);
    expect(joined).toHaveBeenCalledTimes(1);
  } finally {
    jest.restoreAllMocks();
  }
  await expect(collectLines(source(17 * 1024))).rejects.toMatchObject({ code: 'Unavailable' });
});

const whole = { maxBytes: 10, excess: 'throw' } as const;

test('a body is read to its end, and closed', async () => {
  const body = Readable.from([Buffer.from('abc'), Buffer.from('def')]);
  expect((await collect(body, whole)).toString()).toBe('abcdef');
  expect(body.destroyed).toBe(true);
  expect(await collect(Readable.from([]), whole)).toHaveLength(0);
});

test('a body that is too long is refused, or cut, and closed in either case', async () => {
  const endless = (): Readable =>
    Readable.from(
      (function* () {
        for (;;) yield Buffer.from('abc');
      })(),
    );
  const [refused, cut] = [endless(), endless()];
  await expect(collect(refused, whole)).rejects.toMatchObject({ code: 'Unavailable' });
  expect((await collect(cut, { maxBytes: 10, excess: 'cut' })).toString()).toBe('abcabcabca');
  expect([refused.destroyed, cut.destroyed]).toEqual([true, true]);
});

test('a body that breaks off says so, whenever it does', async () => {
  const broken = new PassThrough();
  const reading = collect(broken, whole);
  broken.write('abc');
  broken.destroy(new Error('reset'));
  await expect(reading).rejects.toMatchObject({
    code: 'Unreachable',
    message: 'the answer broke off: reset',
  });
  await expect(collect(broken, whole)).rejects.toMatchObject({ message: 'the answer broke off: reset' });
  const closed = new PassThrough();
  const waiting = collect(closed, whole);
  closed.destroy();
  await expect(waiting).rejects.toMatchObject({ code: 'Unreachable' });
});

test('an error after all has been read ends nothing', async () => {
  const body = new Readable({
    read() {
      this.push('abc');
      this.push(null);
    },
    destroy: (_error, callback) => setImmediate(() => callback(new Error('late'))),
  });
  expect((await collect(body, whole)).toString()).toBe('abc');
  await new Promise((resolve) => body.once('close', resolve));
});
