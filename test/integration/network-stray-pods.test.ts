import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { expectTalk, lend, type Party, party } from '../support/network/plane-checks.ts';
import { PlaneLab, planeLabProblem } from '../support/network/plane-lab.ts';
import { join } from '../support/network/plane-tunnels.ts';

/** Pods of a CNI that does not look at the CIDRs of nodes, in real network namespaces, without Kubernetes. */

const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`stray pods are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('pods with addresses out of the CIDRs of their nodes', () => {
  let lab: PlaneLab;
  let home: Party;
  let away: Party;
  /** Routes of the return path to single addresses of pods. */
  const singles = async (): Promise<string[]> => {
    const listed = await home.cluster.gatewayNode.run(['ip', 'route', 'show', 'table', '7480']);
    return listed
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => /^(throw )?10\.244\.\d+\.\d+ /.test(line));
  };
  const VIA_VXLAN = 'via 10.70.0.12 dev vx proto 116 metric 100 onlink';

  beforeAll(async () => {
    lab = await PlaneLab.up();
    home = await party(lab, 'h', { nodes: 3 });
    away = await party(lab, 'w');
    join(home.cluster.side, away.cluster.side);
    lend(home, away);
    // As kube-proxy does.
    for (const node of home.cluster.nodes)
      await node.nft(
        'table ip proxy { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }',
      );
    const strict = await home.cluster.node(1).run(['cat', '/proc/sys/net/ipv4/conf/eth0/rp_filter']);
    expect(strict.trim()).toBe('1');
  });
  afterAll(async () => lab.down());

  test.each([
    ['on another node, in the CIDR of a third', 1, '10.244.2.55', [`10.244.2.55 ${VIA_VXLAN}`]],
    ["on another node, in the CIDR of the gateway's", 1, '10.244.0.55', [`10.244.0.55 ${VIA_VXLAN}`]],
    ['on another node, in that of none', 1, '10.244.77.5', [`10.244.77.5 ${VIA_VXLAN}`]],
    [
      "on the gateway's node, in that of another",
      0,
      '10.244.1.56',
      ['throw 10.244.1.56 proto 116 metric 100'],
    ],
    ["on the gateway's node, in that of none", 0, '10.244.77.6', []],
  ])('%s', async (_where, node, address, expected) => {
    const pod = await home.cluster.strayPod(node, address);
    await lab.apply();
    expect(await singles()).toEqual(expected);
    const stray: Party = { cluster: home.cluster, pod };
    await expectTalk(away, stray);
    await expectTalk(stray, away);
    // The pod goes, and so does its route; others keep the way of their node.
    home.cluster.strays.clear();
    await lab.apply();
    expect(await singles()).toEqual([]);
  });

  test('an address that moves takes its route with it', async () => {
    const { strays } = home.cluster;
    for (const [name, expected] of [
      ['h2', `10.244.2.57 ${VIA_VXLAN}`],
      ['h1', 'throw 10.244.2.57 proto 116 metric 100'],
      ['h2', `10.244.2.57 ${VIA_VXLAN}`],
    ] as const) {
      strays.set('10.244.2.57', name);
      await lab.apply();
      expect(await singles()).toEqual([expected]);
    }
    strays.clear();
    await lab.apply();
    expect(await singles()).toEqual([]);
  });
});
