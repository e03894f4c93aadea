import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { cacheDir, cached, isComplete } from '../../../lab/cache.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tributary-cache-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

test.each([
  [{ TRIBUTARY_CACHE: '/t', XDG_CACHE_HOME: '/x', HOME: '/h' }, '/t'],
  [{ XDG_CACHE_HOME: '/x', HOME: '/h' }, '/x/tributary'],
  [{ XDG_CACHE_HOME: '', HOME: '/h' }, '/h/.cache/tributary'],
])('the cache of %j is %s', (env, expected) => {
  expect(cacheDir(env)).toBe(expected);
});

test('an entry is made once, also when several ask at the same time', async () => {
  let made = 0;
  const make = async (out: string): Promise<void> => {
    made += 1;
    await writeFile(join(out, 'file'), 'content');
  };
  const entry = join(dir, 'entry');
  await Promise.all([cached(entry, make), cached(entry, make), cached(entry, make)]);
  await cached(entry, make);
  expect(made).toBe(1);
  expect(readFileSync(join(entry, 'file'), 'utf8')).toBe('content');
});

test('a failure leaves nothing behind, and the next one starts afresh', async () => {
  const entry = join(dir, 'entry');
  const broken = cached(entry, async (out) => {
    await writeFile(join(out, 'half'), '');
    throw new Error('no network');
  });
  await expect(broken).rejects.toThrow('no network');
  expect(readdirSync(dir)).toEqual(['entry.lock']);
  expect(isComplete(entry)).toBe(false);

  await cached(entry, async (out) => writeFile(join(out, 'whole'), ''));
  expect(isComplete(entry)).toBe(true);
  expect(existsSync(join(entry, 'half'))).toBe(false);
});
