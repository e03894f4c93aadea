import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { AddressPort } from '../../src/api/tunnel.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { expectAnswer, expectTalk, lend, party } from '../support/network/plane-checks.ts';
import { PlaneLab, planeLabProblem } from '../support/network/plane-lab.ts';
import { TCP_PORT, UDP_PORT, type PlanePod } from '../support/network/plane-node.ts';
import { join, joinThrough } from '../support/network/plane-tunnels.ts';

/** What packets of a peer reach of Services that it is offered. */

const OTHER_PORT = 7002;
const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`offered Services are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

const tcp = (address: string): AddressPort => ({ address, protocol: 'TCP', port: TCP_PORT });

/** Which of its ports answer: that on offer, another one of each transport, and echoes. */
async function answers(from: PlanePod, address: string): Promise<string[]> {
  const found = {
    tcp: await from.ask('tcp', address),
    other: await from.ask('tcp', address, { port: OTHER_PORT }),
    udp: await from.ask('udp', address, { port: UDP_PORT }),
    echo: (await from.ping(address)) ? 'yes' : undefined,
  };
  return Object.entries(found).flatMap(([name, answer]) => (answer === undefined ? [] : [name]));
}

/** The same where the port on offer must answer: asked again where it does not within the second that `ask` waits. */
const answersOfOffered = async (from: PlanePod, address: string): Promise<string[]> =>
  awaited('the port on offer answers', async () => {
    const found = await answers(from, address);
    return found.includes('tcp') && found;
  });

let lab: PlaneLab;

describeInLab('Services of a provider', () => {
  beforeAll(async () => {
    lab = await PlaneLab.up();
  });
  afterAll(async () => lab.down());

  test('are reached at their addresses and ports, and nothing beside them is', async () => {
    const home = await party(lab, 'h');
    const provider = await party(lab, 'p', { nodes: 2 });
    const third = await party(lab, 't');
    const [ours, theirs, thirds] = [home, provider, third].map(({ cluster }) => cluster.side);
    if (ours === undefined || theirs === undefined || thirds === undefined) throw new Error('no sides');
    join(ours, theirs);
    join(ours, thirds);
    joinThrough(ours, theirs, thirds);
    lend(home, provider);
    lend(home, third);
    // Own pods of the provider: one of them is offered, on another node than the gateway.
    const [database, beside] = [await provider.cluster.pod(1), await provider.cluster.pod(1)];
    await database.serve(OTHER_PORT, OTHER_PORT + 1);
    const stranger = await third.cluster.pod();
    await lab.apply();
    await expectTalk(home, provider);
    await expectTalk(home, third);
    // The home's own pod is not offloaded: by itself it reaches its pods over there only.
    const [view, other] = [database, beside].map(({ address }) => ours.sees(theirs, address));
    if (view === undefined || other === undefined) throw new Error('no views');
    const guestView = thirds.sees(ours, view);
    expect(await answers(home.pod, view)).toEqual([]);

    const began = performance.now();
    theirs.relation(ours).offered = [tcp(database.address)];
    ours.relation(theirs).used = [tcp(view)];
    await lab.apply();
    await eventually('the offered port answers', async () => (await home.pod.ask('tcp', view)) !== undefined);
    process.stdout.write(
      `reached ${((performance.now() - began) / 1000).toFixed(2)} s after it was offered\n`,
    );
    await expectAnswer(async () => home.pod.ask('tcp', view), theirs.sees(ours, home.pod.address));
    expect(await answersOfOffered(home.pod, view)).toEqual(['tcp']);
    expect(await answers(home.pod, other)).toEqual([]);
    // A pod of the home in a third cluster, through the home; others there do not get so far.
    expect(await answersOfOffered(third.pod, guestView)).toEqual(['tcp']);
    expect(await answers(stranger, guestView)).toEqual([]);
    expect(await answers(third.pod, thirds.sees(ours, other))).toEqual([]);
    theirs.relation(ours).access = 'None';
    await lab.apply();
    expect(await answers(home.pod, view)).toEqual([]);
    theirs.relation(ours).access = 'OffloadedPods';
    theirs.relation(ours).offered = [];
    await lab.apply();
    expect(await answers(home.pod, view)).toEqual([]);
  });
});
