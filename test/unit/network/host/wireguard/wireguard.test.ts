import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';

import type { WireGuardConfig, WireGuardPeerConfig } from '../../../../../src/network/host/host-config.ts';
import { type Change, changesTo, checkConfig } from '../../../../../src/network/host/wireguard/changes.ts';
import {
  type PeerState,
  readDump,
  type WireGuardState,
} from '../../../../../src/network/host/wireguard/dump.ts';
import { generateKey, isKey, publicKeyOf } from '../../../../../src/network/host/wireguard/keys.ts';
import { fc } from '../../../../support/property.ts';

const NOW = 1_800_000_000;
const keyNamed = (name: string): string => createHash('sha256').update(name).digest('base64');
const PRIVATE = keyNamed('private');
const SECRET = keyNamed('preshared');
const A = keyNamed('a');

const peer = (more: Partial<WireGuardPeerConfig> = {}): WireGuardPeerConfig => ({
  publicKey: A,
  endpoint: '192.0.2.1:51820',
  allowedIPs: ['10.1.0.0/16'],
  keepalive: 25,
  ...more,
});
const config = (...peers: WireGuardPeerConfig[]): WireGuardConfig => ({
  link: 'wg0',
  port: 51_820,
  privateKey: PRIVATE,
  peers,
});
const peerState = (more: Partial<PeerState> = {}): PeerState => ({
  endpoint: '192.0.2.1:51820',
  allowedIPs: ['10.1.0.0/16'],
  handshake: NOW - 10,
  receivedBytes: 0,
  sentBytes: 0,
  keepalive: 25,
  ...more,
});
const state = (peers: Readonly<Record<string, PeerState>> = {}): WireGuardState => ({
  privateKey: PRIVATE,
  port: 51_820,
  peers: new Map(Object.entries(peers)),
});
const args = (changes: readonly Change[]): unknown[] => changes.flatMap((change) => change.args);
const changes = (
  wanted: WireGuardConfig,
  there: WireGuardState,
  given: readonly [string, string][] = [],
): Change[] => changesTo(wanted, there, new Map(given), NOW);

describe('keys', () => {
  it('are those of RFC 7748', () => {
    // Section 6.1: Bob.
    const secret = Buffer.from('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb', 'hex');
    const open = Buffer.from('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f', 'hex');
    expect(publicKeyOf(secret.toString('base64'))).toBe(open.toString('base64'));
  });

  it('come in pairs that fit', () => {
    const { privateKey, publicKey } = generateKey();
    expect(isKey(privateKey) && isKey(publicKey)).toBe(true);
    expect(publicKeyOf(privateKey)).toBe(publicKey);
  });

  it('are refused when they are none, without being told', () => {
    for (const bad of ['', 'a', `${PRIVATE}\n`, PRIVATE.slice(1), `${PRIVATE.slice(0, -2)}B=`]) {
      expect(() => publicKeyOf(bad)).toThrow('is not 32 bytes in base64');
    }
  });
});

it('a key that is read back as it is used is no other one', () => {
  const bytes = Buffer.alloc(32, 0xff);
  const given = bytes.toString('base64');
  bytes[0] = 0xf8;
  bytes[31] = 0x7f;
  const there = { ...state(), privateKey: bytes.toString('base64') };
  expect(changes({ ...config(), privateKey: given }, there)).toEqual([]);
  bytes[1] = 0xfe;
  expect(
    changes({ ...config(), privateKey: given }, { ...there, privateKey: bytes.toString('base64') }),
  ).toHaveLength(1);
  const { privateKey: _none, ...bare } = state();
  expect(changes(config(), bare)).toHaveLength(1);
});

describe('the dump of wg', () => {
  const head = `${PRIVATE}\t${A}\t51820\toff\n`;
  it('is read', () => {
    const lines = [
      `${A}\t${SECRET}\t[2001:db8::1]:51820\t10.0.0.0/16,fd00::/64\t1700000000\t12\t34\t25`,
      `${keyNamed('b')}\t(none)\t(none)\t(none)\t0\t0\t0\toff`,
    ];
    expect(readDump(`${head}${lines.join('\n')}\n`)).toEqual({
      privateKey: PRIVATE,
      port: 51_820,
      peers: new Map([
        [
          A,
          {
            presharedKey: SECRET,
            endpoint: '[2001:db8::1]:51820',
            allowedIPs: ['10.0.0.0/16', 'fd00::/64'],
            handshake: 1_700_000_000,
            receivedBytes: 12,
            sentBytes: 34,
            keepalive: 25,
          },
        ],
        [keyNamed('b'), { allowedIPs: [], handshake: 0, receivedBytes: 0, sentBytes: 0, keepalive: 0 }],
      ]),
    });
    expect(readDump('(none)\t(none)\t37705\toff\n')).toEqual({ port: 37_705, peers: new Map() });
  });

  it('is refused when it is anything else, without a key in the message', () => {
    for (const bad of [
      '',
      'x',
      `${head}${A}\t(none)\n`,
      `${head}x\t(none)\t(none)\t(none)\t0\t0\t0\toff\n`,
      `${head}\n`,
    ]) {
      expect(() => readDump(bad)).toThrow(expect.objectContaining({ code: 'Unavailable' }));
    }
    fc.assert(
      fc.property(fc.string(), (tail) => {
        try {
          readDump(head + tail);
        } catch (error) {
          expect((error as Error).message).not.toContain(PRIVATE);
          expect(error).toMatchObject({ code: 'Unavailable' });
        }
      }),
    );
  });
});

