import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { deployments, namespaces, nodes } from '../../src/api/resources.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import { Doctor } from '../support/doctor.ts';
import { eventually } from '../support/eventually.ts';
import { short } from '../support/long.ts';
import { planeLabProblem } from '../support/network/plane-lab.ts';
import { FAR_GATEWAY, RolesLab, type RolesNode, type RolesSide } from './support/roles-lab.ts';

/** Faults of tunnels: found by the doctor, and repaired by what it says. */

const HOME = 'home'.padEnd(26, 'a');
const AWAY = 'away'.padEnd(26, 'b');
const NARROW = 1400;

const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`the doctor is not tested on tunnels: ${problem}\n`);
/** It takes most of a minute; what it finds on Tunnels is tested on conditions by test/unit/doctor. */
const isLong = short('faults of tunnels, injected, that the doctor finds', { short: 0, long: 5 }) > 0;
const describeInLab = problem === undefined && isLong ? describe : describe.skip;

describeInLab('the doctor and tunnels', () => {
  let lab: RolesLab;
  let home: RolesSide;
  let away: RolesSide;
  let doctor: Doctor;

  beforeAll(async () => {
    doctor = await Doctor.ready();
    lab = await RolesLab.up(`doctor${process.pid % 10_000}`);
    home = await lab.side('home', 'h', 2);
    away = await lab.side('away', 'w', 1);
    const [one, two, far] = [home.node(0), home.node(1), away.node(0)];
    for (const node of [one, two, far]) {
      // As distributions set it: a host drops what comes by another way than answers would leave by.
      for (const which of ['all', 'default'])
        await node.run(['sysctl', '-qw', `net.ipv4.conf.${which}.rp_filter=1`]);
      node.start('node');
    }
    one.start('gateway', '--probe-seconds', '1');
    far.start('gateway', '--probe-seconds', '1');
    await eventually('home has told', async () => (await home.facts()) !== undefined);
    await eventually('away has told', async () => (await away.facts()) !== undefined);
    const [ours, theirs] = [await home.facts(), await away.facts()];
    if (ours === undefined || theirs === undefined) throw new Error('no facts');
    await home.tunnelTo(AWAY, theirs);
    await away.tunnelTo(HOME, ours);
    await isWell();
  });
  afterAll(async () => {
    await lab?.down();
    doctor?.gone();
  });

  const at = ({ cluster }: RolesSide): string => cluster.kubeconfig;
  async function isWell(): Promise<void> {
    for (const side of [home, away]) await doctor.isContent(at(side), { check: 'tunnels' });
  }

  type Hook = 'input' | 'output';
  const wall = async (node: RolesNode, rules: Partial<Record<Hook, string>>): Promise<void> => {
    const chains = Object.entries(rules).map(
      ([hook, rule]) => `chain ${hook} { type filter hook ${hook} priority 10; ${rule}\n}\n`,
    );
    await node.run([
      'nft',
      `add table inet wall; delete table inet wall; table inet wall { ${chains.join('\n')} }\n`,
    ]);
  };
  /** As a person with a firewall does it: for each `from A to B` that is named, a rule before the others. */
  async function letThrough(node: RolesNode, { remedy = '' }: Finding): Promise<void> {
    const ways = [...remedy.matchAll(/from ([\d.]+):\d+ to ([\d.]+):(\d+)/gu)];
    expect(ways.length).toBeGreaterThan(0);
    for (const [, from = '', to = '', port = ''] of ways) {
      for (const hook of ['input', 'output'] as const) {
        const rule = ['ip', 'saddr', from, 'ip', 'daddr', to, 'udp', 'dport', port, 'accept'];
        await node.run(['nft', 'insert', 'rule', 'inet', 'wall', hook, ...rule]).catch(() => undefined);
      }
    }
  }
  const DROP = 'udp dport 51820 drop';
  const VXLAN_DROP = 'udp dport 7482 drop';

  test('UDP is blocked both ways', async () => {
    await wall(home.node(0), { input: DROP, output: DROP });
    const finding = await doctor.finds(at(home), { check: 'tunnels', says: /NoHandshake/u });
    await letThrough(home.node(0), finding);
    await isWell();
  });

  test('UDP is blocked one way: each side says which', async () => {
    await wall(home.node(0), { output: DROP });
    const finding = await doctor.finds(at(home), { check: 'tunnels', says: /NoAnswer|PacketsOneWay/u });
    expect(finding.remedy).toContain('packets of the peer arrive, ours do not');
    await doctor.finds(at(away), { check: 'tunnels', says: /NoHandshake/u });
    await letThrough(home.node(0), finding);
    await isWell();
  });

  test('VXLAN is dropped between the nodes of one cluster, though the tunnel is well', async () => {
    const [one, two] = [home.node(0), home.node(1)];
    const reaches = async (node: RolesNode): Promise<boolean> =>
      node.run(['busybox', 'ping', '-c', '1', '-W', '1', FAR_GATEWAY]).then(
        () => true,
        () => false,
      );
    await doctor.isContent(at(home), { check: 'overlay' });
    await eventually('both nodes reach the peer', async () => (await reaches(one)) && reaches(two));
    await wall(two, { input: VXLAN_DROP, output: VXLAN_DROP });
    const finding = await doctor.finds(at(home), { check: 'overlay', says: /no answer/u });
    expect(finding.tried).toBe('VXLAN between node h1 of the gateway and node h2');
    expect([await reaches(one), await reaches(two)]).toEqual([true, false]);
    await doctor.isContent(at(home), { check: 'tunnels' });
    await letThrough(two, finding);
    await doctor.isContent(at(home), { check: 'overlay' });
    await eventually('the node reaches the peer again', async () => reaches(two));
    // One way is enough to be found.
    await wall(one, { output: VXLAN_DROP });
    await letThrough(one, await doctor.finds(at(home), { check: 'overlay', says: /no answer/u }));
    await doctor.isContent(at(home), { check: 'overlay' });
  });

  test('the MTU is too large for the path', async () => {
    const one = home.node(0);
    await doctor.isContent(at(home), { check: 'mtu' });
    await lab.narrow(one, NARROW);
    const { remedy = '' } = await doctor.finds(at(home), {
      check: 'mtu',
      level: 'warning',
      says: /^13\d\d bytes/u,
    });
    const [, mtu = ''] = /--tunnel-mtu (\d+)/u.exec(remedy) ?? [];
    for (const side of [home, away]) {
      const node = side.node(0);
      await node.kill('gateway');
      node.start('gateway', '--probe-seconds', '1', '--tunnel-mtu', mtu);
    }
    for (const node of [...home.nodes, ...away.nodes]) {
      await node.kill('node');
      node.start('node', '--tunnel-mtu', mtu);
    }
    await doctor.isContent(at(home), { check: 'mtu' });
    await lab.narrow(one, 1500);
  });

  test('the node of the gateway has died', async () => {
    const [one, two] = [home.node(0), home.node(1)];
    const { client } = home;
    const gateway = { namespace: 'tributary-network', name: 'tributary-gateway' };
    const labels = { app: 'gateway' };
    await client.create(namespaces, { metadata: { name: gateway.namespace } });
    await client.create(deployments, {
      metadata: gateway,
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'example/none' }] } },
      },
    });
    await client.create(nodes, { metadata: { name: one.name } });
    await Promise.all((['gateway', 'node', 'wireguard', 'relay'] as const).map(async (it) => one.kill(it)));
    await one.run(['ip', 'link', 'set', 'eth0', 'down']);
    const finding = await doctor.finds(at(home), { check: 'agents', says: /node h1 is not Ready/u });
    await doctor.follow(at(home), finding);
    // The test stands for scheduler and kubelet.
    expect((await client.get(deployments, gateway)).spec?.replicas).toBe(2);
    two.start('gateway', '--probe-seconds', '1');
    await doctor.isContent(at(home), { check: 'agents', about: /Lease/u });
    await eventually(
      'ready by the other',
      async () => (await home.tunnel(AWAY)).status?.connection?.gateway === 'h2',
    );
  });
});
