import { expect, test } from '@jest/globals';

import { whoIs } from '../../../src/dashboard/access.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { TributaryError } from '../../../src/lib/errors.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const jwt = (claims: object): string => `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.y`;
const ANOTHER = 'To get a new one: kubectl --namespace NAMESPACE create token ACCOUNT';

const asking = async (token: string, answer: () => object): Promise<string> =>
  whoIs({ create: async () => Promise.resolve().then(answer) } as unknown as KubeClient, {
    token,
    now: NOW,
    signal: new AbortController().signal,
  });
const refusing = (): never => {
  throw new TributaryError('Unauthorized', 'Unauthorized');
};

test.each([
  ['nobody', 'it is not one of a ServiceAccount, or not all of it was copied'],
  [jwt({ exp: NOW / 1000 - 3600 }), 'it ended at 2026-01-01T11:00:00Z'],
  [jwt({ exp: NOW / 1000 + 3600 }), 'it is of another cluster, or its ServiceAccount is gone'],
])('a token that is refused is told why: %s', async (token, why) => {
  const message = `the API server does not accept this token: ${why}. ${ANOTHER}`;
  await expect(asking(token, refusing)).rejects.toThrow(message);
  await expect(
    asking(token, () => ({ status: { userInfo: { username: 'system:anonymous' } } })),
  ).rejects.toThrow(message);
});

test('other failures are told as they are, and a user by name', async () => {
  const away = (): never => {
    throw new TributaryError('Unreachable', 'connection refused');
  };
  await expect(asking('x', away)).rejects.toThrow('connection refused');
  expect(await asking('x', () => ({ status: { userInfo: { username: 'ann' } } }))).toBe('ann');
});
