import { describe, expect, test } from '@jest/globals';

import {
  type AnnouncedRecords,
  announcementTxt,
  dialableAddress,
  instanceLabel,
  isLinkLocal,
  parseAnnouncement,
} from '../../../src/discovery/announcement.ts';
import { joinEndpoint } from '../../../src/lib/endpoint.ts';
import { fc } from '../../support/property.ts';

const ID = 'milan'.padEnd(26, 'a');
const good: AnnouncedRecords = {
  txt: [`id=${ID}`, 'name=Milan', 'v=1,2'],
  hosts: [{ port: 7443, addresses: ['10.0.0.1', 'fd00::1'] }],
};
const withTxt = (...txt: (string | Uint8Array)[]): AnnouncedRecords => ({ ...good, txt });
const withHost = (port: number, ...addresses: string[]): AnnouncedRecords => ({
  ...good,
  hosts: [{ port, addresses }],
});

describe('an announcement', () => {
  test('is read', () => {
    expect(parseAnnouncement(good)).toEqual({
      clusterID: ID,
      clusterName: 'Milan',
      protocols: [1, 2],
      endpoints: ['10.0.0.1:7443', '[fd00::1]:7443'],
    });
  });

  test('comes back as it was written, as strings and as bytes', () => {
    const said = { clusterID: ID, clusterName: 'Città di Milano', port: 1, protocols: [1, 7] };
    const txt = announcementTxt(said);
    for (const strings of [txt, txt.map((text) => Buffer.from(text))]) {
      expect(parseAnnouncement({ ...good, txt: strings })).toMatchObject({
        clusterID: ID,
        clusterName: 'Città di Milano',
        protocols: [1, 7],
      });
    }
  });

  test('keys are read regardless of case, the first one counts, others are passed over', () => {
    const read = parseAnnouncement(withTxt('', '=x', 'flag', `ID=${ID}`, 'id=other', 'V=3', 'later=?'));
    expect(read).toMatchObject({ clusterID: ID, protocols: [3] });
    expect(read).not.toHaveProperty('clusterName');
  });

  test.each<[string, AnnouncedRecords]>([
    ['not a ClusterID', withTxt('v=1')],
    ['not a ClusterID', withTxt('id=', 'v=1')],
    ['not a ClusterID', withTxt(`id=${ID.toUpperCase()}`, 'v=1')],
    ['not a ClusterID', withTxt(`id=${ID}a`, 'v=1')],
    ['not a ClusterID', withTxt(`id=${ID}\n`, 'v=1')],
    ['not a ClusterID', withTxt('id=__proto__', 'v=1')],
    ['list of versions', withTxt(`id=${ID}`)],
    ['list of versions', withTxt(`id=${ID}`, 'v=0')],
    ['list of versions', withTxt(`id=${ID}`, 'v=100')],
    ['list of versions', withTxt(`id=${ID}`, 'v=1,,2')],
    ['list of versions', withTxt(`id=${ID}`, 'v=1e1')],
    ['more than 8 versions', withTxt(`id=${ID}`, 'v=1,2,3,4,5,6,7,8,9')],
    ['not UTF-8', withTxt(`id=${ID}`, 'v=1', new Uint8Array([0x61, 0x3d, 0xff]))],
    [
      'longer than 1300 bytes',
      withTxt(`id=${ID}`, 'v=1', ...Array.from({ length: 6 }, () => 'x'.repeat(250))),
    ],
    ['more than 32 strings', withTxt(`id=${ID}`, 'v=1', ...Array.from({ length: 31 }, () => ''))],
    ['no port', withHost(0, '10.0.0.1')],
    ['no port', withHost(65_536, '10.0.0.1')],
    ['no port', withHost(Number.NaN, '10.0.0.1')],
    ['no address', withHost(1)],
    [
      'no address',
      withHost(1, '127.0.0.1', '::1', '0.0.0.0', '::', '224.0.0.251', 'ff02::fb', '255.255.255.255'),
    ],
    [
      'no address',
      withHost(1, '::ffff:127.0.0.1', '::127.0.0.1', 'fe80::1', '10.0.0.1 ', '10.0.0.01', 'evil.example'),
    ],
  ])('is refused: %s', (why, records) => {
    expect(() => parseAnnouncement(records)).toThrow(why);
  });

  test.each(['', ' ', 'x'.repeat(64), 'a\u0000b', 'a\nb', 'a\u{202E}b', 'a\u{200B}'])(
    'a name that cannot be shown is none: %j',
    (name) => {
      expect(parseAnnouncement(withTxt(`id=${ID}`, `name=${name}`, 'v=1'))).not.toHaveProperty('clusterName');
    },
  );

  test('has eight endpoints at most, each once', () => {
    const addresses = Array.from({ length: 40 }, (_, index) => `10.0.0.${Math.floor(index / 2)}`);
    const { endpoints } = parseAnnouncement(withHost(1, ...addresses));
    expect(endpoints).toEqual(Array.from({ length: 8 }, (_, index) => `10.0.0.${index}:1`));
  });

  test('link-local addresses are taken where there is no other, with the interface, and not at all without one', () => {
    const nearOnly = withHost(1, 'fe80::1', '169.254.0.1');
    expect(parseAnnouncement(nearOnly, { scope: 'eth0' }).endpoints).toEqual([
      '[fe80::1%eth0]:1',
      '169.254.0.1:1',
    ]);
    expect(() => parseAnnouncement(nearOnly)).toThrow('no address');
    const both = withHost(1, 'fe80::1', '169.254.0.1', '10.0.0.1');
    expect(parseAnnouncement(both, { scope: 'eth0' }).endpoints).toEqual(['10.0.0.1:1']);
    expect(parseAnnouncement(both).endpoints).toEqual(['10.0.0.1:1']);
  });

  test('whatever comes is read or refused, never worse', () => {
    const strings = fc.array(
      fc.oneof(fc.string(), fc.uint8Array(), fc.constant(`id=${ID}`), fc.constant('v=1')),
    );
    const hosts = fc.array(
      fc.record({ port: fc.integer(), addresses: fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string())) }),
    );
    fc.assert(
      fc.property(strings, hosts, (txt, hosts) => {
        try {
          const { clusterID, endpoints, protocols } = parseAnnouncement({ txt, hosts });
          expect(clusterID).toBe(ID);
          expect(endpoints.length).toBeLessThanOrEqual(8);
          expect(protocols.length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toMatchObject({ code: 'Invalid' });
        }
      }),
    );
  });
});

