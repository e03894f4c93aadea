import { describe, expect, test } from '@jest/globals';

import { LEFT_OUT, redactObject, redactText } from '../../../src/doctor/bundle/redact.ts';
import { growth } from '../../support/growth.ts';

const PLANTED = 'sw0rdfish-planted';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const JWT = `${base64('{"alg":"none"}')}.${base64('{"sub":"planted"}')}.c2lnbmF0dXJl`.replaceAll('=', '');
const JOIN = `zg4vgrcx2qpvdqbr4hd6tm63n3.for-rome.${'aB3_-'.repeat(8)}aB3`;
const PEM = `-----BEGIN PRIVATE KEY-----\n${base64(PLANTED)}\n-----END PRIVATE KEY-----`;

describe('redactText', () => {
  test.each([
    ['a password', `login with password=${PLANTED} failed`, PLANTED],
    ['a password in JSON', `{"password":"${PLANTED}"}`, PLANTED],
    ['a token in JSON within JSON', JSON.stringify({ body: JSON.stringify({ token: PLANTED }) }), PLANTED],
    ['a bearer', `GET / Authorization: Bearer ${PLANTED}`, PLANTED],
    ['a token of an account', `token is ${JWT} now`, JWT.slice(0, 20)],
    ['a token after what looks like one', `eyJhbGciOiJub25lIn0-${JWT}`, JWT.slice(-20)],
    ['a join token', `peer with ${JOIN}`, JOIN.slice(-20)],
    ['a private key', `key ${PEM} end`, base64(PLANTED)],
    ['a private key that is cut off', PEM.slice(0, 50), base64(PLANTED).slice(0, 10)],
    ['a user in a URL', `https://admin:${PLANTED}@example.com/`, PLANTED],
    ['a user in a URL with a long scheme', `${'x+'.repeat(99)}https://:${PLANTED}@example.com/`, PLANTED],
    ['a kubeconfig', `users:\n- user:\n    token: ${PLANTED}\n    client-key-data: ${base64(PEM)}`, PLANTED],
    [
      'an encoded kubeconfig',
      `got ${base64(`users: [{user: {token: ${PLANTED}}}]`)}`,
      base64(PLANTED).slice(2, 12),
    ],
    ['an option', `run --join-token=${PLANTED}`, PLANTED],
  ])('%s', (_, text, secret) => {
    const clean = redactText(text);
    expect(clean).not.toContain(secret);
    expect(clean).toContain(LEFT_OUT);
  });

  test('what helps stays', () => {
    const text =
      '{"level":"warn","message":"no link","peer":"zg4vgrcx2qpvdqbr4hd6tm63n3","reason":"TokenExpired"} 10.1.2.3:51820';
    expect(redactText(text)).toBe(text);
  });

  test.each(['eyJhbGciOiJub25lIn0', 'eyJhbGciOiJub25lIn0.short.x', 'https://example.com:443/@a'])(
    '%s is no secret',
    (text) => {
      expect(redactText(text)).toBe(text);
      expect(redactText(base64(text.repeat(3)))).toBe(base64(text.repeat(3)));
    },
  );

  test.each([
    ['a', ''],
    ['-eyJ', ''],
    ['-eyJabcdefgh', '.'],
    ['eyJabcdefgh.', ''],
    ['://a:', ''],
    ['abcdefghijklmnopqrstuvwxyz.', ''],
    ['-----BEGIN PRIVATE KEY', ''],
    ['token ', '='],
  ])('a text of %s without end takes time in proportion to its length', async (unit, end) => {
    const text = (size: number): string => unit.repeat(Math.ceil(size / unit.length)) + end;
    const { unitCost, most } = await growth(16 * 1024, (size) => redactText(text(size)));
    expect(unitCost).toBeLessThan(most);
  });
});

describe('redactObject', () => {
  test('of a Secret only the names of its keys stay', () => {
    const secret = {
      kind: 'Secret',
      metadata: { name: 's' },
      data: { token: base64(PLANTED) },
      stringData: { x: PLANTED },
    };
    expect(redactObject(secret)).toEqual({ kind: 'Secret', metadata: { name: 's' }, keys: ['token', 'x'] });
  });

  test('of an unknown ConfigMap too; ours stays', () => {
    const data = { 'network.json': '{"pods":["10.1.0.0/16"]}' };
    expect(
      JSON.stringify(redactObject({ kind: 'ConfigMap', metadata: { name: 'other' }, data })),
    ).not.toContain('10.1');
    const ours = { kind: 'ConfigMap', metadata: { name: 'tributary-network' }, data };
    expect(redactObject(ours)).toEqual(ours);
  });

  test('values of variables, whole objects in annotations, and secret arguments', () => {
    const pod = {
      kind: 'Pod',
      metadata: {
        annotations: {
          'kubectl.kubernetes.io/last-applied-configuration': PLANTED,
          note: `password: ${PLANTED}`,
        },
      },
      spec: {
        containers: [
          {
            name: 'main',
            env: [
              { name: 'PLAIN', value: PLANTED },
              { name: 'FROM', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
            ],
            args: ['--token', PLANTED, `--password=${PLANTED}`, '--cluster-name', 'rome'],
          },
        ],
      },
    };
    const clean = JSON.stringify(redactObject(pod));
    expect(clean).not.toContain(PLANTED);
    expect(clean).toContain('spec.nodeName');
    expect(clean).toContain('rome');
  });
});
