/** Which cluster a command speaks to. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { checkThereIsOne, explainedFor, type Spoken } from '../../../src/cli/kubeconfig-trouble.ts';
import { kubectlCredentials, type Where } from '../../../src/cli/kubeconfig.ts';
import { errorMessage, TributaryError } from '../../../src/lib/errors.ts';

let folder: string;
const before = process.env['KUBECONFIG'];

const write = (name: string, cluster: Record<string, string> = {}): string => {
  const file = join(folder, name);
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': name,
      clusters: [{ name, cluster: { server: `https://${name}.example.org:6443`, ...cluster } }],
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

test('the proxy is that of the kubeconfig, else that of the environment, as for kubectl', async () => {
  const of = async (where: Partial<Where>): Promise<string | undefined> =>
    (await kubectlCredentials({ kubeconfig: undefined, context: undefined, ...where })).proxy?.host;
  const named = write('oslo', { 'proxy-url': 'http://named.example:3128' });
  const kept = { HTTPS_PROXY: process.env['HTTPS_PROXY'], NO_PROXY: process.env['NO_PROXY'] };
  try {
    process.env['HTTPS_PROXY'] = 'http://proxy.example:3128';
    process.env['NO_PROXY'] = 'milan.example.org';
    expect(await of({})).toBe('proxy.example');
    expect(await of({ context: 'milan' })).toBeUndefined();
    expect(await of({ kubeconfig: named })).toBe('named.example');
  } finally {
    for (const [name, value] of Object.entries(kept)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
});

describe('what a person did not mean', () => {
  const failing = async (where: Partial<Where>): Promise<string> =>
    kubectlCredentials({ kubeconfig: undefined, context: undefined, ...where }).then(
      () => 'worked',
      (error: unknown) => errorMessage(error),
    );

  test('no kubeconfig at all: where it was looked for, and what to set', () => {
    const check = (env: Record<string, string>): (() => void) => {
      return () => checkThereIsOne(undefined, env, () => false);
    };
    expect(check({ HOME: folder })).toThrow(
      `there is no kubeconfig, so no cluster is known. Looked for: ${folder}/.kube/config, since $KUBECONFIG is not set. Set KUBECONFIG=FILE, or add --kubeconfig FILE`,
    );
    expect(check({ HOME: folder, KUBECONFIG: `${folder}/a:${folder}/b` })).toThrow(
      `Looked for: ${folder}/a, ${folder}/b, named by $KUBECONFIG.`,
    );
    expect(() => checkThereIsOne(undefined, { HOME: folder }, () => true)).not.toThrow();
  });

  test('a file that is not there', async () => {
    expect(await failing({ kubeconfig: join(folder, 'none') })).toBe(
      `there is no kubeconfig ${join(folder, 'none')} (--kubeconfig)`,
    );
  });

  test('a context that is not there: those that are', async () => {
    expect(await failing({ context: 'berlin' })).toBe(
      `${process.env['KUBECONFIG']?.replace(':', ', ')} has no context "berlin"; it has: rome, milan`,
    );
  });

  const claims = (exp: number): string =>
    ['e30', Buffer.from(JSON.stringify({ exp })).toString('base64url'), 'x'].join('.');
  const spoken = (token: string): Spoken => ({
    context: 'rome',
    user: 'anna',
    credentials: { server: new URL('https://rome:6443'), token: async () => Promise.resolve(token) },
  });
  const said = async (error: Error, token = 'opaque'): Promise<string> =>
    errorMessage(await explainedFor(spoken(token), error, Date.UTC(2026, 0, 2)));

  test('a server that is away, one that is another, a user that is not known, and one without the right', async () => {
    const refused = new TributaryError('Unreachable', 'connect ECONNREFUSED 10.0.0.1:6443');
    expect(await said(refused)).toBe(
      'the API server https://rome:6443 of context "rome" does not answer. Is that cluster running, and its address reached from here? Another one: --context (connect ECONNREFUSED 10.0.0.1:6443)',
    );
    const stranger = new TributaryError('Unreachable', 'self-signed certificate in certificate chain');
    expect(await said(stranger)).toContain('shows a certificate that cannot be trusted');
    const unknown = new TributaryError('Unauthorized', '401');
    expect(await said(unknown)).toBe(
      'the API server https://rome:6443 of context "rome" does not accept the user "anna": its certificate or token is not, or no longer, one of that cluster. Get a new kubeconfig for it (401)',
    );
    expect(await said(unknown, claims(Date.UTC(2026, 0, 1) / 1000))).toContain(
      'its certificate or token ended at 2026-01-01T00:00:00Z',
    );
    const forbidden = new TributaryError(
      'Forbidden',
      'list Node: nodes is forbidden: User "anna" cannot list resource "nodes"',
    );
    expect(await said(forbidden)).toBe(
      'you lack a right in the cluster of context "rome": list Node: nodes is forbidden: User "anna" cannot list resource "nodes". ' +
        'Ask its administrator for it, or take the kubeconfig of somebody who has it',
    );
    const refusedByPolicy = new TributaryError('Forbidden', 'ValidatingAdmissionPolicy denied the request');
    expect(await explainedFor(spoken(''), refusedByPolicy, 0)).toBe(refusedByPolicy);
    const other = new TributaryError('NotFound', 'no such thing');
    expect(await explainedFor(spoken(''), other, 0)).toBe(other);
  });
});
