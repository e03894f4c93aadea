import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  GATEWAY_CONFIG_MAP,
  NETWORK_CONFIG_MAP,
  gatewayFactsData,
  readOwnNetwork,
} from '../../src/api/own-network.ts';
import type { OwnNetwork } from '../../src/api/own-network.ts';
import { configMaps } from '../../src/api/resources.ts';
import { tunnels } from '../../src/api/tunnel.ts';
import type { Tunnel } from '../../src/api/tunnel.ts';
import { type City, PeeringLab, peeringLabProblem, say, until } from '../support/labs/peering-lab.ts';

/** What two whole processes agree on, with real API servers, for a network with a pretended gateway. */

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`exchanges of the network are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

const NAMESPACE = 'tributary-system';
/** The same in both, and of the same length as the nodes' own. */
const PODS = '10.244.0.0/16';
const EXTERNAL = '10.70.0.0/20';
const OPTIONS = { 'pod-cidr': PODS, 'preshared-keys': 'on' };

const tunnelOf = async (city: City, peer: City): Promise<Tunnel | undefined> => {
  const { items } = await city.client.list(tunnels);
  return items.find(({ metadata }) => metadata.name === peer.id);
};

async function ownNetwork(city: City): Promise<OwnNetwork | undefined> {
  const { items } = await city.client.list(configMaps, { namespace: NAMESPACE });
  return readOwnNetwork(items.find(({ metadata }) => metadata.name === NETWORK_CONFIG_MAP)?.data);
}

/** As a gateway would after its start. */
async function gateway(city: City, letter: string): Promise<void> {
  const publicKey = Buffer.alloc(32, letter).toString('base64');
  await city.client.create(configMaps, {
    metadata: { name: GATEWAY_CONFIG_MAP, namespace: NAMESPACE },
    data: gatewayFactsData({ publicKey, endpoints: [`${city.address}:51820`] }),
  });
}

/** Both see both prefixes of the other, and each knows at which addresses it is seen. */
async function joined(one: City, other: City): Promise<[Tunnel, Tunnel]> {
  return until('both tunnels have all addresses', async () => {
    const [ours, theirs] = [await tunnelOf(one, other), await tunnelOf(other, one)];
    const agree = (a: Tunnel | undefined, b: Tunnel | undefined): boolean =>
      [PODS, EXTERNAL].every((prefix) => {
        const as = a?.status?.views?.find((view) => view.prefix === prefix)?.as;
        return as !== undefined && as === b?.spec.seenAs?.find((view) => view.prefix === prefix)?.as;
      });
    return ours && theirs && agree(ours, theirs) && agree(theirs, ours) ? [ours, theirs] : undefined;
  });
}

describeInLab('the network of two clusters with the same prefixes', () => {
  let lab: PeeringLab;
  let rome: City;
  let milan: City;

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    await Promise.all([rome.run(OPTIONS), milan.run(OPTIONS)]);
  });
  afterAll(async () => lab?.down());

  test('without a gateway there are no tunnels, peered or not', async () => {
    await milan.lend();
    await rome.borrow();
    await rome.inPhase(milan.id, 'outgoing', 'Established');
    await milan.inPhase(rome.id, 'incoming', 'Established');
    expect(await tunnelOf(rome, milan)).toBeUndefined();
    expect(await tunnelOf(milan, rome)).toBeUndefined();
  });

  test('each gets a tunnel with views of the other, and learns how it is seen', async () => {
    const began = performance.now();
    await Promise.all([gateway(rome, 'r'), gateway(milan, 'm')]);
    const [ours, theirs] = await joined(rome, milan);
    say(
      `both tunnels have their addresses ${((performance.now() - began) / 1000).toFixed(2)} s after the gateways`,
    );
    expect(ours.spec).toMatchObject({
      clusterName: 'milan',
      access: 'OffloadedPods',
      peer: { publicKey: Buffer.alloc(32, 'm').toString('base64'), endpoints: [`${milan.address}:51820`] },
    });
    for (const { status } of [ours, theirs]) {
      for (const { prefix, as } of status?.views ?? []) {
        expect(as).toMatch(/^100\./);
        expect(as.split('/')[1]).toBe(prefix.split('/')[1]);
      }
    }
    expect(await ownNetwork(rome)).toMatchObject({
      pods: [PODS],
      external: EXTERNAL,
      gatewayAddress: '10.70.0.1',
    });
  });

  test('what a gateway writes beside them stays, and so do all addresses when both are killed', async () => {
    const [before] = await joined(rome, milan);
    const body = { status: { connection: { rttMs: 1.5 } } };
    await rome.client.patch(tunnels, { name: milan.id }, { type: 'merge', body }, { subresource: 'status' });
    await Promise.all([rome.kill(), milan.kill()]);
    await Promise.all([rome.run(OPTIONS), milan.run(OPTIONS)]);
    await until('linked again', async () => (await rome.foreign(milan.id))?.status?.link?.connected);
    const [after] = await joined(rome, milan);
    expect(after.metadata.uid).toBe(before.metadata.uid);
    expect(after.status?.views).toEqual(before.status?.views);
    expect(after.spec.seenAs).toEqual(before.spec.seenAs);
    expect(after.status?.connection).toEqual({ rttMs: 1.5 });
  });

  test('nothing is left when they do not peer any more', async () => {
    const began = performance.now();
    await rome.tributary(['unpeer', milan.id]);
    await until('no tunnels', async () => {
      const left = [await tunnelOf(rome, milan), await tunnelOf(milan, rome)];
      return left.every((tunnel) => tunnel === undefined);
    });
    say(`both tunnels were gone ${((performance.now() - began) / 1000).toFixed(2)} s after unpeer`);
  });
});
