import { describe, expect, test } from '@jest/globals';
import { hasCode } from '../../../../src/lib/errors.ts';
import { decode, encode } from '../../../../src/peering/link/message.ts';
import type { Message } from '../../../../src/peering/link/message.ts';
import { checkDocuments } from '../../../../src/peering/protocol/forms.ts';
import { parseUntrusted, plainText } from '../../../../src/lib/untrusted.ts';
import { short } from '../../../support/long.ts';
import { badMessage } from '../../../support/peering/bad-message.ts';
import { fc } from '../../../support/property.ts';

const PART = short('part of all messages that a peer may send', { short: 0.3, long: 1 });

/** What it threw, where that is anything but a refusal in one line. */
function fault(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    return hasCode(error, 'Invalid') && !message.includes('\n') && message.length < 2_000 ? undefined : error;
  }
}

describe('whatever a peer sends', () => {
  test('is read or refused in one line: any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.string({ unit: 'binary' })), (text) => {
        expect(fault(() => decode(text))).toBeUndefined();
      }),
      { numRuns: 5_000 * PART },
    );
  });

  test('is read or refused in one line: broken messages', () => {
    fc.assert(
      fc.property(badMessage, (text) => {
        expect(fault(() => decode(text))).toBeUndefined();
      }),
      { numRuns: 10_000 * PART },
    );
  });

  test('never becomes anything but the fields that a schema names', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const attempt = (): unknown => checkDocuments(value);
        expect(fault(attempt)).toBeUndefined();
        if (fault(() => parseUntrusted(JSON.stringify(value), 'x')) !== undefined) return;
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
        const { changes } = checkDocuments(value);
        for (const kind of Object.keys(changes)) {
          expect(['request', 'acceptance', 'offer', 'grant']).toContain(kind);
        }
      }),
      { numRuns: 2_000 * PART },
    );
  });

  test('is one line of bounded length when it is shown', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
        const shown = plainText(text, 50);
        expect(shown.length).toBeLessThanOrEqual(50);
        expect(shown).not.toMatch(/\p{Cc}|\p{Cf}|\p{Zl}/u);
      }),
    );
  });
});

