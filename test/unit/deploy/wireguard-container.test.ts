import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import type { WireGuardChoice } from '../../../src/api/tunnel.ts';
import type { PodSpec } from '../../../src/api/wire.ts';
import { forgeGateway } from '../../../src/deploy/gateway.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'wireguard-container-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A program that writes its name and its last argument into the log, and ends as it is told. */
function program(name: string, script: string): void {
  const file = join(directory, name);
  writeFileSync(
    file,
    `#!/bin/sh\nfor last; do :; done\necho "${name} $last" >> "${directory}/log"\n${script}\n`,
  );
  chmodSync(file, 0o755);
}

/** What the container runs, in order, until it waits for its end. wireguard-go ends at once. */
function runs(by: WireGuardChoice | undefined, { kernelHasIt = false, linkAnswers = false } = {}): string[] {
  const ends = (well: boolean): string => `exit ${well ? 0 : 1}`;
  program('node', ends(kernelHasIt));
  program('wg', ends(linkAnswers));
  // The third time it is enough.
  program('wireguard-go', `[ $(grep -c wireguard-go "${directory}/log") -lt 3 ] || kill $PPID; exit 1`);
  program('sleep', 'exit 0');
  const deployment = forgeGateway({ image: 'tributary:1', ...(by && { wireguard: by }) }).at(
    -1,
  ) as unknown as {
    spec: { template: { spec: PodSpec } };
  };
  const [, container] = deployment.spec.template.spec.containers;
  const [shell = '', ...args] = container?.command ?? [];
  execFileSync(shell, args, { env: { PATH: `${directory}:/usr/bin:/bin` } });
  const log = readFileSync(join(directory, 'log'), 'utf8').trim().split('\n');
  return log.filter((line) => line !== 'sleep 0.2');
}

const PROGRAM = 'wireguard-go tributary';
const ASKED = 'node kernel-wireguard';
const IDLE = 'sleep infinity';

test('auto asks the kernel, and starts wireguard-go only where it has no WireGuard', () => {
  expect(runs(undefined, { kernelHasIt: true })).toEqual([ASKED, IDLE]);
});

test('auto starts wireguard-go again whenever it ends', () => {
  const link = 'wg tributary';
  expect(runs('auto').slice(0, 5)).toEqual([ASKED, PROGRAM, link, PROGRAM, link]);
});

test('auto makes room for a link that the kernel has meanwhile', () => {
  expect(runs('auto', { linkAnswers: true })).toEqual([ASKED, PROGRAM, 'wg tributary', IDLE]);
});

test('kernel never starts wireguard-go, and userspace asks nobody', () => {
  expect(runs('kernel')).toEqual([IDLE]);
  rmSync(join(directory, 'log'));
  expect(runs('userspace', { kernelHasIt: true, linkAnswers: true })).toEqual([PROGRAM, PROGRAM, PROGRAM]);
});
