import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { clustersOf, withArchive } from '../../../lab/image-archive.ts';

test('a file is taken as it is, and stays', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tributary-archive-'));
  const file = join(folder, 'image.tar');
  writeFileSync(file, '');
  const used: string[] = [];
  await withArchive(file, async (archive) => Promise.resolve(void used.push(archive)));
  expect(used).toEqual([file]);
  expect(existsSync(file)).toBe(true);
  rmSync(folder, { recursive: true });
});

test('an image that nobody has: who was asked, and what builds one', async () => {
  const use = async (): Promise<never> => Promise.reject(new Error('there is none'));
  await expect(withArchive('tributary.example/none:0', use)).rejects.toThrow(
    /^there is no file tributary\.example\/none:0, and nobody here has an image of that name \(buildah: .*; podman: .*; docker: .*\)\. make image/su,
  );
});

test('the clusters of a lab, by name or all', () => {
  const clusters = [{ name: 'home' }, { name: 'foreign' }];
  expect(clustersOf(clusters, undefined)).toEqual(clusters);
  expect(clustersOf(clusters, ['foreign'])).toEqual([{ name: 'foreign' }]);
  expect(() => clustersOf(clusters, ['rome'])).toThrow('no cluster rome in this lab; it has: home, foreign');
});
