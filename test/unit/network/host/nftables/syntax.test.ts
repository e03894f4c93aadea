import { describe, expect, it } from '@jest/globals';

import {
  checkKey,
  checkName,
  checkType,
  checkValue,
  labelOf,
  ruleText,
} from '../../../../../src/network/host/nftables/syntax.ts';
import { fc } from '../../../../support/property.ts';

/** What ends a command, begins another, or is read otherwise than it stands. */
const DANGEROUS = /[\n\r;#$\\`'\0]/;
const INJECTIONS = ['\n', ';', '"', '{', '}', '#', '$x', '\\', '\0', "'", '`', '\u2028', ' ', ','];

/** Plain text with something in it that must not be there. */
const spiked = (plain: string): fc.Arbitrary<string> =>
  fc
    .tuple(fc.nat(plain.length), fc.constantFrom(...INJECTIONS))
    .map(([at, bad]) => plain.slice(0, at) + bad + plain.slice(at));

const refused = (check: (text: string) => unknown, texts: fc.Arbitrary<string>): void =>
  fc.assert(
    fc.property(texts, (text) => {
      expect(() => check(text)).toThrow(expect.objectContaining({ code: 'Invalid' }));
    }),
  );

/** Whatever comes, nothing dangerous comes out. */
const tame = (check: (text: string) => unknown, harmless: RegExp): void =>
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), spiked('jump a')), (text) => {
      let passed = true;
      try {
        check(text);
      } catch {
        passed = false;
      }
      if (passed) expect(text).toMatch(harmless);
    }),
    { numRuns: 2000 },
  );

describe('texts for nft', () => {
  it('refuses names that could be more than a name', () => {
    refused(checkName, spiked('from_peer'));
    tame(checkName, /^[\w.-]+$/);
    expect(() => checkName('')).toThrow('is not a name');
    expect(() => checkName('a'.repeat(121))).toThrow('is not a name');
    expect(checkName('from_7c9e6679-7425-40de-944b-e07fc1f90ae7')).toMatch(/^from/);
  });

  it('refuses types that could be more than a type', () => {
    for (const bad of [
      'ipv4_addr; flags interval',
      'ipv4_addr . ',
      'ipv4_addr }',
      '',
      'a . b . c . d . e . f',
    ]) {
      expect(() => checkType(bad)).toThrow(expect.objectContaining({ code: 'Invalid' }));
    }
    tame(checkType, /^[a-z0-9_ .]+$/);
    expect(checkType('ipv4_addr . inet_service')).toBe('ipv4_addr . inet_service');
  });

  it('refuses keys and values that could be more than one element', () => {
    refused(
      checkKey,
      spiked('10.1.0.0/16').filter((text) => text !== '10.1.0.0/16'),
    );
    refused(
      checkValue,
      fc.constantFrom('jump a b', 'jump a;', 'jump "a"', 'accept, 1.2.3.4 : drop', 'goto '),
    );
    tame(checkKey, /^[\w.:/"@ -]+$/);
    tame(checkValue, /^[\w.:/"@ -]+$/);
    expect(checkKey('10.0.0.0/8 . fd00::1 . "eth0" . 80 . ::1')).toHaveLength(5);
  });

  it('refuses rules with commands, comments, variables or open braces in them', () => {
    const plain = 'ip saddr 10.0.0.0/8 ct state { established, related } counter drop';
    for (const bad of ['\n', ';', '#', '$x', '\\', '{', '}', '"', '\0', '`', "'", '\r']) {
      for (let at = 1; at <= plain.length; at++) {
        expect(() => ruleText(plain.slice(0, at) + bad + plain.slice(at))).toThrow(
          expect.objectContaining({ code: 'Invalid' }),
        );
      }
    }
    fc.assert(
      fc.property(fc.string(), fc.string(), (before, after) => {
        let text = '';
        try {
          const { statement, comment } = ruleText(`ip ${before}accept comment "${after}"`);
          text = `${statement} comment "${comment}"`;
        } catch {
          return;
        }
        expect(text).not.toMatch(DANGEROUS);
        expect(text.split('"').length % 2).toBe(1);
      }),
      { numRuns: 2000 },
    );
  });

  it('takes the rules that a gateway needs', () => {
    for (const rule of [
      'iifname != "wg0" return',
      'tcp flags & (syn | rst) != syn return',
      'meta nfproto ipv6 tcp option maxseg size set 1360',
      'ip daddr 10.0.0.1 icmp type echo-request limit rate 100/second burst 100 packets accept',
      'ip6 daddr fd00::/64 dnat ip6 prefix to fd01::/64',
    ]) {
      expect(ruleText(rule).statement).toBe(rule);
    }
  });

  it('keeps the comment of a rule as a label behind its mark', () => {
    const { statement, comment } = ruleText('counter drop comment "refused.a"');
    expect(statement).toBe('counter drop');
    expect(labelOf(comment)).toBe('refused.a');
    expect(labelOf(ruleText('drop').comment)).toBeUndefined();
    expect(labelOf('refused.a')).toBeUndefined();
    expect(ruleText('drop').comment).not.toBe(ruleText('accept').comment);
    expect(() => ruleText('comment "a" drop comment "b"')).toThrow('with one comment');
    expect(() => ruleText('drop comment "a b"')).toThrow('with one comment');
  });
});
