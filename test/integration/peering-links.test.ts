import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acceptancePolicies } from '../../src/api/acceptance-policy.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { nodes, pods } from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { KeyPair } from '../../src/lib/source.ts';
import { announcementPacket } from '../support/network/lan-packets.ts';
import { short } from '../support/long.ts';
import { type City, PeeringLab, peeringLabProblem, say, until } from '../support/labs/peering-lab.ts';

/** Links between whole processes: who can dial whom, addresses that change, and attackers. */

const PORT = 7443;
const ATTACKS = short('malformed attempts', { short: 300, long: 1_000 });

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`whole peerings are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('two clusters that use each other', () => {
  let lab: PeeringLab;
  let rome: City;
  let milan: City;
  /** Means harm. */
  let mallory: City;

  beforeAll(async () => {
    lab = await PeeringLab.up('links', [{ name: 'rome' }, { name: 'milan' }, { name: 'mallory' }]);
    [rome, milan, mallory] = lab.cities as [City, City, City];
    for (const city of [rome, milan]) {
      await city.borrow();
      await city.lend();
    }
    await Promise.all([rome.run(), milan.run()]);
    await peered();
  });
  afterAll(async () => lab?.down());

  async function peered(): Promise<void> {
    for (const [city, peer] of [
      [rome, milan],
      [milan, rome],
    ] as const) {
      await city.inPhase(peer.id, 'outgoing', 'Established');
      await city.inPhase(peer.id, 'incoming', 'Established');
      await until(`${peer.name} is a node of ${city.name}`, async () => city.nodeReady(peer.id));
    }
  }

  /** Connections between the two peering endpoints, as rome's kernel has them. */
  async function connections(): Promise<string[]> {
    const filter = `( sport = :${PORT} or dport = :${PORT} )`;
    const printed = await rome.cluster.node().exec(['ss', '-Htn', 'state', 'established', filter]);
    return printed.split('\n').filter((line) => line !== '');
  }

  const dialledBy = async (city: City, peer: City): Promise<string | undefined> =>
    (await city.foreign(peer.id))?.status?.link?.dialledBy;
  const isLinked = async (city: City, peer: City): Promise<boolean> =>
    (await city.foreign(peer.id))?.status?.link?.connected === true;

  /** What must not change whatever happens to a link. */
  async function untouched(city: City): Promise<unknown> {
    const ids = async (type: typeof nodes | typeof pods | typeof virtualNodes): Promise<string[]> =>
      (await city.client.list(type as typeof nodes)).items.map(
        ({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.generation ?? ''}`,
      );
    const containers = (await city.client.list(pods)).items.map(({ status }) => status?.containerStatuses);
    return {
      nodes: await ids(nodes),
      virtualNodes: await ids(virtualNodes),
      pods: await ids(pods),
      containers,
    };
  }

  /** Sets this rule for incoming packets, or removes it. */
  async function firewall(city: City, rule: string | undefined): Promise<void> {
    const chain = `chain input {\ntype filter hook input priority 0;\n${rule ?? ''}\n}`;
    const stdin = `table inet wall\ndelete table inet wall\ntable inet wall {\n${chain}\n}\n`;
    await city.cluster.node().exec(['nft', '-f', '-'], { stdin });
  }

  test('there is one link for both directions', async () => {
    await until('one connection', async () => (await connections()).length === 1);
    // What is told of a link follows it.
    await until('one says that it has dialled, and the other one agrees', async () => {
      const told = new Set([await dialledBy(rome, milan), await dialledBy(milan, rome)]);
      return told.has('Them') && told.has('Us');
    });
    for (const [city, peer] of [
      [rome, milan],
      [milan, rome],
    ] as const) {
      const made = await city.made(peer.id);
      const counts = Object.entries(made).map(([kind, names]) => [kind, names.length]);
      expect(Object.fromEntries(counts)).toEqual({
        foreignClusters: 1,
        advertisements: 1,
        requests: 1,
        virtualNodes: 1,
        tenants: 1,
        accounts: 1,
      });
    }
    // A pod stays on each virtual node through all that follows.
    for (const [city, peer] of [
      [rome, milan],
      [milan, rome],
    ] as const) {
      const [node = ''] = (await city.made(peer.id))['virtualNodes'] ?? [];
      await city.client.create(pods, {
        metadata: { name: 'stays', namespace: 'default' },
        spec: {
          nodeSelector: { [LABEL_VIRTUAL_NODE]: node },
          tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
          containers: [{ name: 'main', image: 'example/none:1' }],
        },
      });
      await until('the pod runs', async () => {
        const { status } = await city.client.get(pods, { namespace: 'default', name: 'stays' });
        return status?.phase === 'Running';
      });
    }
  });

  test('what the provider refuses is said with the field and the name of its policy', async () => {
    const [node = ''] = (await rome.made(milan.id))['virtualNodes'] ?? [];
    const mighty = { namespace: 'default', name: 'mighty' };
    await rome.client.create(pods, {
      metadata: mighty,
      spec: {
        nodeName: node,
        containers: [{ name: 'main', image: 'example/none:1' }],
        volumes: [{ name: 'root', hostPath: { path: '/' } }],
      },
    });
    const message = async (): Promise<string> => (await rome.client.get(pods, mighty)).status?.message ?? '';
    await until('refused', async () => (await message()).includes('violates PodSecurity "baseline:latest"'));
    expect(await message()).toMatch(/hostPath.*\(podSecurity of the provider's SharingPolicy "all"\)$/u);
    await rome.client.delete(pods, mighty, { gracePeriodSeconds: 0 });
  });

  describe('where only one can dial', () => {
    const directions = [
      ['rome', 'milan'],
      ['milan', 'rome'],
    ] as const;

    test.each(directions)('%s, which nobody can dial, dials %s', async (closed, open) => {
      const [inner, outer] = [lab.city(closed), lab.city(open)];
      const before = await untouched(rome);
      await firewall(inner, `tcp dport ${PORT} drop`);
      try {
        await Promise.all([inner.kill(), outer.kill()]);
        const began = performance.now();
        await Promise.all([inner.run(), outer.run()]);
        await until('the closed one has dialled', async () => {
          const [ours, theirs] = [await dialledBy(inner, outer), await dialledBy(outer, inner)];
          return ours === 'Us' && theirs === 'Them';
        });
        await peered();
        say(`${closed} behind a firewall: both directions after ${seconds(began)} s`);
        expect(await untouched(rome)).toEqual(before);
      } finally {
        await firewall(inner, undefined);
      }
    });
  });

  test('a peer that has another address is found again, and nothing is touched', async () => {
    const node = milan.cluster.node();
    const address = (last: number): string => milan.address.replace(/\d+$/, String(last));
    const [before, after] = [address(201), address(202)];
    await node.exec(['ip', 'addr', 'add', `${before}/24`, 'dev', 'eth0']);
    // Only rome can dial, and the address that it knows is wrong.
    await firewall(rome, `tcp dport ${PORT} drop`);
    await firewall(milan, `ip daddr ${milan.address} tcp dport ${PORT} reject with tcp reset`);
    try {
      await Promise.all([rome.kill(), milan.kill()]);
      await Promise.all([rome.run(), milan.run({ advertise: `${before}:${PORT}` })]);
      const endpoint = async (): Promise<string | undefined> =>
        (await rome.foreign(milan.id))?.status?.link?.endpoint;
      await until('the first address is dialled', async () => (await endpoint()) === `${before}:${PORT}`);
      await peered();
      const found = await untouched(rome);
      await node.exec(['ip', 'addr', 'add', `${after}/24`, 'dev', 'eth0']);
      await node.exec(['ip', 'addr', 'del', `${before}/24`, 'dev', 'eth0']);
      await milan.kill();
      const began = performance.now();
      await milan.run({ advertise: `${after}:${PORT}` });
      await until('the other address is dialled', async () => (await endpoint()) === `${after}:${PORT}`);
      say(`another address: linked again ${seconds(began)} s after the restart`);
      await peered();
      expect(await untouched(rome)).toEqual(found);
    } finally {
      for (const city of [rome, milan]) await firewall(city, undefined);
    }
  });

  describe('with somebody who means harm', () => {
    test('another ID under the name of a peer gets nothing, and a spoofed endpoint is found out', async () => {
      for (const city of [rome, milan]) {
        const clusterIDs = [city === rome ? milan.id : rome.id];
        const body = { spec: { peers: { clusterIDs, anyone: null } } };
        await city.client.patch(acceptancePolicies, { name: 'all' }, { type: 'merge', body });
        await city.client.patch(sharingPolicies, { name: 'all' }, { type: 'merge', body });
      }
      await milan.terminate();
      await mallory.borrow();
      await mallory.lend();
      await mallory.run({ 'cluster-name': 'milan' });
      const stranger = await until('mallory is seen', async () => {
        const seen = await rome.foreign(mallory.id);
        return seen?.status?.outgoing?.reason !== undefined && seen;
      });
      expect(stranger.status?.outgoing).toMatchObject({ phase: 'None', reason: 'NoPolicyMatches' });
      await mallory.inPhase(rome.id, 'outgoing', 'Denied').catch(() => undefined);

      // As milan, at mallory's endpoint.
      const packet = announcementPacket({ id: milan.id, address: mallory.address, name: 'milan' });
      const script = new URL('../support/network/udp-send.ts', import.meta.url).pathname;
      const send = async (): Promise<string> =>
        mallory.cluster.node().exec([process.execPath, script], {
          stdin: JSON.stringify({
            from: mallory.address,
            via: mallory.address,
            packets: [packet.toString('base64')],
          }),
        });
      await send();
      const spoofed = await until('it is found out', async () => {
        const seen = await rome.foreign(milan.id);
        return rome.condition(seen, 'IdentityVerified')?.reason === 'WrongIdentity' && seen;
      });
      expect(rome.condition(spoofed, 'IdentityVerified')).toMatchObject({
        status: 'False',
        message: expect.stringContaining(`${mallory.address}:${PORT} is ${mallory.id}, not ${milan.id}`),
      });
      expect(await isLinked(rome, milan)).toBe(false);
      const warnings = rome.logged(
        ({ message, problem }) => message.includes('cannot link') && problem === 'WrongIdentity',
      );
      expect(warnings).toHaveLength(1);
      const made = await rome.made(mallory.id);
      expect({ ...made, foreignClusters: [] }).toEqual({
        foreignClusters: [],
        advertisements: [],
        requests: made['requests'],
        virtualNodes: [],
        tenants: [],
        accounts: [],
      });
      // The real cluster comes back nevertheless.
      await milan.run();
      await peered();
      await mallory.kill();
    });

    test(`${ATTACKS} malformed and oversized attempts are refused, and cost nothing`, async () => {
      const { Identity } = await import('../../src/peering/identity/identity.ts');
      const { issueLeaf } = await import('../../src/peering/identity/certificate.ts');
      const { attack } = await import('./support/peering-attack.ts');
      const leaf = async (): Promise<KeyPair> =>
        issueLeaf(Identity.generate(), { nowMs: Date.now(), lifeMs: 3_600_000 });
      const [stranger, other, third] = [await leaf(), await leaf(), await leaf()];
      const [own = ''] = other.certificate.split(/(?<=-----END CERTIFICATE-----)\n/);
      const behind = third.certificate.split(/(?<=-----END CERTIFICATE-----)\n/)[1] ?? '';
      const forged = { certificate: `${own}\n${behind}`, key: other.key };
      const victim = { host: rome.address, port: PORT, stranger, forged };
      const linked = (await rome.foreign(milan.id))?.status?.link?.since;
      const lines = (): number => rome.logged(({ level }) => level !== 'debug').length;
      // What a program needs once for each kind of connection.
      await attack(victim, 200, 1);
      const before = { ...rome.use(), lines: lines() };
      const began = performance.now();
      await attack(victim, ATTACKS, 2);
      const took = seconds(began);
      await until('descriptors are given back', async () => rome.use().descriptors <= before.descriptors + 4);
      const after = { ...rome.use(), lines: lines() };
      say(
        `${ATTACKS} attempts in ${took} s: RSS ${before.rssMib.toFixed(0)} → ${after.rssMib.toFixed(0)} MiB, ` +
          `descriptors ${before.descriptors} → ${after.descriptors}, ${after.lines - before.lines} lines logged`,
      );
      expect(after.rssMib - before.rssMib).toBeLessThan(64);
      expect(after.lines - before.lines).toBeLessThan(100);
      expect(rome.isRunning).toBe(true);
      expect((await rome.foreign(milan.id))?.status?.link).toMatchObject({ connected: true, since: linked });
      await peered();
      expect((await rome.client.list(foreignClusters)).items.length).toBeLessThan(10);
    });
  });
});

const seconds = (since: number): string => ((performance.now() - since) / 1000).toFixed(2);
