import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { aPod } from '../../support/e2e/pods.ts';
import { TRANSPORTS, World } from './support/world.ts';

const BYTES = 20 * 1024 * 1024;

let world: World;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'tributary-copy-'));
  world = await World.open('copy');
  await world.runPod(aPod('store'));
});

afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await world.close();
});

describe.each(TRANSPORTS)('kubectl cp over %s', (transport, env) => {
  test('20 MB there and back are identical', async () => {
    const content = randomBytes(BYTES);
    const [there, back] = [`there-${transport}`, `back-${transport}`];
    writeFileSync(join(directory, there), content);
    const options = { env, cwd: directory, timeoutMs: 60_000 };
    await world.ask(['cp', there, `store:/tmp/${there}`], options);
    const remote = await world.ask(['exec', 'store', '--', 'sha256sum', `/tmp/${there}`]);
    expect(remote.split(' ')[0]).toBe(sha256(content));
    await world.ask(['cp', `store:/tmp/${there}`, back], options);
    expect(sha256(readFileSync(join(directory, back)))).toBe(sha256(content));
  });
});

const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
