import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

import type { Role } from '../../../src/agent/roles.ts';

/** What a role loads it holds for as long as it runs. So each role says here what it may load. */

const ROOT = join(import.meta.dirname, '../../..');
const LIST = join(import.meta.dirname, 'support/list-loaded.mjs');
const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};

/** In every role. */
const BASE = ['agent', 'api', 'cli', 'kube', 'lib', 'server'];

const CASES: readonly (readonly [role: Role, rooms: readonly string[], packages: readonly string[]])[] = [
  ['node', ['network'], ['netlink', 'prom-client']],
  ['gateway', ['discovery', 'network'], ['netlink', 'prom-client']],
  ['peer', ['certificates', 'network', 'provider'], ['express', 'prom-client']],
  [
    'cluster',
    ['certificates', 'dashboard', 'deploy', 'discovery', 'hosting', 'network', 'offloading', 'peering'],
    ['canonicalize', 'dns-packet', 'prom-client'],
  ],
];

/** Large parts of packages and rooms of which a role needs other parts. */
const NEVER = [
  '/node_modules/@opentelemetry/',
  '/node_modules/netlink/dist/nl80211/',
  '/node_modules/netlink/dist/rt/',
  '/src/cli/cli.ts',
  // An import of node:http loads it: see src/server/http.ts.
  'internal/deps/undici',
];

/** The addresses of all modules, and the names of Node's own, that the role has loaded by the time at which it finds no kubeconfig. */
async function loadedBy(role: Role): Promise<string[]> {
  const virtualNode = role === 'peer' ? ['--virtual-node', 'none', '--node-address', '127.0.0.1'] : [];
  const kubeconfig = ['--kubeconfig', join(ROOT, 'no-kubeconfig')];
  const args = ['--import', LIST, join(ROOT, 'src/main.ts'), 'run', role, ...kubeconfig, ...virtualNode];
  const said = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, { maxBuffer: 2 ** 22 }, (_error, _out, err) => resolve(err));
  });
  expect(said).toContain('there is no kubeconfig');
  return said.split('\n').filter((line) => /^(?:file:|NativeModule )/.test(line));
}

const firstMatches = (urls: readonly string[], pattern: RegExp): string[] => [
  ...new Set(urls.flatMap((url) => pattern.exec(url)?.slice(1) ?? [])),
];

test.each(CASES)(
  'role %s loads its own rooms and packages only',
  async (role, rooms, packages) => {
    const urls = await loadedBy(role);
    expect(firstMatches(urls, /\/src\/([^/]+)\//).toSorted()).toEqual([...BASE, ...rooms].toSorted());
    const names = firstMatches(urls, /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    expect(names.filter((name) => Object.hasOwn(dependencies, name)).toSorted()).toEqual(packages);
    expect(urls.filter((url) => NEVER.some((part) => url.includes(part)))).toEqual([]);
  },
  30_000,
);
