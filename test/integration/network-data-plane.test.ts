import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';

import type { NetworkAccess } from '../../src/api/tunnel.ts';
import {
  expectAnswer,
  expectTalk,
  lend,
  type Party,
  party,
  refusedBy,
  settled,
} from '../support/network/plane-checks.ts';
import { PlaneLab, planeLabProblem } from '../support/network/plane-lab.ts';
import { type PlanePod, TCP_PORT } from '../support/network/plane-node.ts';
import { join, joinThrough } from '../support/network/plane-tunnels.ts';

/** The plans of gateway and node in real network namespaces, without Kubernetes. */

const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`the data plane is not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

let lab: PlaneLab;

describeInLab('pods of two clusters', () => {
  beforeAll(async () => {
    lab = await PlaneLab.up();
  });
  afterEach(async () => {
    await Promise.all(lab.clusters.splice(0).map(async (cluster) => cluster.down()));
  });
  afterAll(async () => lab.down());

  test('with CIDRs of their own nothing is rewritten', async () => {
    const home = await party(lab, 'h', { pods: '10.1.0.0/16', external: '10.71.0.0/20' });
    const away = await party(lab, 'w', { pods: '10.2.0.0/16', external: '10.72.0.0/20' });
    join(home.cluster.side, away.cluster.side);
    lend(home, away);
    await lab.apply();
    expect(home.cluster.side.sees(away.cluster.side, away.pod.address)).toBe(away.pod.address);
    await expectTalk(home, away);
    await expectTalk(away, home);
    for (const { cluster } of [home, away]) {
      const rules = await cluster.gatewayNode.run(['nft', 'list', 'ruleset']);
      const pairs = [...rules.matchAll(/[sd]addr (\S+) [sd]nat ip prefix to (\S+)/g)];
      expect(pairs.length).toBeGreaterThan(3);
      for (const [, from, to] of pairs) expect(to).toBe(from);
    }
  });

  test('with one CIDR for both, on any node of the home, and hosts too', async () => {
    const home = await party(lab, 'h', { nodes: 2 });
    const away = await party(lab, 'w');
    join(home.cluster.side, away.cluster.side);
    lend(home, away);
    const far: Party = { cluster: home.cluster, pod: await home.cluster.pod(1) };
    await lab.apply();
    expect(home.pod.address).toBe(away.pod.address);
    for (const one of [home, far]) {
      await expectTalk(one, away);
      await expectTalk(away, one);
    }
    const [{ side }, peer] = [home.cluster, away.cluster.side];
    const view = side.sees(peer, away.pod.address);
    // Hosts leave under their own addresses of the external range.
    const [near, remote] = [home.cluster.node(0), home.cluster.node(1)];
    const gateway = peer.sees(side, side.network.gatewayAddress);
    await expectAnswer(async () => near.ask('tcp', view), gateway);
    const external = side.network.nodes[1]?.external ?? '';
    await expectAnswer(async () => remote.ask('tcp', view), peer.sees(side, external));
    // And so does what came from elsewhere to a port of a node.
    await home.cluster.node(0).service('fib daddr type local tcp dport 30080', `${view}:${TCP_PORT}`);
    const stranger = lab.stranger();
    const host = side.network.nodes[0]?.address ?? '';
    await expectAnswer(async () => stranger.ask('tcp', host, { port: 30_080 }), gateway);
  });

  test('through a Service, also where the peer sees us in the range of our Services', async () => {
    const home = await party(lab, 'h');
    const away = await party(lab, 'w', { services: '10.112.0.0/16' });
    join(home.cluster.side, away.cluster.side);
    lend(home, away);
    const { relations } = away.cluster.side;
    const views = relations.get(home.cluster.side)?.views ?? [];
    // 10.96.0.0/16 is the range of the home's Services, and none of `away`'s business.
    views.splice(0, 1);
    away.cluster.side.see(home.cluster.side, 'Pods', '10.244.0.0/16', '10.96.0.0/16');
    await lab.apply();
    const node = home.cluster.gatewayNode;
    const target = away.cluster.side.sees(home.cluster.side, home.pod.address);
    await node.service(`ip daddr ${target} tcp dport ${TCP_PORT}`, '10.244.0.77:1');
    await expectTalk(away, home);
    const view = home.cluster.side.sees(away.cluster.side, away.pod.address);
    await node.service('ip daddr 10.96.0.55 tcp dport 80', `${view}:${TCP_PORT}`);
    await expectAnswer(async () => home.pod.ask('tcp', '10.96.0.55', { port: 80 }), target);
  });

  test('reach what the policy of the other one allows', async () => {
    const home = await party(lab, 'h');
    const away = await party(lab, 'w');
    join(home.cluster.side, away.cluster.side);
    lend(home, away);
    const [homeSide, awaySide] = [home.cluster.side, away.cluster.side];
    // Neither of them has to do with offloading.
    const [homeOther, awayOther] = [await home.cluster.pod(), await away.cluster.pod()];
    const fromAway = async (pod: PlanePod, to: PlanePod): Promise<boolean> =>
      pod.ping(awaySide.sees(homeSide, to.address));
    const fromHome = async (pod: PlanePod, to: PlanePod): Promise<boolean> =>
      pod.ping(homeSide.sees(awaySide, to.address));
    const ways = [
      async () => fromAway(away.pod, homeOther),
      async () => fromAway(awayOther, home.pod),
      async () => fromHome(homeOther, away.pod),
      async () => fromHome(home.pod, awayOther),
    ];
    const expected = {
      OffloadedPods: [true, false, true, false],
      AllPods: [true, true, true, true],
      None: [false, false, false, false],
    } satisfies Record<NetworkAccess, boolean[]>;
    for (const access of ['OffloadedPods', 'AllPods', 'None'] satisfies NetworkAccess[]) {
      homeSide.relation(awaySide).access = access;
      awaySide.relation(homeSide).access = access;
      await lab.apply();
      // Those that must pass are first: then the tunnel is up, and silence means a refusal.
      for (const [at, way] of ways.entries()) if (expected[access][at]) await expectAnswer(way, true);
      const passed = await Promise.all(ways.map(async (way, at) => !expected[access][at] && (await way())));
      expect({ access, passed }).toEqual({ access, passed: [false, false, false, false] });
    }
    expect(await refusedBy(home.cluster, `refused_${awaySide.id}`)).toBeGreaterThan(0);
  });

  test('TCP is told the size of the tunnel, in both directions', async () => {
    const home = await party(lab, 'h');
    const away = await party(lab, 'w');
    join(home.cluster.side, away.cluster.side);
    lend(home, away);
    home.cluster.side.relation(away.cluster.side).mtu = 1200;
    const sizes =
      'table ip sizes { chain in { type filter hook prerouting priority -300; tcp flags & syn == syn tcp option maxseg size 1160 counter; tcp flags & syn == syn counter; }; }';
    await Promise.all([home.pod.nft(sizes), away.pod.nft(sizes)]);
    await lab.apply();
    await expectTalk(home, away);
    for (const { pod } of [home, away]) {
      const listed = await pod.run(['nft', 'list', 'table', 'ip', 'sizes']);
      const [clamped, all] = [...listed.matchAll(/packets (\d+)/g)].map(([, packets]) => Number(packets));
      // More than one where a busy machine was asked again.
      expect(all).toBeGreaterThan(0);
      expect(clamped).toBe(all);
    }
    // A datagram that does not fit is answered at the gateway.
    const route = await home.cluster.gatewayNode.run(['ip', 'route', 'show', 'proto', '116']);
    expect(route).toContain('mtu 1200');
  });

  test('nothing leaves in clear, and all is gone after the clean-up', async () => {
    const home = await party(lab, 'h', { nodes: 2 });
    const away = await party(lab, 'w');
    const before = await Promise.all(home.cluster.nodes.map(async (node) => node.state()));
    join(home.cluster.side, away.cluster.side);
    lend(home, away);
    await lab.apply();
    await expectTalk(home, away);
    const view = home.cluster.side.sees(away.cluster.side, away.pod.address);
    const [gateway, node] = [home.cluster.node(0), home.cluster.node(1)];
    const router = await lab.capture(view, '100.127.0.9');
    await gateway.stopWireGuard();
    // Nobody waits for an answer, since a route gives one; the second is in the pool, and nobody's view.
    const noWay = /unreachable|No route/;
    expect(await gateway.refusal(view)).toMatch(noWay);
    expect(await home.pod.refusal(view)).toMatch(noWay);
    expect(await home.pod.refusal('100.127.0.9')).toMatch(noWay);
    expect(await node.refusal('100.127.0.9')).toMatch(noWay);
    await expect(gateway.run(['ip', 'route', 'get', view])).rejects.toThrow(/unreachable|No route/);
    expect(await router()).toBe(0);
    // What does not go into the tunnel does go to that router.
    await expectAnswer(async () => gateway.ping('172.31.0.1'), true);

    await gateway.startWireGuard();
    await lab.apply();
    await expectTalk(home, away);
    await gateway.cleanUp('gateway');
    for (const one of home.cluster.nodes) await one.cleanUp('node');
    const after = await Promise.all(home.cluster.nodes.map(async (one) => one.state()));
    expect(after.map(settled)).toEqual(before.map(settled));
  });
});

describeInLab('three clusters with the same CIDRs', () => {
  let home: Party;
  let rome: Party;
  let bern: Party;

  beforeAll(async () => {
    lab = await PlaneLab.up();
    [home, rome, bern] = [await party(lab, 'h'), await party(lab, 'r'), await party(lab, 'b')];
  });
  afterAll(async () => lab.down());

  test('talk in all pairs', async () => {
    const pairs = [
      [home, rome],
      [home, bern],
      [rome, bern],
    ] as const;
    const lent: [Party, Party][] = [];
    for (const [one, other] of pairs) {
      join(one.cluster.side, other.cluster.side);
      // A pod belongs to one cluster.
      const guest = { cluster: other.cluster, pod: await other.cluster.pod() };
      lend(one, guest);
      lent.push([one, guest]);
    }
    await lab.apply();
    for (const [one, guest] of lent) {
      await expectTalk(one, guest);
      await expectTalk(guest, one);
    }
  });

  test('through the home where two are not peered, for its own pods only', async () => {
    const sides = [home.cluster.side, rome.cluster.side, bern.cluster.side] as const;
    for (const side of sides) side.relations.clear();
    const [at, one, other] = sides;
    join(at, one);
    join(at, other);
    joinThrough(at, one, other);
    lend(home, rome);
    lend(home, bern);
    const stranger = await bern.cluster.pod();
    await lab.apply();
    const through = (viewer: Party, owner: Party, address: string): string =>
      viewer.cluster.side.sees(at, at.sees(owner.cluster.side, address));
    for (const [from, to] of [
      [rome, bern],
      [bern, rome],
    ] as const) {
      const seen = through(to, from, from.pod.address);
      const address = through(from, to, to.pod.address);
      await expectAnswer(async () => from.pod.ask('tcp', address), seen);
      await expectAnswer(async () => from.pod.ask('udp', address), seen);
      await expectAnswer(async () => from.pod.ping(address), true);
    }
    expect(await rome.pod.ping(through(rome, bern, stranger.address))).toBe(false);
    expect(await stranger.ping(through(bern, rome, rome.pod.address))).toBe(false);
    expect(await refusedBy(home.cluster, 'refused_transit')).toBeGreaterThan(1);

    // Rome's own pod here is not one of the home's, whomever it asks.
    const hosted = await home.cluster.pod();
    const toBern = at.sees(other, bern.pod.address);
    const early = { bind: `${hosted.address}:5555` };
    await expectAnswer(async () => hosted.ask('udp', toBern, early), other.sees(at, hosted.address));
    lend(rome, { cluster: home.cluster, pod: hosted });
    await lab.apply();
    // Not even by what it has begun before that was known.
    expect(await hosted.ask('udp', toBern, early)).toBeUndefined();
    expect(await hosted.ask('udp', toBern)).toBeUndefined();
    expect(await hosted.ask('tcp', toBern)).toBeUndefined();
    expect(await hosted.ping(toBern)).toBe(false);
    expect(await hosted.ping(at.sees(other, other.network.gatewayAddress))).toBe(false);
    expect(await refusedBy(home.cluster, 'refused_tenant')).toBeGreaterThan(4);
    await expectTalk({ cluster: home.cluster, pod: hosted }, rome);
    await expectTalk(rome, { cluster: home.cluster, pod: hosted });
    // Nor do they come to it from there.
    at.relation(other).access = 'AllPods';
    await lab.apply();
    expect(await bern.pod.ping(other.sees(at, hosted.address))).toBe(false);
    await expectAnswer(async () => bern.pod.ping(other.sees(at, home.pod.address)), true);

    at.relation(other).transit = 'None';
    await lab.apply();
    expect(await rome.pod.ping(through(rome, bern, bern.pod.address))).toBe(false);
  });
});