describe('refused, with the place and the reason', () => {
  const hello = {
    type: 'hello',
    hello: { clusterName: 'a', protocols: [1], software: '1', endpoints: [], networkProofs: [] },
  };
  const cases: [string, string, string][] = [
    ['not JSON', '{"type":', 'message is not JSON'],
    ['not an object', '[]', 'message is not an object'],
    ['no type', '{}', 'type is not text'],
    ['deep', `{"type":"x","a":${'['.repeat(400_000)}${']'.repeat(400_000)}}`, 'nested deeper than 24'],
    ['wide', `{"type":"x","a":[${'0,'.repeat(120_000)}0]}`, 'more than 100000 values'],
    ['a prototype', '{"type":"x","a":{"__proto__":{"b":1}}}', 'the key __proto__, which is not allowed'],
    ['a constructor', '{"type":"x","a":{"constructor":1}}', 'the key constructor, which is not allowed'],
    ['beyond a double', '{"type":"x","a":1e309}', 'a number too large'],
    ['a long text', JSON.stringify({ type: 'x', a: 'b'.repeat(300_000) }), 'a text longer than 262144'],
    ['a long key', JSON.stringify({ type: 'x', ['k'.repeat(600)]: 1 }), 'a key longer than 512'],
    ['no ID', '{"type":"state","documents":{}}', 'id is not a whole number'],
    ['an ID that is none', '{"type":"call","id":1.5,"method":"x"}', 'id is not a whole number'],
    [
      'no protocols',
      JSON.stringify({ ...hello, hello: { ...hello.hello, protocols: 'x' } }),
      'hello.protocols',
    ],
    [
      'a colour in a name',
      JSON.stringify({ ...hello, hello: { ...hello.hello, clusterName: '\u001b[31mred' } }),
      'hello.clusterName holds characters',
    ],
    [
      'too many proofs',
      JSON.stringify({ ...hello, hello: { ...hello.hello, networkProofs: Array(9).fill('AAAA') } }),
      'hello.networkProofs has 9 entries',
    ],
  ];
  test.each(cases)('%s', (_name, text, reason) => {
    expect(() => decode(text)).toThrow(reason);
  });

  test.each([
    ['request', { clusterName: 'a', namespaces: ['UPPER'] }, 'request.namespaces[0] holds characters'],
    ['request', { clusterName: 'a', namespaces: Array(2_000).fill('a') }, 'has 2000 entries, at most 1024'],
    ['request', [], 'request is not an object'],
    ['request', { clusterName: 'a', namespaces: ['shop'], names: [] }, 'request.names is not an object'],
    [
      'request',
      { clusterName: 'a', namespaces: ['shop'], names: { web: 'web' } },
      'request.names name a namespace that is not among the namespaces',
    ],
    [
      'request',
      { clusterName: 'a', namespaces: ['shop'], names: JSON.parse('{"__proto__":"web"}') as unknown },
      'request.names["__proto__"] holds characters',
    ],
    [
      'request',
      { clusterName: 'a', namespaces: ['shop'], names: { shop: '../kube-system' } },
      'request.names["shop"] holds characters',
    ],
    [
      'request',
      { clusterName: 'a', namespaces: ['shop'], names: { shop: 'a'.repeat(64) } },
      'request.names["shop"] has 64 characters, at most 63',
    ],
    [
      'request',
      {
        clusterName: 'a',
        namespaces: ['shop'],
        names: Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`a${index}`, 'a'])),
      },
      'request.names has 2000 entries, at most 1024',
    ],
    ['grant', { state: 'Active', withheld: {} }, 'grant.withheld is not a list'],
    [
      'grant',
      { state: 'Active', withheld: [{ homeNamespace: 'Shop', reason: 'NameTaken' }] },
      'grant.withheld[0].homeNamespace holds characters',
    ],
    [
      'grant',
      { state: 'Active', withheld: [{ homeNamespace: 'shop', reason: '\u001b[31m' }] },
      'grant.withheld[0].reason holds characters',
    ],
    ['offer', { offer: [], signature: 'AAAA' }, 'offer.offer is not an object'],
    ['offer', { offer: {}, signature: '%%' }, 'offer.signature holds characters'],
    ['acceptance', { text: 5, signature: 'AAAA' }, 'acceptance.text is not text'],
    ['grant', { state: 'Later' }, 'grant.state is not Pending or Denied or Active or Ended'],
    ['grant', { state: 'Active', api: { server: 'http://plain' } }, 'grant.api.server holds characters'],
    ['grant', { state: 'Active', api: { server: 'https://user@host' } }, 'grant.api.server holds characters'],
  ])('%s (%#)', (kind, document, reason) => {
    const { changes, problems } = checkDocuments({ [kind]: document });
    expect(changes).toEqual({});
    expect(problems.join()).toContain(reason);
  });
});

describe('kept', () => {
  test('what is right beside what is wrong, and without what is unknown', () => {
    const grant = { state: 'Pending', reason: 'TokenRequired', message: 'two\nlines', since: 'tomorrow' };
    const { changes, problems } = checkDocuments({
      grant,
      request: { namespaces: 1 },
      later: {},
      offer: null,
    });
    expect(changes).toEqual({
      grant: { state: 'Pending', reason: 'TokenRequired', message: 'two lines' },
      offer: null,
    });
    expect(problems).toHaveLength(1);
  });

  test('wishes for names, and why namespaces are withheld; for a later reason one of ours', () => {
    const request = { clusterName: 'a', namespaces: ['shop'], names: { shop: 'store' } };
    const withheld = [
      { homeNamespace: 'shop', reason: 'NameTaken', message: 'two\nlines' },
      { homeNamespace: 'web', reason: 'MoonTooFull' },
    ];
    expect(checkDocuments({ request, grant: { state: 'Active', withheld } })).toEqual({
      changes: {
        request,
        grant: {
          state: 'Active',
          withheld: [
            { homeNamespace: 'shop', reason: 'NameTaken', message: 'two lines' },
            { homeNamespace: 'web', reason: 'NamingNotAllowed' },
          ],
        },
      },
      problems: [],
    });
  });

  test.each<Message>([
    { type: 'ack', id: 1, problem: 'x' },
    { type: 'call', id: 2, method: 'dial', params: { stream: 'abcdefgh' } },
    { type: 'result', id: 2, result: {} },
    { type: 'error', id: 2, code: 'Forbidden', message: 'no' },
  ])('$type as it was sent', (message) => {
    expect(decode(encode(message))).toEqual(message);
  });

  test('a message of a later version, for an answer', () => {
    expect(decode('{"type":"sing","id":7,"song":"x"}')).toEqual({ type: 'unknown', id: 7, name: 'sing' });
  });
});
