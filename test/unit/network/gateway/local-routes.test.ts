import { expect, test } from '@jest/globals';

import { collisions, LocalRoutes, localRoutes } from '../../../../src/network/gateway/local-routes.ts';
import { RecordingHost } from '../../../support/network/recording-host.ts';
import { NETWORK, tunnelOf } from '../../../support/network/tunnels.ts';

test('networks beside ours, in the fewest prefixes and in order', () => {
  const destinations = [
    '192.168.0.0/24',
    '10.20.128.0/17',
    '10.20.0.0/17',
    '10.20.3.0/24',
    'fd00:1::/64',
    '172.30.0.0/16',
  ];
  const wanted = ['10.20.0.0/16', '172.30.0.0/16', '192.168.0.0/24', 'fd00:1::/64'];
  expect(localRoutes(destinations, NETWORK)).toEqual(wanted);
  expect(localRoutes(destinations.toReversed(), NETWORK)).toEqual(wanted);
});

test('our own pods and external range, parts of a default route and special ranges are none', () => {
  const own = ['10.1.0.0/24', '10.1.0.7/32', '10.70.0.0/20', '10.70.0.3/32'];
  const defaults = ['0.0.0.0/1', '128.0.0.0/1', '2000::/3'];
  const special = ['169.254.0.0/16', 'fe80::/64', 'ff00::/8', '127.0.0.0/8'];
  expect(localRoutes([...own, ...defaults, ...special, 'garbage'], NETWORK)).toEqual([]);
  // One that holds our own says of more than these.
  expect(localRoutes(['10.0.0.0/8'], NETWORK)).toEqual(['10.0.0.0/8']);
  expect(localRoutes(['10.1.0.0/24'], undefined)).toEqual(['10.1.0.0/24']);
});

test('of too many the widest', () => {
  const hosts = Array.from({ length: 400 }, (_, index) => `10.99.${index >> 7}.${(index & 127) * 2}/32`);
  const routes = localRoutes([...hosts, '192.168.0.0/16'], NETWORK);
  expect(routes).toHaveLength(256);
  expect(routes.at(-1)).toBe('192.168.0.0/16');
});

test('a view collides with a route that holds it, or that it holds', () => {
  const views = ['10.20.0.0/16', '10.30.0.0/16', '10.40.0.0/16'].map((as) => {
    return { prefix: as, as, use: 'Pods' as const };
  });
  expect(collisions(views, ['10.20.5.0/24', '10.32.0.0/16', '10.40.0.0/14'])).toEqual([
    { view: '10.20.0.0/16', route: '10.20.5.0/24' },
    { view: '10.40.0.0/16', route: '10.40.0.0/14' },
  ]);
});

test('what was read last stays where it cannot be read; people are told of a collision once', async () => {
  const host = new RecordingHost();
  const events: string[] = [];
  const event = ({ metadata }: { metadata: { name: string } }, type: string, reason: string): void =>
    void events.push(`${metadata.name} ${type} ${reason}`);
  const routes = new LocalRoutes({ host, events: { event } });
  expect(routes.destinations).toBeUndefined();
  host.routes = ['100.64.3.0/24'];
  await routes.read();
  expect(routes.destinations).toEqual(['100.64.3.0/24']);
  for (let times = 0; times < 2; times++) routes.warn([tunnelOf('p')], routes.destinations ?? []);
  expect(events).toEqual(['p Warning ViewOverlapsRoute']);
  host.localRoutes = async () => Promise.reject(new Error('no answer'));
  await expect(routes.read()).rejects.toThrow('no answer');
  expect(routes.destinations).toEqual(['100.64.3.0/24']);
});