describe('our label', () => {
  const label = (clusterName: string, attempt?: number): string =>
    instanceLabel({ clusterID: ID, clusterName }, attempt);

  test.each([
    ['milan', 'milan-milanaaa'],
    ['Città  di Milano!', 'citta-di-milano-milanaaa'],
    ['-a.b-', 'a-b-milanaaa'],
    ['東京', 'cluster-milanaaa'],
    ['', 'cluster-milanaaa'],
  ])('%j is announced as %s', (name, expected) => {
    expect(label(name)).toBe(expected);
  });

  test('is a DNS label, however long the name and however many conflicts', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.integer({ min: 1, max: 9999 }),
        (name, attempt) => {
          expect(label(name, attempt)).toMatch(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
        },
      ),
    );
    expect(label('x'.repeat(200), 12)).toMatch(/^x{51}-milanaaa-12$/);
  });
});

describe('addresses', () => {
  test('have one spelling', () => {
    expect(dialableAddress('2001:DB8:0:0::0001')).toBe('2001:db8::1');
    expect(joinEndpoint('2001:db8::1', 1)).toBe('[2001:db8::1]:1');
    expect(joinEndpoint('10.0.0.1', 1)).toBe('10.0.0.1:1');
  });

  test('link-local ones are known', () => {
    expect(['fe80::1', 'febf::1', '169.254.1.1'].every(isLinkLocal)).toBe(true);
    expect(['fec0::1', 'fd00::1', '169.253.1.1'].some(isLinkLocal)).toBe(false);
  });
});
