import { expect, test } from '@jest/globals';
import { TributaryError } from '../../../../src/lib/errors.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { AccessFinder } from '../../../../src/peering/borrowing/access.ts';
import { pinned } from '../../../../src/peering/borrowing/probe.ts';
import type { Access } from '../../../../src/peering/borrowing/secret.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const API = { server: 'https://192.0.2.1:6443' };
const STREAM: Access = { how: 'Link', server: 'https://127.0.0.1:4443', serverName: '192.0.2.1' };
const DIRECT: Access = { how: 'Direct', server: 'https://192.0.2.1:6443' };

function keeper(reachable = true): {
  access: AccessFinder;
  clock: FakeClock;
  seen: { probes: number; opened: number; closed: number; woken: number };
  world: { reachable: boolean; opens: boolean; address: string; ours: string };
} {
  const clock = new FakeClock();
  const seen = { probes: 0, opened: 0, closed: 0, woken: 0 };
  const world = { reachable, opens: true, address: '192.0.2.1', ours: '' };
  const access = new AccessFinder({
    probe: async (api) => {
      seen.probes++;
      await Promise.resolve();
      if (!world.reachable) throw new TributaryError('Unreachable', 'no route');
      return pinned(api, world.address);
    },
    isOurs: ({ address }) => address === world.ours,
    reach: {
      open: async () => {
        seen.opened++;
        await Promise.resolve();
        if (!world.opens) throw new TributaryError('Unavailable', 'no free port');
        return { server: STREAM.server };
      },
      close: async () => {
        seen.closed++;
        await Promise.resolve();
      },
    },
    clock,
    random: () => 0.5,
    log: silentLogger,
    wake: () => seen.woken++,
  });
  return { access, clock, seen, world };
}

const wanted = (
  more: Partial<Parameters<AccessFinder['want']>[1]> = {},
): Parameters<AccessFinder['want']>[1] => ({
  api: API,
  stored: undefined,
  failing: false,
  ...more,
});

test('directly where that works; found once, and told', async () => {
  const { access, seen } = keeper();
  expect(access.want('milan', wanted())).toEqual({});
  await settle();
  expect(access.want('milan', wanted())).toEqual({ access: DIRECT });
  expect(seen).toEqual({ probes: 1, opened: 0, closed: 0, woken: 1 });
});

test('else by a stream, under the name in the certificate', async () => {
  const { access } = keeper(false);
  access.want('milan', wanted());
  await settle();
  expect(access.want('milan', wanted())).toEqual({ access: STREAM });
});

test('what fails is looked for again, not more often than in ten seconds, and kept meanwhile', async () => {
  const { access, clock, seen, world } = keeper();
  access.want('milan', wanted());
  await settle();
  world.reachable = false;
  const failing = wanted({ failing: true });
  await clock.advance(10_000);
  expect(access.want('milan', failing)).toEqual({ access: DIRECT });
  await settle();
  for (let look = 0; look < 5; look++) access.want('milan', failing);
  expect(access.want('milan', failing)).toEqual({ access: STREAM });
  expect(seen.probes).toBe(2);
  world.reachable = true;
  await clock.advance(10_000);
  access.want('milan', failing);
  await settle();
  expect(access.want('milan', wanted())).toEqual({ access: DIRECT });
});

test('another address of the provider is looked at at once', async () => {
  const { access, world } = keeper();
  access.want('milan', wanted());
  await settle();
  world.address = '192.0.2.9';
  const api = { server: 'https://192.0.2.9:6443' };
  access.want('milan', wanted({ api }));
  await settle();
  expect(access.want('milan', wanted({ api })).access?.server).toBe('https://192.0.2.9:6443');
});

