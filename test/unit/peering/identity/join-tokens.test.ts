import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { secrets } from '../../../../src/api/resources.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { hasCode } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { formatJoinToken, JoinTokens, parseJoinToken } from '../../../../src/peering/identity/join-tokens.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { fc } from '../../../support/property.ts';

const ID = 'abcdefghijklmnopqrstuvwx23';
const SECRET = `${'Az09_-'.repeat(7)}x`;
const TEXT = `${ID}.lab-1.${SECRET}`;

test('what is written is read again, with the blanks that a file or a terminal adds', () => {
  const token = { clusterID: ID, name: 'lab-1', secret: SECRET };
  expect(formatJoinToken(token)).toBe(TEXT);
  expect(parseJoinToken(TEXT)).toEqual(token);
  expect(parseJoinToken(` ${TEXT}\n`)).toEqual(token);
});

test.each([
  ['nothing', ''],
  ['a cluster ID alone', ID],
  ['two parts', `${ID}.lab`],
  ['four parts', `${TEXT}.x`],
  ['a short ID', TEXT.slice(1)],
  ['an ID of other letters', TEXT.replace('a', 'A')],
  ['an empty name', `${ID}..${SECRET}`],
  ['a name that is a path', `${ID}.../x.${SECRET}`],
  ['a name with a slash', `${ID}.a/b.${SECRET}`],
  ['a name that is too long', `${ID}.${'n'.repeat(41)}.${SECRET}`],
  ['a short secret', TEXT.slice(0, -1)],
  ['a long secret', `${TEXT}A`],
  ['a secret with other letters', `${TEXT.slice(0, -1)}=`],
  ['a million characters', 'a'.repeat(1e6)],
])('refuses %s, and does not repeat it', (_what, text) => {
  expect(() => parseJoinToken(text)).toThrow('not of the form');
  try {
    parseJoinToken(text);
  } catch (error) {
    expect((error as Error).message).not.toContain(SECRET.slice(0, 10));
  }
});

test('whatever is thrown at it, it is Invalid or it is the same text', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' })), (text) => {
      try {
        return formatJoinToken(parseJoinToken(text)) === text.trim();
      } catch (error) {
        return hasCode(error, 'Invalid');
      }
    }),
    { numRuns: 300 },
  );
});

