/** What a program does with its labs when somebody interrupts it. */
import { existsSync } from 'node:fs';

import { expect, test } from '@jest/globals';

import { Lab } from '../../lab/lab.ts';
import { describeHolder } from '../../lab/holder.ts';
import { labPaths } from '../../lab/paths.ts';

test('all labs that a program holds are removed, and nothing of them runs', async () => {
  const name = `held-${process.pid}`;
  const lab = await Lab.fresh({ name, workload: 'kwok', clusters: [{ name: 'home' }] });
  const pids = [...lab.daemons().values()].flatMap(({ id }) => (id === undefined ? [] : [id.pid]));
  expect(pids).not.toEqual([]);
  expect(await Lab.downHeld()).toEqual([name]);
  const { runDirectory, dataDirectory } = labPaths(name);
  expect([...pids.map((pid) => `/proc/${pid}`), runDirectory, dataDirectory].filter(existsSync)).toEqual([]);
  expect(describeHolder(name)).toBeUndefined();
  expect(await Lab.downHeld()).toEqual([]);
});
