import { existsSync } from 'node:fs';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { run } from '../../lab/run.ts';
import type { WireGuardChoice } from '../../src/api/tunnel.ts';
import type { HostConfig, RouteConfig } from '../../src/network/host/host-config.ts';
import { eventually } from '../support/eventually.ts';
import { gateway, gatewayBy, manyRoutes, node, none } from './support/host-configs.ts';
import { HostLab, hostLabProblem, type HostProcess } from './support/host-lab.ts';

/** The network of a host as one value, on real network namespaces. */

const ok = { problems: [] };

const problem = hostLabProblem();
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab(`the network of a host${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  let lab: HostLab;
  let host: HostProcess;
  let before: string;

  beforeEach(async () => {
    lab = await HostLab.up();
    host = await lab.start();
    before = await lab.everything();
  });
  afterEach(async () => lab.down());

  const ip = async (args: string): Promise<string[]> =>
    (await lab.run(['ip', ...args.split(' ')]))
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');

  test('is set from nothing, and a second time without one write', async () => {
    expect(await host.do({ set: node })).toMatchObject({ ...ok, changes: expect.any(Number) });
    expect((await ip('-d link show trib-vx')).join(' ')).toMatch(
      /UP.* mtu 1400 .*ether 02:00:0a:46:00:02 .*vxlan id 4711 local 10.9.0.1 .*dstport 4790 nolearning .*alias tributary node/,
    );
    expect(await ip('-4 route show table all proto 117')).toEqual([
      '10.72.0.0/16 dev trib-vx table 1000 scope link metric 100',
      '10.71.0.0/16 via 10.70.0.3 dev trib-vx src 10.70.0.2 metric 100 onlink mtu 1380',
      'unreachable 10.71.0.0/16 metric 4000',
    ]);
    expect(await ip('-6 route show table main proto 117')).toEqual([
      'fd71::/64 via fd70::3 dev trib-vx metric 100 onlink mtu 1380 pref medium',
      'unreachable fd71::/64 dev lo metric 4000 pref medium',
    ]);
    expect(await ip('rule show pref 100')).toEqual([
      '100:\tfrom 10.1.0.0/16 iif trib-vx lookup 1000 proto 117',
    ]);
    expect(await ip('-6 rule show pref 100')).toEqual(['100:\tfrom all to fd00::/8 lookup 1000 proto 117']);
    expect(await ip('neigh show nud permanent')).toHaveLength(3);
    expect((await lab.run(['bridge', 'fdb', 'show', 'dev', 'trib-vx'])).trim().split('\n').sort()).toEqual([
      expect.stringContaining('02:00:0a:46:00:03 dst 10.9.0.3 self permanent'),
      expect.stringContaining('02:00:0a:46:00:04 dst 10.9.0.4 self permanent'),
    ]);
    expect(await lab.run(['cat', '/proc/sys/net/ipv4/conf/trib-vx/arp_notify'])).toBe('1\n');
    expect(await lab.run(['nft', 'list', 'table', 'inet', 'tributary_node'])).toContain(
      'priority srcnat - 10',
    );

    const monitors = [await lab.monitor('ip'), await lab.monitor('nft')];
    expect(await host.do({ set: node })).toEqual({ ...ok, changes: 0 });
    for (const monitor of monitors) expect(await monitor.heard()).toEqual([]);
    expect(host.printer.log).toBe('');
  });

  test('whatever somebody removes by hand is back within two seconds', async () => {
    await host.do({ keep: node });
    const whole = await lab.state();
    for (const command of [
      'ip link del trib-vx',
      'ip link set trib-vx down',
      'ip link set trib-vx mtu 1300',
      'ip link set trib-vx address 02:00:00:00:00:01',
      'ip addr del 10.70.0.2/20 dev trib-vx',
      'ip -6 addr del fd70::2/64 dev trib-vx',
      'ip addr add 10.99.0.1/24 dev trib-vx',
      'ip neigh del 10.70.0.4 dev trib-vx',
      'ip neigh replace 10.70.0.4 lladdr 02:00:00:00:00:09 dev trib-vx',
      'bridge fdb del 02:00:0a:46:00:03 dst 10.9.0.3 dev trib-vx',
      'bridge fdb replace 02:00:0a:46:00:03 dst 10.9.0.9 dev trib-vx',
      'ip route del 10.71.0.0/16 metric 100',
      'ip route del unreachable 10.71.0.0/16 metric 4000',
      'ip route replace 10.71.0.0/16 dev eth0 metric 100 proto 117',
      'ip route add 10.71.0.0/24 dev eth0 proto 117',
      'ip -6 route del fd71::/64 metric 100',
      'ip -4 route flush table 1000',
      'ip rule del pref 100',
      'ip -6 rule del pref 100',
      'ip rule add pref 101 lookup 7 proto 117',
      'sysctl -qw net.ipv4.conf.trib-vx.rp_filter=1',
      'nft flush table inet tributary_node',
      'nft delete table inet tributary_node',
    ]) {
      await lab.run(command.split(' ') as [string, ...string[]]);
      await eventually(`${command} is undone`, async () => (await lab.state()) === whole);
    }
    expect(host.printer.log).toBe('');
  });

  test('clean-up takes no programs and no memory, and leaves others alone to the byte', async () => {
    await lab.ip('tuntap add mode tun name trib-wg');
    await host.do({ set: node });
    expect(await host.do({ set: gateway })).toMatchObject(ok);
    expect(await ip('-d link show trib-wg')).toContainEqual('alias tributary gateway');
    expect(await ip('-4 route show proto 116')).toEqual([
      '10.73.0.0/16 dev trib-wg scope link metric 50 linkdown',
      'unreachable 10.73.0.0/16 metric 4000',
    ]);
    await host.kill();

    const other = await lab.start(['env', 'PATH=/nowhere']);
    await other.do({ cleanUp: 'node' });
    expect(await ip('link show')).toContainEqual(expect.stringContaining('trib-wg'));
    await other.do({ cleanUp: 'gateway' });
    expect(await lab.everything()).toBe(before);
    await other.do({ cleanUp: 'gateway' });
    expect(await other.end()).toBe(0);
  });

  test('a thousand routes are set in one go, and killing it in the middle is harmless', async () => {
    const config = { ...node, routes: [...node.routes, ...manyRoutes(1000)] };
    const count = async (): Promise<number> => (await ip('-4 route show proto 117')).length;
    let halves = 0;
    for (const atLeast of [1, 100, 500]) {
      const victim = await lab.start();
      victim.send({ set: config });
      await eventually('it has begun', async () => (await count()) >= atLeast);
      await victim.kill();
      if ((await count()) < 1002) halves++;
      expect(await host.do({ set: config })).toMatchObject(ok);
      expect(await count()).toBe(1002);
      expect(await host.do({ set: config })).toEqual({ ...ok, changes: 0 });
      const whole = await lab.state();
      await host.do({ cleanUp: 'node' });
      expect(await lab.everything()).toBe(before);
      expect(await host.do({ set: config })).toMatchObject(ok);
      expect(await lab.state()).toBe(whole);
      await host.do({ cleanUp: 'node' });
    }
    expect(halves).toBeGreaterThan(0);
  });

  test('a link whose maker was killed before it could mark it is ours', async () => {
    const half = 'link add trib-vx group 117 type vxlan id 1 dstport 4790 local 10.9.0.1';
    await lab.ip(half);
    await host.do({ cleanUp: 'node' });
    expect(await lab.everything()).toBe(before);
    await lab.ip(half);
    expect(await host.do({ set: node })).toMatchObject(ok);
    expect(await host.do({ set: node })).toEqual({ ...ok, changes: 0 });
  });

  test('what cannot be changed of a link makes it anew, with all that hangs on it', async () => {
    await host.do({ set: node });
    const [link] = node.links;
    if (link?.kind !== 'vxlan') throw new Error('no VXLAN');
    const { neighbours } = link;
    const sixth = neighbours.map((neighbour) => ({ ...neighbour, via: 'fd09::7' }));
    for (const change of [
      { vni: 4712 },
      { port: 4791 },
      { local: 'fd09::1', neighbours: sixth },
      { name: 'trib-two' },
    ]) {
      const text = JSON.stringify({ ...node, links: [{ ...link, ...change }] });
      const { name = 'trib-vx' } = change;
      const config = JSON.parse(text.replaceAll('trib-vx', name)) as HostConfig;
      expect(await host.do({ set: config })).toMatchObject(ok);
      expect(await host.do({ set: config })).toEqual({ ...ok, changes: 0 });
      expect(await ip('-4 route show table all proto 117')).toHaveLength(3);
    }
  });

  test('a route is replaced where it differs, with and without a gateway', async () => {
    const link = 'trib-vx';
    const ways: RouteConfig['to'][] = [
      { link, gateway: '10.70.0.3' },
      { link, gateway: '10.70.0.4' },
      { link },
      'unreachable',
      'throw',
      { link, gateway: '10.70.0.3' },
      'throw',
      { link },
    ];
    for (const to of ways) {
      const sixth: RouteConfig['to'] =
        typeof to === 'string' || to.gateway === undefined
          ? to
          : { link, gateway: to.gateway.replace('10.70.0.', 'fd70::') };
      const routes: RouteConfig[] = [
        { destination: '10.74.0.0/16', metric: 9, to },
        { destination: 'fd74::/64', metric: 9, to: sixth },
      ];
      expect(await host.do({ set: { ...node, routes } })).toMatchObject(ok);
      expect(await host.do({ set: { ...node, routes } })).toEqual({ ...ok, changes: 0 });
      expect(await ip('-4 route show 10.74.0.0/16')).toHaveLength(1);
      expect(await ip('-6 route show fd74::/64')).toHaveLength(1);
    }
    expect(await host.do({ set: none })).toMatchObject(ok);
    expect(await ip('-4 route show table all proto 117')).toEqual([]);
    expect(await ip('-6 route show table all proto 117')).toEqual([]);
  });

  test("others' links, routes and rules in our way stay, are named, and stop nothing else", async () => {
    await lab.ip(
      'link add trib-vx type bridge',
      'route add 10.71.0.0/16 dev eth0 metric 4000 proto static',
      'rule add pref 100 from 10.1.0.0/16 iif trib-vx lookup 1000',
    );
    before = await lab.everything();
    const { problems } = await host.do({ set: node });
    expect(problems).toEqual([
      {
        reason: 'Refused',
        message:
          'link trib-vx: there is one of kind bridge without an alias that is not ours; ' +
          'remove or rename it, or give us another name',
      },
      {
        reason: 'Refused',
        message:
          'route unreachable 10.71.0.0/16 metric 4000: ' +
          'there is route 10.71.0.0/16 dev eth0 metric 4000 of others already',
        about: '10.71.0.0/16',
      },
    ]);
    expect(await ip('-6 rule show pref 100')).toHaveLength(1);
    expect(await ip('-6 route show proto 117')).toHaveLength(1);
    await host.do({ cleanUp: 'node' });
    expect(await lab.everything()).toBe(before);
  });

  test('the link of wireguard-go is awaited, adopted when it appears, and taken back when it is made anew', async () => {
    const { problems } = await host.do({ keep: gateway });
    expect(problems).toEqual([
      {
        reason: 'NoWireGuard',
        message: expect.stringContaining('link trib-wg: this kernel has no WireGuard'),
      },
    ]);
    const isThere = async (): Promise<boolean> => (await ip('-4 route show proto 116')).length === 2;
    for (let round = 0; round < 2; round++) {
      await lab.ip('tuntap add mode tun name trib-wg');
      await eventually('its route is there', isThere);
      expect(await ip('addr show trib-wg')).toContainEqual(expect.stringContaining('inet 10.70.0.1/32'));
      await lab.ip('link del trib-wg');
    }
  });

  test('whose WireGuard the link is, is told; a choice that cannot be met is a problem, and touches nothing', async () => {
    const message = async (choice: WireGuardChoice): Promise<string | undefined> =>
      (await host.do({ set: gatewayBy(choice) })).problems[0]?.message;
    expect(await message('kernel')).toContain('load its module wireguard, or choose auto');
    expect(await message('userspace')).toContain('wireguard-go has not made the link yet');
    await lab.ip('tuntap add mode tun name trib-wg');
    expect(await host.do({ set: gatewayBy('auto') })).toMatchObject({ wireguard: 'Userspace' });
    expect(await message('kernel')).toContain('end wireguard-go, or choose auto');
    expect(await ip('-4 route show proto 116')).toHaveLength(2);
    await lab.ip('link del trib-wg');
  });

  test('a read-only /proc/sys is said in so many words', async () => {
    const script = 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec "$@"';
    const contained = await lab.start(['unshare', '-m', 'sh', '-c', script, 'sh']);
    const { problems } = await contained.do({ set: node });
    expect(problems).toEqual([
      { reason: 'Refused', message: expect.stringContaining('/proc/sys is read-only in this container') },
    ]);
  });

  test('more changes than fit are one change, and later ones are heard too', async () => {
    await host.do({ watch: true });
    await eventually('it listens', () => host.changes > 0);
    const watcher = await host.watcher();
    process.kill(watcher, 'SIGSTOP');
    const routes = manyRoutes(10_000).map(({ destination }) => `route add ${destination} dev eth0`);
    await run(['ip', '-batch', '-'], { netns: lab.netns, stdin: `${routes.join('\n')}\n` });
    const before = host.changes;
    process.kill(watcher, 'SIGCONT');
    await eventually('it is heard', () => host.changes > before);
    await eventually('it is told', () =>
      host.printer.log.includes('The watch on the network of this host ended and is started again'),
    );
    await eventually('another one watches', async () => (await host.watcher()) !== watcher);
    await eventually('what comes later is heard', async () => {
      const heard = host.changes;
      await lab.ip('rule add pref 300 lookup 600', 'rule del pref 300');
      await eventually('a change', () => host.changes > heard);
      return !existsSync(`/proc/${watcher}`);
    });
    expect(await host.end()).toBe(0);
  });

  test('neighbours on our links are told, those on others are not, also by a watch that began anew', async () => {
    await host.do({ watch: true });
    await host.do({ set: node });
    const tries = async (number: number): Promise<void> => {
      const quiet = host.changes;
      // Changes of a tenth of a second are one call. These take ten of them, and what is set above may be told only now.
      for (let last = 50; last < 250; last++)
        await lab.ip(`neigh replace 10.9.0.${last} lladdr 02:00:00:00:0${number}:77 dev eth0`);
      expect(host.changes).toBeLessThan(quiet + 4);
      const before = host.changes;
      await lab.ip('neigh del 10.70.0.4 dev trib-vx');
      await eventually('our neighbour is told', () => host.changes > before);
      expect(await host.do({ set: node })).toMatchObject(ok);
      expect(await ip('neigh show nud permanent')).toHaveLength(203);
    };
    await tries(1);
    const watcher = await host.watcher();
    process.kill(watcher, 'SIGKILL');
    await eventually('it is told', () => host.printer.log.includes('is started again'));
    await eventually('another one watches', async () => (await host.watcher()) !== watcher);
    await tries(2);
    expect(await host.end()).toBe(0);
  });

  test('the program that watches ends with us, however we end', async () => {
    for (const end of [async () => host.end(), async () => host.kill()]) {
      await host.do({ watch: true });
      await eventually('it listens', () => host.changes > 0);
      const watcher = await host.watcher();
      await end();
      await eventually('it is gone', () => !existsSync(`/proc/${watcher}`));
      host = await lab.start();
    }
  });

  test('routes of others: of the main table, neither ours nor default ones', async () => {
    const added = [
      '10.20.0.0/16 dev eth0',
      'blackhole 10.30.0.0/24',
      'default dev eth0 metric 77',
      '10.40.0.0/16 dev eth0 table 77',
    ];
    const routes = async (): Promise<string[]> =>
      (await host.answer(host.send({ localRoutes: true }))).routes ?? [];
    await host.do({ set: node });
    const others = await routes();
    expect(others).not.toContain('10.71.0.0/16');
    await lab.ip(...added.map((route) => `route add ${route}`));
    expect((await routes()).toSorted()).toEqual([...others, '10.20.0.0/16', '10.30.0.0/24'].toSorted());
    await lab.ip(...added.map((route) => `route del ${route}`));
  });

  test('path MTU: of the route, else of the link, else unknown', async () => {
    await host.do({ set: node });
    const mtu = async (address: string): Promise<number | undefined> =>
      (await host.answer(host.send({ pathMtu: address }))).mtu;
    expect(await mtu('10.71.1.1')).toBe(1380);
    expect(await mtu('fd71::1')).toBe(1380);
    expect(await mtu('10.70.0.9')).toBe(1400);
    expect(await mtu('10.81.0.1')).toBeUndefined();
    expect(await mtu('fe80::1%eth0')).toBeUndefined();
    expect(await mtu('nonsense')).toBeUndefined();
  });
});