describe('join tokens', () => {
  const OWN = 'o'.repeat(26);
  const [ROME, PARIS] = ['r'.repeat(26), 'p'.repeat(26)];
  const NAMESPACE = 'tributary-system';

  let api: FakeApi;
  let client: KubeClient;
  let clock: FakeClock;
  let tokens: JoinTokens;

  beforeEach(async () => {
    clock = new FakeClock();
    api = new FakeApi({ clock });
    client = api.client();
    tokens = new JoinTokens({ client, clock, log: silentLogger, namespace: NAMESPACE, clusterID: OWN });
  });

  afterEach(async () => {
    await client.close();
    await api.stop();
  });

  test('the secret is shown once and kept nowhere', async () => {
    const { text, expires } = await tokens.create({ name: 'lab', seconds: 3600 });
    const [clusterID, name, secret = ''] = text.split('.');
    expect({ clusterID, name, length: secret.length }).toEqual({ clusterID: OWN, name: 'lab', length: 43 });
    const kept = await client.get(secrets, { namespace: NAMESPACE, name: 'tributary-join-lab' });
    expect(kept.type).toBe('tributary.dev/join-token');
    expect(Object.keys(kept.data ?? {}).toSorted()).toEqual(['expires', 'hash']);
    const decoded = Object.values(kept.data ?? {}).map((value) =>
      Buffer.from(value, 'base64').toString('latin1'),
    );
    expect(JSON.stringify([kept, decoded])).not.toContain(secret);
    expect(Date.parse(expires) - clock.now()).toBe(3600_000);
    expect((await tokens.create()).text).not.toBe((await tokens.create()).text);
  });

  test('the first consumer owns it: it may show it again, also after it has expired; nobody else may', async () => {
    const { text } = await tokens.create({ name: 'lab', seconds: 60 });
    expect(await tokens.check(text, ROME)).toEqual({ result: 'ok', name: 'lab' });
    expect(await tokens.check(text, ROME)).toEqual({ result: 'ok', name: 'lab' });
    expect(await tokens.check(text, PARIS)).toEqual({ result: 'TokenUsed' });
    await clock.advance(61_000);
    expect(await tokens.check(text, ROME)).toEqual({ result: 'ok', name: 'lab' });
    expect(await tokens.list()).toMatchObject([{ name: 'lab', usedBy: ROME }]);
  });

  test('of two that come at once one gets in', async () => {
    const { text } = await tokens.create();
    const answers = await Promise.allSettled([tokens.check(text, ROME), tokens.check(text, PARIS)]);
    const results = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.result : 'again'));
    expect(results.filter((result) => result === 'ok')).toHaveLength(1);
    expect(results.some((result) => result === 'again' || result === 'TokenUsed')).toBe(true);
  });

  test('refused: what has expired, what was deleted, what is of another cluster, what is guessed', async () => {
    const { text } = await tokens.create({ name: 'lab', seconds: 60 });
    const [id = '', name = '', secret = ''] = text.split('.');
    const other = secret.startsWith('A') ? `B${secret.slice(1)}` : `A${secret.slice(1)}`;
    for (const wrong of [
      '',
      'x',
      `${id}.${name}.${other}`,
      `${ROME}.${name}.${secret}`,
      `${id}.other.${secret}`,
    ]) {
      expect(await tokens.check(wrong, ROME)).toEqual({ result: 'TokenInvalid' });
    }
    // A wrong secret hears nothing of the state of the entry.
    await clock.advance(60_000);
    expect(await tokens.check(`${id}.${name}.${other}`, ROME)).toEqual({ result: 'TokenInvalid' });
    expect(await tokens.check(text, ROME)).toEqual({ result: 'TokenExpired' });
    await tokens.delete('lab');
    expect(await tokens.check(text, ROME)).toEqual({ result: 'TokenInvalid' });
    await expect(tokens.delete('lab')).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('a Secret of that name and another type is no token, and is never swept', async () => {
    const made = await tokens.create({ name: 'lab', seconds: 60 });
    const kept = await client.get(secrets, { namespace: NAMESPACE, name: 'tributary-join-lab' });
    const { resourceVersion: _version, uid: _uid, ...metadata } = kept.metadata;
    await client.delete(secrets, kept.metadata);
    await client.create(secrets, { ...kept, metadata, type: 'Opaque' });
    expect(await tokens.check(made.text, ROME)).toEqual({ result: 'TokenInvalid' });
    await clock.advance(48 * 3600_000);
    await tokens.sweep();
    expect((await client.list(secrets)).items).toHaveLength(1);
  });

  test('an entry whose expiry cannot be read has expired', async () => {
    const { text } = await tokens.create({ name: 'lab' });
    const ref = { namespace: NAMESPACE, name: 'tributary-join-lab' };
    await client.patch(secrets, ref, { type: 'merge', body: { data: { expires: 'bm93' } } });
    expect(await tokens.check(text, ROME)).toEqual({ result: 'TokenExpired' });
  });

  test('the janitor removes what expired a day ago, and nothing younger', async () => {
    await tokens.create({ name: 'old', seconds: 60 });
    await clock.advance(12 * 3600_000);
    await tokens.create({ name: 'young', seconds: 60 });
    const janitor = tokens.janitor();
    await janitor.start?.(new AbortController().signal);
    await clock.advance(12 * 3600_000 + 11 * 60_000);
    for (let tries = 0; tries < 200 && (await tokens.list()).length > 1; tries++) await clock.advance(0);
    expect((await tokens.list()).map(({ name }) => name)).toEqual(['young']);
    await janitor.stop?.();
  });

  test.each([
    [{ seconds: 59 }, 'cannot live 59 s'],
    [{ seconds: 31 * 24 * 3600 }, 'are allowed'],
    [{ seconds: Number.NaN }, 'cannot live'],
    [{ name: 'No' }, 'token name "No" is not a DNS name'],
    [{ name: 'n'.repeat(41) }, 'at most 40'],
  ])('refuses %j', async (options, message) => {
    await expect(tokens.create(options)).rejects.toThrow(message);
  });
});
