import { describe, expect, test } from '@jest/globals';

import type { RouteConfig } from '../../../../src/network/host/host-config.ts';
import { foreignDestinations, type KernelRoute } from '../../../../src/network/host/routes.ts';
import { diffRoutes, routeOf } from '../../../../src/network/host/set-routes.ts';

const config: RouteConfig = {
  destination: 'fd71:0::/64',
  metric: 100,
  to: { link: 'vx', gateway: 'fd70:0::3' },
  mtu: 1380,
};
const wanted = routeOf(config);
const ours: KernelRoute = {
  destination: 'fd71::/64',
  table: 254,
  metric: 100,
  protocol: 117,
  type: 'unicast',
  link: 'vx',
  gateway: 'fd70::3',
  mtu: 1380,
};
const empty = { add: [], replace: [], remove: [], refused: [] };

test('what others have routes to: not ours, not the default ones, not other tables', () => {
  const route = (destination: string, protocol: number, table = 254): KernelRoute => {
    return { destination, table, metric: 0, protocol, type: 'unicast' };
  };
  const routes = [
    route('10.20.0.0/16', 3),
    route('172.30.0.0/24', 2),
    route('fd00::/64', 9),
    { ...route('10.30.0.0/16', 4), type: 'other' as const },
  ];
  const others = [
    route('10.2.0.0/16', 116),
    route('10.3.0.0/16', 117),
    route('0.0.0.0/0', 3),
    route('::/0', 9),
    route('127.0.0.0/8', 2, 255),
  ];
  expect(foreignDestinations([...others, ...routes])).toEqual([
    '10.20.0.0/16',
    '172.30.0.0/24',
    'fd00::/64',
    '10.30.0.0/16',
  ]);
});

describe('routes: what is wanted against what there is', () => {
  test('nothing to do, whatever the spelling', () => {
    expect(diffRoutes(117, [wanted], [ours])).toEqual(empty);
  });

  test('what is missing is added; one of another metric or table is another', () => {
    expect(diffRoutes(117, [wanted], [])).toEqual({ ...empty, add: [wanted] });
    for (const other of [{ metric: 101 }, { table: 255 }, { destination: 'fd71::/65' }]) {
      const there = { ...ours, ...other };
      expect(diffRoutes(117, [wanted], [there])).toEqual({ ...empty, add: [wanted], remove: [there] });
    }
  });

  const { mtu: _, ...withoutMtu } = ours;
  test.each<[string, KernelRoute]>([
    ['gateway', { ...ours, gateway: 'fd70::4' }],
    ['link', { ...ours, link: 'eth0' }],
    ['MTU', { ...ours, mtu: 1400 }],
    ['no MTU', withoutMtu],
    ['source', { ...ours, source: 'fd70::2' }],
    ['type', { ...ours, type: 'other' }],
  ])('ours with another %s is replaced', (_, there) => {
    expect(diffRoutes(117, [wanted], [there])).toEqual({ ...empty, replace: [{ from: there, to: wanted }] });
  });

  test('one that hands the packet on to the next rule is a type of its own', () => {
    const thrown = routeOf({ destination: 'fd71::/64', metric: 100, to: 'throw' });
    const there: KernelRoute = { ...thrown, protocol: 117 };
    expect(there).toMatchObject({ type: 'throw', table: 254 });
    expect(diffRoutes(117, [thrown], [there])).toEqual(empty);
    expect(diffRoutes(117, [thrown], [ours])).toEqual({ ...empty, replace: [{ from: ours, to: thrown }] });
    const dead: KernelRoute = { ...there, type: 'unreachable' };
    expect(diffRoutes(117, [thrown], [dead])).toEqual({ ...empty, replace: [{ from: dead, to: thrown }] });
  });

  test("others' are never removed, replaced or doubled", () => {
    expect(diffRoutes(117, [], [{ ...ours, protocol: 116 }])).toEqual(empty);
    expect(diffRoutes(117, [wanted], [{ ...ours, protocol: 3 }])).toEqual(empty);
    expect(diffRoutes(117, [wanted], [{ ...ours, protocol: 3, gateway: 'fd70::4' }])).toEqual({
      ...empty,
      refused: [
        {
          destination: 'fd71::/64',
          message:
            'route fd71::/64 via fd70::3 dev vx metric 100: ' +
            'there is route fd71::/64 via fd70::4 dev vx metric 100 of others already',
        },
      ],
    });
  });

  test('a second one of ours for the same goes', () => {
    const second = { ...ours, gateway: 'fd70::4' };
    expect(diffRoutes(117, [wanted], [second, ours])).toEqual({ ...empty, remove: [second] });
  });

  test('host bits and other spellings of a config are told', () => {
    expect(() => routeOf({ ...config, destination: 'fd71::' })).toThrow('is no prefix');
  });
});
