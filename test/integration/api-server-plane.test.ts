import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { eventually } from '../support/eventually.ts';
import { expectTalk, lend, type Party, party, refusedBy } from '../support/network/plane-checks.ts';
import { PlaneLab, planeLabProblem } from '../support/network/plane-lab.ts';
import { join } from '../support/network/plane-tunnels.ts';

/** How pods at a peer reach the API servers of their home, in packets. */

const SERVER_PORT = 6443;
const OTHER_PORT = 6444;
const STREAM_PORT = 6445;
const problem = planeLabProblem();
if (problem !== undefined) process.stderr.write(`API servers of homes are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

let lab: PlaneLab;

describeInLab('the API server of a home', () => {
  beforeAll(async () => {
    lab = await PlaneLab.up();
  });
  afterAll(async () => lab.down());

  test.each([
    ['on another host', 1],
    ['on the host of the gateway', 0],
  ])(
    '%s is reached by its pods over there that have a token, at its port, and by nobody else',
    async (_where, index) => {
      const home = await party(lab, `h${index}`, { nodes: 2 });
      const provider = await party(lab, `p${index}`);
      const [ours, theirs] = [home.cluster.side, provider.cluster.side];
      join(ours, theirs);
      lend(home, provider);
      const [tokenless, native] = [await provider.cluster.pod(), await provider.cluster.pod()];
      lend(home, { ...provider, pod: tokenless });
      const host = home.cluster.node(index);
      await host.serve(SERVER_PORT, SERVER_PORT);
      await host.serve(OTHER_PORT, OTHER_PORT);
      const { address } = host.facts;
      const place = { address: '10.70.15.254', port: 443 };
      ours.network.apiServer = { ...place, endpoints: [{ address, port: SERVER_PORT }] };
      await lab.apply();
      await expectTalk(home, provider);
      const view = theirs.sees(ours, place.address);
      const seen = ours.sees(theirs, provider.pod.address);
      expect(await provider.pod.ask('tcp', view, { port: 443 })).toBeUndefined();

      const relation = ours.relation(theirs);
      relation.apiServer = true;
      relation.clients = new Set([seen]);
      await lab.apply();
      await eventually(
        'it answers',
        async () => (await provider.pod.ask('tcp', view, { port: 443 })) !== undefined,
      );
      // Another host sees the gateway, since it knows no way back to the pod.
      const gateway = home.cluster.gatewayNode.facts.address;
      expect(await provider.pod.ask('tcp', view, { port: 443 })).toBe(index === 0 ? seen : gateway);
      // The address of the node itself, as the peer sees it, stays closed.
      const node = theirs.sees(ours, host.facts.external);
      const others = {
        'a pod without a token': tokenless.ask('tcp', view, { port: 443 }),
        'a pod of the provider itself': native.ask('tcp', view, { port: 443 }),
        'the port of the API server': provider.pod.ask('tcp', view, { port: SERVER_PORT }),
        'another port of its host': provider.pod.ask('tcp', view, { port: OTHER_PORT }),
        'another protocol': provider.pod.ask('udp', view, { port: 443 }),
        'an echo': provider.pod.ping(view).then((answered) => (answered ? 'yes' : undefined)),
        'the host itself': provider.pod.ask('tcp', node, { port: SERVER_PORT }),
      };
      const answers = await Promise.all(
        Object.entries(others).map(async ([what, asked]) => ((await asked) === undefined ? [] : [what])),
      );
      expect(answers.flat()).toEqual([]);

      const before = await refusedBy(provider.cluster, 'refused_tenant');
      theirs.relation(ours).forbidsHomeApiServer = true;
      await lab.apply();
      expect(await provider.pod.ask('tcp', view, { port: 443 })).toBeUndefined();
      expect(await refusedBy(provider.cluster, 'refused_tenant')).toBeGreaterThan(before);
      theirs.relation(ours).forbidsHomeApiServer = false;
      await lab.apply();
      await eventually(
        'it answers again',
        async () => (await provider.pod.ask('tcp', view, { port: 443 })) !== undefined,
      );
      await expectEndOfOpenOnes(home, provider, view);
      expect(await provider.pod.ask('tcp', view, { port: 443 })).toBeUndefined();
    },
  );
});

/** A connection stays open while the home lets it, and says nothing more when the way is closed. */
async function expectEndOfOpenOnes(home: Party, provider: Party, view: string): Promise<void> {
  const [ours, theirs] = [home.cluster.side, provider.cluster.side];
  const host = home.cluster.nodes.find(
    ({ facts }) => facts.address === ours.network.apiServer?.endpoints[0]?.address,
  );
  if (host === undefined || ours.network.apiServer === undefined) throw new Error('there is no API server');
  // Of one connection: what it forks for more would outlive it, and keep the test from ending.
  host.spawn(['socat', `TCP-LISTEN:${STREAM_PORT},reuseaddr`, 'EXEC:cat']);
  await eventually('it listens', async () => (await host.run(['ss', '-Hlnt'])).includes(`:${STREAM_PORT} `));
  ours.network.apiServer.endpoints = [{ address: host.facts.address, port: STREAM_PORT }];
  await lab.apply();
  const client = provider.pod.spawn(['socat', '-', `TCP:${view}:443`]);
  let heard = '';
  client.stdout?.on('data', (data: Buffer) => (heard += String(data)));
  client.stdin?.write('before\n');
  await eventually('its answer', () => heard === 'before\n');
  const label = `refused_${theirs.id}`;
  ours.relation(theirs).apiServer = false;
  await lab.apply();
  const before = await refusedBy(home.cluster, label);
  client.stdin?.write('after\n');
  await eventually('its end', async () => (await refusedBy(home.cluster, label)) > before);
  expect(heard).toBe('before\n');
}
