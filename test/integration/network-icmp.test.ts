/** What hosts tell a sender at the peer about its packets, in real network namespaces. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';

import { gatewayPlan } from '../../src/network/plan/gateway.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { expectTalk, lend, type Party, party } from '../support/network/plane-checks.ts';
import { Netns } from '../support/network/in-netns.ts';
import { PlaneLab, planeLabProblem } from '../support/network/plane-lab.ts';
import { PlaneSpace } from '../support/network/plane-node.ts';
import { join } from '../support/network/plane-tunnels.ts';
import { gatewayFacts, network, peer } from '../unit/network/plan/facts.ts';

const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`ICMP errors are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

/** Of a link behind the tunnel, whose packets may have 1420 bytes. */
const NARROW = 1200;
const BULK_PORT = 7100;
const BULK_BYTES = 300_000;

/** How many bytes a client gets in one connection, which the client begins and the server fills. */
async function transfer(client: PlaneSpace, server: PlaneSpace, address: string): Promise<number> {
  const [family, host] = address.includes(':') ? [6, `[${address}]`] : [4, address];
  const listener = `TCP${family}-LISTEN:${BULK_PORT},fork,reuseaddr`;
  server.spawn(['socat', '-U', listener, `SYSTEM:'head -c ${BULK_BYTES} /dev/zero'`]);
  const command = `timeout 20 socat -u TCP${family}:${host}:${BULK_PORT} - | wc -c`;
  // The server may not listen yet.
  return awaited('the transfer', async () => Number(await client.shell(command)) || undefined, {
    deadlineMs: 20_000,
  });
}

/** Counts from now on what that host is told by one with this address. */
async function told(host: PlaneSpace, from: string): Promise<() => Promise<number>> {
  const match = from.includes(':')
    ? `ip6 saddr ${from} icmpv6 type packet-too-big`
    : `ip saddr ${from} icmp type destination-unreachable`;
  await host.nft(`table inet told { chain in { type filter hook input priority 0; ${match} counter; }; }`);
  return async () =>
    Number(/packets (\d+)/.exec(await host.run(['nft', 'list', 'table', 'inet', 'told']))?.[1]);
}

const V6 = gatewayFacts(
  [
    peer({
      views: [
        { use: 'Pods', prefix: 'fd00:244::/48', as: 'fd00:900::/48' },
        { use: 'External', prefix: 'fd00:70::/112', as: 'fd00:901::/112' },
      ],
      seenAs: [
        { prefix: 'fd00:244::/48', as: 'fd00:244::/48' },
        { prefix: 'fd00:70::/112', as: 'fd00:71::/112' },
      ],
    }),
  ],
  { network: { ...network, external: 'fd00:70::/112', gatewayAddress: 'fd00:70::1', nodes: [] } },
);

describeInLab('pods that are seen as themselves, on hosts that are not', () => {
  let lab: PlaneLab;

  beforeAll(async () => {
    lab = await PlaneLab.up();
  });
  afterEach(async () => {
    await Promise.all(lab.clusters.splice(0).map(async (cluster) => cluster.down()));
  });
  afterAll(async () => lab.down());

  test.each([
    ['the gateway', 0],
    ['another node', 1],
  ])('senders learn the size of a link behind %s', async (_host, at) => {
    const home = await party(lab, 'h', { pods: '10.1.0.0/16', nodes: at + 1 });
    const far: Party = at === 0 ? home : { cluster: home.cluster, pod: await home.cluster.pod(at) };
    const away = await party(lab, 'w', { pods: '10.2.0.0/16' });
    const [ours, theirs] = [home.cluster.side, away.cluster.side];
    join(ours, theirs);
    lend(home, away);
    await home.cluster.node(at).ip(`link set p1 mtu ${NARROW}`);
    await lab.apply();
    expect(theirs.sees(ours, far.pod.address)).toBe(far.pod.address);
    const gateway = theirs.sees(ours, ours.network.gatewayAddress);
    expect(gateway).not.toBe(ours.network.gatewayAddress);
    await expectTalk(away, far);
    await expectTalk(far, away);

    // In a connection that they have begun.
    const route = async (): Promise<string> => away.pod.run(['ip', 'route', 'get', far.pod.address]);
    expect(await route()).not.toContain('mtu');
    await eventually('the size is known', async () => {
      await away.pod.shell(`busybox ping -c1 -W1 -s 1300 ${far.pod.address} || true`);
      return (await route()).includes(`mtu ${NARROW}`);
    });
    await away.pod.run(['ip', 'route', 'flush', 'cache']);
    expect(await route()).not.toContain('mtu');
    // In one that our pod has begun. There conntrack translates nothing.
    const count = await told(away.pod, gateway);
    expect(await transfer(far.pod, away.pod, away.pod.address)).toBe(BULK_BYTES);
    expect(await count()).toBeGreaterThan(0);
  });

  test('senders with IPv6 learn it, too', async () => {
    const names = ['far', 'pod'].map((name) => `icmp${process.pid}${name}`);
    const gateway = await Netns.up(`icmp${process.pid}`);
    const [far, pod] = names.map((name) => new PlaneSpace(name)) as [PlaneSpace, PlaneSpace];
    try {
      for (const { netns } of [far, pod]) await gateway.run(['ip', 'netns', 'add', netns]);
      await gateway.run(
        ['ip', '-batch', '-'],
        `link add wg address 02:00:00:00:00:01 type veth peer name eth0 address 02:00:00:00:00:02 netns ${far.netns}
        link add p1 mtu 1300 type veth peer name eth0 netns ${pod.netns}
        link set wg mtu 1420 up
        link set p1 up
        addr add fd00:70::1 dev wg nodad
        addr add fd00:244::1/64 dev p1 nodad
        neigh add fd00:900::5 dev wg lladdr 02:00:00:00:00:02
        route add fd00:900::/48 dev wg src fd00:70::1`,
      );
      await gateway.run(['sh', '-c', 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding']);
      for (const [host, address] of [
        [far, 'fd00:900::5'],
        [pod, 'fd00:244::5'],
      ] as const) {
        await host.ip('link set lo up', 'link set eth0 up', `addr add ${address}/64 dev eth0 nodad`);
      }
      await far.ip(
        'link set eth0 mtu 1420',
        'neigh add fd00:70::1 dev eth0 lladdr 02:00:00:00:00:01',
        'route add fd00:70::1 dev eth0',
        'route add default via fd00:70::1',
      );
      await pod.ip('route add default via fd00:244::1');
      const { nftables } = gatewayPlan(V6);
      await gateway.call('network/host/nftables/table.ts', 'setTable', 'tributary_gateway', nftables);
      const count = await told(far, 'fd00:71::1');
      expect(await transfer(pod, far, 'fd00:900::5')).toBe(BULK_BYTES);
      expect(await count()).toBeGreaterThan(0);
    } finally {
      await Promise.all([far.end(), pod.end()]);
      await gateway.down();
    }
  });
});
