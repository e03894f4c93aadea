import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { compile } from '../../lab/network-policy/compile.ts';
import type { NetworkPolicy } from '../../lab/network-policy/model.ts';
import { ownNetworkData, readOwnNetwork } from '../../src/api/own-network.ts';
import type { Node } from '../../src/api/wire.ts';
import { forgeIsolation, ownRangesOf } from '../../src/hosting/tenants/isolation.ts';
import {
  composeOwn,
  type OwnOptions,
  realNode,
  reservedOf,
} from '../../src/network/exchange/own-network-data.ts';
import { eventually } from '../support/eventually.ts';
import { PlaneLab, planeLabProblem } from '../support/network/plane-lab.ts';
import type { PlanePod, PlaneSpace } from '../support/network/plane-node.ts';

/** What a guest reaches of a cluster in layouts that are common elsewhere: packets that are tried, under the lab's enforcer. */

const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`isolation is not tried by packets: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

/** All are beyond the guest's node, and one router answers at all of them. */
const CLOSED = {
  'a node': '172.31.1.2',
  'a node that is not known yet': '172.31.1.99',
  'an API server that is no node': '10.9.8.7',
  'the second address of a node': '10.8.0.4',
  'the ExternalIP of a node': '203.0.113.7',
  'what people have reserved': '172.19.0.9',
  'a network beside the cluster': '172.18.3.9',
  'the metadata of a cloud': '100.100.100.200',
};
const OPEN = { 'the Internet': '198.51.100.8', 'a private network that is not ours': '10.200.0.9' };

const GUEST = 'rome-shop';
const OPTIONS: OwnOptions = {
  podCidrs: ['10.244.0.0/16'],
  externalCidr: '10.70.0.0/20',
  viewPools: ['100.64.0.0/10'],
  reservedCidrs: ['172.19.0.0/16'],
};
const SERVICES = ['10.96.0.0/16'];

const node = (name: string, ...addresses: [type: string, address: string][]): Node => ({
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: {},
  status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
});
const NODES = [
  node('i1', ['InternalIP', '172.31.1.1']),
  node('i2', ['InternalIP', CLOSED['a node']], ['InternalIP', '10.8.0.4'], ['ExternalIP', '203.0.113.7']),
];

/** As role `cluster` publishes it and whoever sets up tenants reads it. */
function policies(): NetworkPolicy[] {
  const apiServers = [{ address: CLOSED['an API server that is no node'], port: 6443 }];
  const own = composeOwn(
    { nodes: NODES.flatMap((it) => realNode(it) ?? []), apiServers },
    OPTIONS,
    undefined,
  );
  const reserved = [...reservedOf(own, SERVICES, OPTIONS), '172.18.0.0/16'];
  const published = readOwnNetwork(ownNetworkData({ ...own, reserved, services: SERVICES }));
  const all = forgeIsolation(GUEST, {}, { peer: 'rome', prefixes: [], own: ownRangesOf(published) });
  return all.map(({ spec }) => ({ metadata: { namespace: GUEST }, spec: { ...spec } }));
}

let lab: PlaneLab;
let guest: PlanePod;
let router: PlaneSpace;

async function reached(places: Readonly<Record<string, string>>): Promise<string[]> {
  const answers = await Promise.all(
    Object.entries(places).map(async ([name, address]) =>
      (await guest.ask('tcp', address)) === undefined ? [] : [name],
    ),
  );
  return answers.flat();
}

describeInLab('a guest', () => {
  beforeAll(async () => {
    lab = await PlaneLab.up();
    const cluster = await lab.cluster('i', { nodes: 1 });
    guest = await cluster.pod();
    router = lab.stranger();
    const all = [...Object.values(CLOSED), ...Object.values(OPEN)];
    await router.ip(...all.map((address) => `addr add ${address}/32 dev br0`));
    await router.serve();
  });
  afterAll(async () => {
    await router?.endPrograms();
    await lab?.down();
  });

  test('reaches the outside, and neither nodes nor API servers nor networks of ours, by whichever address', async () => {
    const everywhere = { ...CLOSED, ...OPEN };
    await eventually('all answer without a policy', async () => {
      const found = await reached(everywhere);
      return found.length === Object.keys(everywhere).length;
    });
    const script = compile(
      {
        pods: [
          {
            metadata: { namespace: GUEST },
            spec: { nodeName: 'i1', containers: [] },
            status: { podIP: guest.address },
          },
        ],
        namespaces: [{ metadata: { name: GUEST } }],
        policies: policies(),
      },
      'i1',
    );
    const [host] = lab.clusters[0]?.nodes ?? [];
    await host?.nft(script);
    expect(await reached(everywhere)).toEqual(Object.keys(OPEN));
  });
});
