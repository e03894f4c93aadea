import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { peerName } from '../../src/network/plan/names.ts';
import { reservedRanges } from '../../src/network/ipam/own-ranges.ts';
import { Ipam } from '../../src/network/ipam/ipam.ts';
import { ownAddressesOf } from '../../src/network/ipam/own-addresses.ts';
import type { WantedPrefix } from '../../src/network/ipam/wanted-prefixes.ts';
import { eventually } from '../support/eventually.ts';
import { attack, expectTalk, lend, party, refusedBy } from '../support/network/plane-checks.ts';
import { PlaneLab, planeLabProblem, TUNNEL_PORT } from '../support/network/plane-lab.ts';
import { UDP_PORT } from '../support/network/plane-node.ts';
import { join } from '../support/network/plane-tunnels.ts';

/** A peer that sends through its tunnel whatever it likes. */

const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`hostile peers are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

/** A datagram to each of so many ports: each is a connection, to conntrack. */
const FLOOD = `
  const socket = require('node:dgram').createSocket('udp4');
  let port = 10000;
  const next = () => port < 40000 ? socket.send('x', port++, process.argv[1], next) : socket.close();
  next();
`;

let lab: PlaneLab;

describeInLab('a hostile peer', () => {
  beforeAll(async () => {
    lab = await PlaneLab.up();
  });
  afterAll(async () => lab.down());

  test('reaches nothing but what it may, whatever it sends', async () => {
    const home = await party(lab, 'h', { nodes: 2 });
    const [foe, friend] = [await party(lab, 'w'), await party(lab, 'f')];
    const far = await home.cluster.pod(1);
    // So that it can send from its addresses as we see them to ours as it sees them.
    foe.cluster.side.viewsFrom(90);
    for (const { cluster } of [foe, friend]) join(home.cluster.side, cluster.side);
    lend(home, foe);
    lend(home, friend);
    const [side, enemy] = [home.cluster.side, foe.cluster.side];
    await lab.apply();
    await expectTalk(foe, home);
    const nodes = home.cluster.nodes;
    const [gateway, worker] = [home.cluster.node(0), home.cluster.node(1)];
    // Services and ports of nodes that lead to a pod, and an address of the host that is on no other link.
    for (const node of nodes) {
      await node.service(`ip daddr 10.96.0.55 udp dport ${UDP_PORT}`, `${home.pod.address}:${UDP_PORT}`);
      await node.service(`fib daddr type local udp dport ${UDP_PORT}`, `${home.pod.address}:${UDP_PORT}`);
      await node.ip('addr add 172.31.200.9/32 dev lo');
    }
    const outside = await attack(foe.cluster, home.cluster, {
      sources: [
        side.sees(friend.cluster.side, friend.pod.address),
        '10.244.0.77',
        '10.96.0.55',
        '172.31.77.7',
        '198.51.100.7',
        side.network.gatewayAddress,
      ],
      targets: [
        enemy.sees(side, home.pod.address),
        home.pod.address,
        far.address,
        '10.96.0.55',
        '172.31.200.9',
      ],
    });
    const view = (address: string): string => enemy.sees(side, address);
    const bridges = ['10.244.0.1', '10.244.1.1'];
    const hosts = [side.network.gatewayAddress, ...side.network.nodes.map(({ external }) => external)];
    // From addresses of its own, also of pods of ours.
    const inside = await attack(foe.cluster, home.cluster, {
      sources: [side.sees(enemy, foe.pod.address), side.sees(enemy, '10.244.0.200')],
      targets: [
        home.pod.address,
        '10.96.0.55',
        '172.31.200.9',
        worker.facts.address,
        side.sees(friend.cluster.side, friend.pod.address),
        ...[...bridges, ...hosts].map(view),
      ],
      // The gateway answers to the probes of peers.
      ping: false,
    });
    // Pods, from one that is not ours.
    const pods = await attack(foe.cluster, home.cluster, {
      sources: [side.sees(enemy, '10.244.0.200'), side.sees(enemy, enemy.network.gatewayAddress)],
      targets: [home.pod, far].map(({ address }) => view(address)),
    });
    expect({ outside, inside, pods }).toEqual({ outside: 0, inside: 0, pods: 0 });
    // WireGuard has dropped those of others already; without that, the filter does.
    expect(await refusedBy(home.cluster, 'refused_source')).toBe(0);
    await gateway.run(['wg', 'set', gateway.link, 'peer', enemy.publicKey, 'allowed-ips', '0.0.0.0/0']);
    const unfiltered = await attack(foe.cluster, home.cluster, {
      sources: ['198.51.100.7', '10.244.0.77'],
      targets: [view(home.pod.address), '10.96.0.55'],
    });
    expect(unfiltered).toBe(0);
    await eventually(
      'sources are refused',
      async () => (await refusedBy(home.cluster, 'refused_source')) > 3,
    );
    await home.cluster.apply();
    expect(await refusedBy(home.cluster, `refused_${enemy.id}`)).toBeGreaterThan(0);
    // The same packets arrive where they may.
    const allowed = await attack(foe.cluster, home.cluster, {
      sources: [side.sees(enemy, foe.pod.address)],
      targets: [view(home.pod.address)],
    });
    expect(allowed).toBeGreaterThan(1);

    // All pods are pods, and still neither nodes nor Services.
    side.relation(enemy).access = 'AllPods';
    await home.cluster.apply();
    const hostsOnly = await attack(foe.cluster, home.cluster, {
      sources: [side.sees(enemy, '10.244.0.200')],
      targets: [...bridges, ...hosts].map(view),
      ping: false,
    });
    expect(hostsOnly).toBe(0);

    // One out of the range of pods that the CNI has given to the node itself is reached by the CNI's links.
    const own = '10.244.9.9';
    await worker.ip(`addr add ${own}/32 dev lo`);
    // As where the CNI's links take packets of peers to pods.
    await worker.run(['sysctl', '-qw', 'net.ipv4.conf.all.rp_filter=2']);
    await gateway.ip(`route add ${own}/32 via ${worker.facts.address}`);
    const chain = `type filter hook input priority 300; ip daddr ${own} counter;`;
    await worker.nft(`table ip own {\n chain input {\n ${chain}\n }\n }`);
    const toOwn = { sources: [side.sees(enemy, '10.244.0.200')], targets: [view(own)] };
    await attack(foe.cluster, home.cluster, toOwn);
    expect(await worker.run(['nft', 'list', 'table', 'ip', 'own'])).toContain('counter packets 0 ');
    expect(await worker.run(['nft', 'list', 'chain', 'inet', 'tributary_node', 'arrival'])).toMatch(
      /views4 .*counter packets [1-9]/u,
    );
    await worker.nft('delete table ip own');

    // More connections at once than it may open; one that does no harm has room again soon.
    const flooded = await home.pod.capture();
    await lab.apply();
    // Its own gateway would not let it.
    const bounded = peerName('home', side.id);
    await foe.cluster.gatewayNode.run(['nft', 'flush', 'chain', 'inet', 'tributary_gateway', bounded]);
    await foe.pod.run([process.execPath, '-e', FLOOD, view(home.pod.address)]);
    // Packets may still be in the tunnel when their sender has ended.
    await eventually(
      'most are refused',
      async () => (await refusedBy(home.cluster, `refused_${enemy.id}`)) > 1000,
    );
    await eventually('some come through', async () => (await flooded()) > 100);
    await eventually('the peer may go on', async () => foe.pod.ping(view(home.pod.address)));

    // A pod, and one beside the nodes, that speak VXLAN.
    await home.pod.shell(`echo x | socat -u - UDP-SENDTO:${worker.facts.address}:4799`);
    await home.pod.shell(`echo x | socat -u - UDP-SENDTO:${gateway.facts.address}:4799`);
    await lab.stranger().shell(`echo x | socat -u - UDP-SENDTO:${worker.facts.address}:4799`);
    const refused = await Promise.all(
      nodes.map(async (node) => node.run(['nft', 'list', 'table', 'inet', 'tributary_node'])),
    );
    expect(
      refused.map(
        (text) => [...text.matchAll(/packets [1-9]\d* bytes \d+ drop comment "\S+ refused_vxlan/g)].length,
      ),
    ).toEqual([2, 1]);
  });

  test('that calls a network behind our default route its own draws nothing of ours into its tunnel, unless a person has allowed it', async () => {
    const [home, foe] = [await party(lab, 'd', { nodes: 2 }), await party(lab, 'x')];
    join(home.cluster.side, foe.cluster.side);
    const [side, enemy] = [home.cluster.side, foe.cluster.side];
    // A database and the metadata of a cloud, which every node reaches through its router.
    const [database, metadata] = ['10.50.0.7', '100.100.100.200'];
    const router = lab.stranger();
    await router.ip(`addr add ${database}/32 dev br0`, `addr add ${metadata}/32 dev br0`);
    await router.serve();
    const claimed = ['10.50.0.0/16', '100.100.100.0/24', ...enemy.network.pods, enemy.network.external];
    const wanted = claimed.map((prefix): WantedPrefix => ({ prefix, use: 'Pods' }));
    const { nodes } = home.cluster;
    const reserved = reservedRanges({
      pods: side.network.pods,
      services: side.network.reserved ?? [],
      external: side.network.external,
      nodeAddresses: nodes.map(({ facts }) => facts.address),
      single: [],
      extra: [],
    });
    side.network.reserved = reserved;
    const claims = async (ownAddresses?: string[]): Promise<string[]> => {
      const ipam = new Ipam({ pools: side.network.pools, reserved });
      const { views } = ipam.assign(enemy.id, wanted, ownAddressesOf(ownAddresses));
      side.relation(enemy).views.splice(0, Infinity, ...views);
      await lab.apply();
      return views.map(({ as }) => as);
    };
    /** By which link a packet to the address leaves each node, and who answers there. */
    const ways = async (address: string): Promise<string[]> =>
      Promise.all(
        nodes.map(async (node) => {
          const route = await node.run(['ip', 'route', 'get', address]);
          const link = / dev (\S+)/.exec(route)?.[1] ?? 'none';
          return `${link} ${(await node.ask('tcp', address)) ?? 'no answer'}`;
        }),
      );
    const direct = nodes.map(({ facts }) => `eth0 ${facts.address}`);

    expect((await claims()).filter((as) => claimed.includes(as))).toEqual([]);
    await eventually('the database answers', async () => (await ways(database)).join() === direct.join());
    expect(await ways(metadata)).toEqual(direct);

    const allowed = await claims(['10.50.0.0/16', '100.100.100.0/24']);
    expect(allowed.filter((as) => claimed.includes(as))).toEqual(['10.50.0.0/16']);
    const link = home.cluster.gatewayNode.link;
    expect(await ways(database)).toEqual([`${link} no answer`, 'vx no answer']);
    expect(await ways(metadata)).toEqual(direct);
    await router.endPrograms();
  });

  test('whose gateway seems to be where its tunnel leads: what WireGuard sends to it does not go round and round', async () => {
    const [home, foe] = [await party(lab, 'e'), await party(lab, 'y')];
    join(home.cluster.side, foe.cluster.side);
    lend(home, foe);
    await lab.apply();
    await expectTalk(home, foe);
    const [one, other] = [home.cluster.gatewayNode, foe.cluster.gatewayNode];
    // Hosts that check the way back would not take the packet below.
    await one.shell('for it in all eth0; do echo 0 >/proc/sys/net/ipv4/conf/$it/rp_filter; done');
    const astray = home.cluster.side.sees(foe.cluster.side, '10.244.0.250');
    await other.nft(`table ip spoof { chain post { type nat hook postrouting priority 110;
        udp sport ${TUNNEL_PORT} ip daddr ${one.facts.address} snat to ${astray}; }; }`);
    await other.shell('conntrack -F 2>/dev/null || true');
    const sent = async (): Promise<number> => {
      const said = await one.run(['ip', '-j', '-s', 'link', 'show', one.link]);
      const [link] = JSON.parse(said) as [{ stats64: { tx: { packets: number } } }];
      return link.stats64.tx.packets;
    };
    const endpoint = async (): Promise<string> => one.run(['wg', 'show', one.link, 'endpoints']);
    await eventually('the gateway believes that', async () => {
      await other.ping(foe.cluster.side.sees(home.cluster.side, home.pod.address));
      return (await endpoint()).includes(`${astray}:`);
    });
    const before = await sent();
    const COUNT = 20;
    await home.pod.shell(
      `busybox ping -c${COUNT} -i0.1 -W1 ${home.cluster.side.sees(foe.cluster.side, foe.pod.address)} || true`,
    );
    const after = await sent();
    process.stdout.write(
      `${COUNT} packets into a tunnel that leads to itself: its link took ${after - before}\n`,
    );
    expect(after - before).toBeLessThan(4 * COUNT);
    expect(await refusedBy(home.cluster, 'refused_loop')).toBeGreaterThan(0);
  });
});
