/** Which cluster a command speaks to. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { kubectlCredentials } from '../../../src/cli/kubeconfig.ts';

let folder: string;
const before = process.env['KUBECONFIG'];

const write = (name: string): string => {
  const file = join(folder, name);
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': name,
      clusters: [{ name, cluster: { server: `https://${name}.example.org:6443` } }],
      users: [{ name, user: { token: name } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    }),
  );
  return file;
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tributary-kubeconfig-'));
  process.env['KUBECONFIG'] = [write('rome'), write('milan')].join(':');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
  if (before === undefined) delete process.env['KUBECONFIG'];
  else process.env['KUBECONFIG'] = before;
});

test('of several files the first one says where we are, as for kubectl', async () => {
  const { server } = await kubectlCredentials({ kubeconfig: undefined, context: undefined });
  expect(server.hostname).toBe('rome.example.org');
});

test('a named context is found in any of them', async () => {
  const { server } = await kubectlCredentials({ kubeconfig: undefined, context: 'milan' });
  expect(server.hostname).toBe('milan.example.org');
});