describe('changes of a link', () => {
  it('are none where it is as wanted', () => {
    expect(changes(config(peer()), state({ [A]: peerState() }))).toEqual([]);
    const unordered = peer({ allowedIPs: ['10.2.0.0/16', '10.1.0.0/16'] });
    expect(
      changes(config(unordered), state({ [A]: peerState({ allowedIPs: ['10.1.0.0/16', '10.2.0.0/16'] }) })),
    ).toEqual([]);
    const v6 = peer({ endpoint: '[2001:db8:0::1]:1' });
    expect(changes(config(v6), state({ [A]: peerState({ endpoint: '[2001:db8::1]:1' }) }))).toEqual([]);
  });

  it('hold no secret among the arguments', () => {
    const all = changes(config(peer({ presharedKey: SECRET })), { port: 1, peers: new Map() });
    expect(all.flatMap(({ secrets }) => secrets)).toEqual([PRIVATE, SECRET]);
    expect(JSON.stringify(args(all))).not.toMatch(
      new RegExp(`${PRIVATE.slice(0, 20)}|${SECRET.slice(0, 20)}`),
    );
    expect(args(all)).toEqual([
      'private-key',
      0,
      'listen-port',
      '51820',
      'peer',
      A,
      'preshared-key',
      0,
      'endpoint',
      '192.0.2.1:51820',
      'persistent-keepalive',
      '25',
      'allowed-ips',
      '10.1.0.0/16',
    ]);
  });

  it('are only of the peer that differs, and remove those that are not wanted', () => {
    const b = keyNamed('b');
    const there = state({
      [A]: peerState(),
      [b]: peerState({ allowedIPs: ['10.2.0.0/16'] }),
      [keyNamed('c')]: peerState(),
    });
    const wanted = config(peer(), peer({ publicKey: b, allowedIPs: ['10.3.0.0/16'] }));
    expect(args(changes(wanted, there))).toEqual([
      'peer',
      keyNamed('c'),
      'remove',
      'peer',
      b,
      'allowed-ips',
      '10.3.0.0/16',
    ]);
  });

  describe('of an endpoint that differs from the configured one', () => {
    const learnt = '198.51.100.7:1000';
    const configured = '192.0.2.1:51820';
    const silent = { keepalive: 0 };
    it.each([
      { what: 'of a live peer after a restart', there: { handshake: NOW - 179 }, due: false },
      { what: 'of a dead peer after a restart', there: { handshake: NOW - 181 }, due: true },
      { what: 'that was learnt since', there: {}, given: configured, due: false },
      { what: 'learnt by a session now dead', there: { handshake: NOW - 181 }, given: configured, due: true },
      {
        what: 'of a silent peer without keepalives',
        there: { ...silent, handshake: NOW - 999 },
        given: configured,
        due: false,
      },
      {
        what: 'of one that never answered',
        there: { ...silent, handshake: 0 },
        given: configured,
        due: true,
      },
      { what: 'once another is configured', there: {}, given: '192.0.2.9:51820', due: true },
    ])('$what', ({ there, given, due }: { there: Partial<PeerState>; given?: string; due: boolean }) => {
      const now = peerState({ endpoint: learnt, ...there });
      const list = changes(
        config(peer({ keepalive: now.keepalive })),
        state({ [A]: now }),
        given === undefined ? [] : [[A, given]],
      );
      expect(args(list)).toEqual(due ? ['peer', A, 'endpoint', configured] : []);
    });
  });

  it('are refused for what is not meant for wg', () => {
    const bad: Partial<WireGuardPeerConfig>[] = [
      { publicKey: 'x' },
      { publicKey: `${A}\nEndpoint = 1.2.3.4:5` },
      { presharedKey: 'x' },
      { endpoint: 'example.org:51820' },
      { endpoint: '192.0.2.1' },
      { endpoint: '192.0.2.1:0' },
      { endpoint: '192.0.2.1:65536' },
      { endpoint: '[192.0.2.1]:x' },
      { endpoint: '192.0.2.1:51820\n' },
      { allowedIPs: ['10.1.0.0'] },
      { allowedIPs: ['10.1.0.0/16,10.2.0.0/16'] },
      { keepalive: -1 },
      { keepalive: 1.5 },
    ];
    for (const each of bad) {
      expect(() => checkConfig(config(peer(each)))).toThrow(expect.objectContaining({ code: 'Invalid' }));
    }
    expect(() => checkConfig(config(peer(), peer()))).toThrow('two peers have');
    expect(() => checkConfig(config(peer(), peer({ publicKey: keyNamed('b') })))).toThrow(
      'is allowed for both',
    );
    expect(() => checkConfig({ ...config(), link: 'wg0;x' })).toThrow('is not the name of a link');
    expect(() => checkConfig({ ...config(), port: 0 })).toThrow('is not a port');
    expect(() => checkConfig({ ...config(), privateKey: SECRET.slice(1) })).toThrow('the private key is not');
  });

  it('are refused or made of plain words, whatever comes', () => {
    const noise = fc.oneof(fc.string(), fc.constantFrom('\n', ' ', '10.1.0.0/16', '192.0.2.1:1', A));
    const texts = fc.record({
      publicKey: noise,
      presharedKey: noise,
      endpoint: noise,
      allowedIPs: fc.array(noise),
    });
    fc.assert(
      fc.property(texts, (each) => {
        const wanted = config({ ...peer(), ...each });
        try {
          checkConfig(wanted);
        } catch (error) {
          expect(error).toMatchObject({ code: 'Invalid' });
          return;
        }
        for (const arg of args(changes(wanted, state()))) expect(String(arg)).toMatch(/^[\w+/=.:,[\]-]*$/);
      }),
    );
  });
});