test('after a restart: a direct way is good as it was, a stream is opened again', async () => {
  const direct = keeper();
  expect(direct.access.want('milan', wanted({ api: undefined, stored: DIRECT }))).toEqual({ access: DIRECT });
  expect(direct.access.want('milan', wanted({ stored: DIRECT }))).toEqual({ access: DIRECT });
  await settle();
  expect(direct.seen.probes).toBe(0);
  const stream = keeper();
  const before = { ...STREAM, server: 'https://127.0.0.1:9999' };
  stream.access.want('milan', wanted({ api: undefined, stored: before }));
  await settle();
  expect(stream.access.want('milan', wanted({ api: undefined, stored: before }))).toEqual({ access: STREAM });
  expect(stream.seen).toMatchObject({ probes: 0, opened: 1 });
});

const NAMED = { server: 'https://milan.example:6443' };
const PINNED: Access = { how: 'Direct', server: 'https://192.0.2.1:6443', serverName: 'milan.example' };

test('a name is used by the address that has answered, until that one fails', async () => {
  const { access, clock, seen, world } = keeper();
  access.want('milan', wanted({ api: NAMED }));
  await settle();
  expect(access.want('milan', wanted({ api: NAMED }))).toEqual({ access: PINNED });
  world.address = '192.0.2.2';
  await clock.advance(60_000);
  expect(access.want('milan', wanted({ api: NAMED }))).toEqual({ access: PINNED });
  access.want('milan', wanted({ api: NAMED, failing: true }));
  await settle();
  expect(access.want('milan', wanted({ api: NAMED })).access).toEqual({
    ...PINNED,
    server: 'https://192.0.2.2:6443',
  });
  expect(seen.probes).toBe(2);
});

test('after a restart an address of that name is good as it was, a name alone is looked at', async () => {
  const known = keeper();
  expect(known.access.want('milan', wanted({ api: NAMED, stored: PINNED }))).toEqual({ access: PINNED });
  await settle();
  expect(known.seen.probes).toBe(0);
  const others: Access[] = [
    { ...PINNED, serverName: 'rome.example' },
    { ...PINNED, server: 'https://192.0.2.1:1' },
    { how: 'Direct', ...NAMED },
  ];
  for (const stored of others) {
    const { access, seen } = keeper();
    expect(access.want('milan', wanted({ api: NAMED, stored }))).toEqual({});
    await settle();
    expect(seen.probes).toBe(1);
    expect(access.want('milan', wanted({ api: NAMED, stored }))).toEqual({ access: PINNED });
  }
  // Also without a word of the provider.
  const { access } = keeper();
  access.want('milan', wanted({ api: undefined, stored: { how: 'Direct', ...NAMED } }));
  await settle();
  expect(access.want('milan', wanted({ api: undefined }))).toEqual({ access: PINNED });
});

test('an address that has become one of ours is left', async () => {
  const { access, clock, world } = keeper();
  access.want('milan', wanted());
  await settle();
  world.ours = '192.0.2.1';
  world.reachable = false;
  await clock.advance(10_000);
  expect(access.want('milan', wanted())).toEqual({});
  await settle();
  expect(access.want('milan', wanted())).toEqual({ access: STREAM });
});

test('what cannot be is said, and tried again', async () => {
  const { access, clock, seen, world } = keeper(false);
  world.opens = false;
  access.want('milan', wanted());
  await settle();
  expect(access.want('milan', wanted())).toEqual({ problem: 'no free port' });
  await clock.advance(1000);
  world.opens = true;
  access.want('milan', wanted());
  await settle();
  expect(access.want('milan', wanted())).toEqual({ access: STREAM });
  expect(seen.opened).toBe(2);
  const hostile = wanted({ api: { server: 'https://a', ca: 'nonsense' } });
  access.want('rome', hostile);
  await settle();
  expect(access.want('rome', hostile).problem).toContain('is not a certificate');
  expect(seen.opened).toBe(2);
});

test('dropped: nothing of it is left, also of a look under way', async () => {
  const { access, seen } = keeper();
  access.want('milan', wanted());
  await access.drop('milan');
  await settle();
  expect(seen.closed).toBe(1);
  expect(access.want('milan', { api: undefined, stored: undefined, failing: false })).toEqual({});
});
