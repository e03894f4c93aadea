import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { tunnels } from '../../src/api/tunnel.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { planeLabProblem } from '../support/network/plane-lab.ts';
import {
  FAR_GATEWAY,
  longestGap,
  ping,
  RolesLab,
  type RolesNode,
  type RolesSide,
} from './support/roles-lab.ts';

/** The roles `gateway` and `node` as programs in network namespaces, with real API servers and wireguard-go. */

const LEASE_MS = 2000;
/**
 * The test asserts that nothing waits for anything except the lease. Gaps are counted in pings that were sent, at
 * each of which a busy machine takes its time, too; the figures themselves are printed.
 */
const UNDER_LOAD = 5;
const STANDS_BY = 'the gateway is active on another node';
/** A pod of the second node, in the CIDR of the first. */
const STRAY = '10.1.0.77';
const HOME = 'home'.padEnd(26, 'a');
const AWAY = 'away'.padEnd(26, 'b');

const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`the network's roles are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('the roles gateway and node', () => {
  let lab: RolesLab;
  let home: RolesSide;
  let away: RolesSide;
  /** Until the next renewal, the Lease of one for whom nobody waited is valid for longer. */
  const heardOfStandby = async (): Promise<boolean> =>
    ((await home.leaseSeconds()) ?? Infinity) * 1000 <= LEASE_MS;

  const strayRoute = async (node: RolesNode): Promise<string> => {
    const routes = (await node.run(['ip', 'route', 'show', 'table', 'all'])).split('\n');
    return routes.find((route) => route.includes(`${STRAY} `)) ?? 'none';
  };

  beforeAll(async () => {
    lab = await RolesLab.up(`roles${process.pid % 10_000}`);
    home = await lab.side('home', 'h', 2);
    away = await lab.side('away', 'w', 1);
    const [one, two, far] = [home.node(0), home.node(1), away.node(0)];
    for (const node of [one, two, far]) node.start('node');
    one.start('gateway');
    far.start('gateway');
    // Five programs start at once, and read all of their sources.
    await awaited('home leads on its first node', async () => (await home.leader()) === 'h1', {
      deadlineMs: 180_000,
      seen: async () => Promise.resolve(one.log().slice(-4000)),
    });
    await eventually('home has told', async () => (await home.facts()) !== undefined);
    await eventually('away has told', async () => (await away.facts()) !== undefined);
    const [ours, theirs] = [await home.facts(), await away.facts()];
    if (ours === undefined || theirs === undefined) throw new Error('no facts');
    await home.tunnelTo(AWAY, theirs);
    await away.tunnelTo(HOME, ours);
  });

  afterAll(async () => lab?.down());

  test('a tunnel comes up, is measured and said to be ready', async () => {
    await eventually('home is ready', async () => home.isReady(AWAY));
    await eventually('away is ready', async () => away.isReady(HOME));
    const { status } = await home.tunnel(AWAY);
    expect(status?.connection).toMatchObject({ gateway: 'h1', endpoint: `${away.node(0).address}:51820` });
    await eventually('home has a time', async () => {
      const { status } = await home.tunnel(AWAY);
      return (status?.connection?.rttMs ?? 0) > 0;
    });
    expect(await home.node(1).run(['nft', 'list', 'tables'])).not.toContain('tributary_gateway');
  });

  test('a pod with an address out of the CIDR of its node gets a route of its own', async () => {
    const one = home.node(0);
    expect(await strayRoute(one)).toBe('none');
    await home.pod('h2', STRAY);
    await eventually('it leads to the node of the pod', async () =>
      (await strayRoute(one)).startsWith(`${STRAY} via 10.70.0.3 dev `),
    );
  });

  test('kill -9 of the gateway and its restart on the same node: the host is not touched, no packet is lost', async () => {
    const one = home.node(0);
    await eventually('the path MTU is known', async () => {
      const both = [await home.tunnel(AWAY), await away.tunnel(HOME)];
      return both.every(({ status }) => status?.connection?.mtu !== undefined);
    });
    const before = await one.state();
    expect(before).toContain('tributary_gateway');
    const pings = ping(away.node(0), FAR_GATEWAY);
    await one.kill('gateway');
    expect(await one.state()).toBe(before);
    const leading = one.log().split('"leading"').length;
    one.start('gateway');
    await eventually('it leads again', () => one.log().split('"leading"').length > leading);
    // Longer than one of its own looks, with a probe in each.
    const { receivedBytes = 0 } = (await home.tunnel(AWAY)).status?.connection ?? {};
    await eventually('it measures again', async () => {
      const connection = (await home.tunnel(AWAY)).status?.connection;
      return (connection?.receivedBytes ?? 0) > receivedBytes;
    });
    const result = await pings.end();
    expect(await one.state()).toBe(before);
    expect(await home.leader()).toBe('h1');
    expect(longestGap(result)).toBe(0);
  });

  test('the tunnel process is killed: the link is set up again', async () => {
    const one = home.node(0);
    const pings = ping(away.node(0), FAR_GATEWAY);
    await one.kill('wireguard');
    one.startWireguard();
    await eventually('it goes through again', async () => {
      const text = await one.run(['wg', 'show', one.link, 'latest-handshakes']).catch(() => '');
      return /\t[1-9]/.test(text);
    });
    await eventually('both are ready', async () => (await home.isReady(AWAY)) && (await away.isReady(HOME)));
    const gap = longestGap(await pings.end());
    process.stdout.write(`kill of wireguard-go: ${gap} ms without an answer\n`);
    expect(gap).toBeLessThan(3000 * UNDER_LOAD);
  });

  test('the gateway dies for good: another node takes over within the lease, and nothing is left on the first', async () => {
    const [one, two] = [home.node(0), home.node(1)];
    // Not earlier: on a busy machine a restart of the first one may take longer than the lease.
    two.start('gateway');
    await eventually('the second stands by', () => two.log().includes(STANDS_BY));
    await eventually('the first knows that', heardOfStandby);
    const pings = ping(away.node(0), FAR_GATEWAY);
    const began = Date.now();
    await one.kill('gateway');
    await eventually('the second leads', async () => (await home.leader()) === 'h2');
    const taken = Date.now() - began;
    await eventually('fenced', async () => {
      const tables = await one.run(['nft', 'list', 'tables']);
      return !tables.includes('tributary_gateway');
    });
    await eventually('ready by the second', async () => {
      const { status } = await home.tunnel(AWAY);
      return status?.connection?.gateway === 'h2' && (await home.isReady(AWAY));
    });
    const gap = longestGap(await pings.end());
    process.stdout.write(`gateway lost: lease taken after ${taken} ms; ${gap} ms without an answer\n`);
    expect(gap).toBeLessThan(LEASE_MS * UNDER_LOAD);
    const routes = await one.run(['ip', 'route', 'show', '100.64.0.0/16']);
    expect(routes).toContain('via 10.70.0.3');
    // The Tunnel is still Ready from before while the second gateway sets up its host; routes come last.
    await eventually('the second sends', async () =>
      (await two.run(['ip', 'route', 'show', '100.64.0.0/16'])).includes(two.link),
    );
    // Its own pod is on its own links, wherever the first one's CIDR leads.
    await eventually('it finds its pod', async () =>
      (await strayRoute(two)).startsWith(`throw ${STRAY} table 7480 `),
    );
    expect(await strayRoute(one)).toBe('none');
  });

  test('the node of the gateway is lost: another takes over within the lease', async () => {
    const [one, two] = [home.node(0), home.node(1)];
    const standbys = one.log().split(STANDS_BY).length;
    one.start('gateway');
    await eventually('the first stands by', () => one.log().split(STANDS_BY).length > standbys);
    await eventually('the second knows that', heardOfStandby);
    const pings = ping(away.node(0), FAR_GATEWAY);
    await Promise.all((['gateway', 'node', 'wireguard', 'relay'] as const).map(async (it) => two.kill(it)));
    await two.run(['ip', 'link', 'set', 'eth0', 'down']);
    await eventually('the first leads', async () => (await home.leader()) === 'h1');
    await eventually('ready by the first', async () => {
      const { status } = await home.tunnel(AWAY);
      return status?.connection?.gateway === 'h1' && (await home.isReady(AWAY));
    });
    const gap = longestGap(await pings.end());
    process.stdout.write(`node lost: ${gap} ms without an answer\n`);
    expect(gap).toBeLessThan(LEASE_MS * UNDER_LOAD);
  });

  test('the route of a pod goes with it', async () => {
    const one = home.node(0);
    await eventually('the route is back', async () => (await strayRoute(one)).includes(' via 10.70.0.3 '));
    await home.endPod();
    await eventually('it is gone', async () => (await strayRoute(one)) === 'none');
  });

  test('a peer that sees our gateway at another address is asked from there', async () => {
    const far = away.node(0);
    const probe = 'ip saddr 100.66.0.1 udp dport 7481';
    const counting = `table ip seen { chain in { type filter hook input priority 0; ${probe} counter; }; }`;
    await far.run(['nft', counting]);
    const at = <T extends { as: string }>(pairs: readonly T[] = []): T[] =>
      pairs.map((pair) => ({ ...pair, as: pair.as.replace('100.65.', '100.66.') }));
    const { status } = await away.tunnel(HOME);
    const views = { type: 'merge', body: { status: { views: at(status?.views) } } } as const;
    await away.client.patch(tunnels, { name: HOME }, views, { subresource: 'status' });
    const { spec } = await home.tunnel(AWAY);
    const seenAs = { type: 'merge', body: { spec: { seenAs: at(spec.seenAs) } } } as const;
    await home.client.patch(tunnels, { name: AWAY }, seenAs);
    await eventually('a probe comes', async () =>
      /packets [1-9]/.test(await far.run(['nft', 'list', 'table', 'ip', 'seen'])),
    );
    await eventually('it is answered', async () => {
      const { connection } = (await home.tunnel(AWAY)).status ?? {};
      return connection?.mtu !== undefined && connection.lossPercent === 0;
    });
  });
});
