import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type ClusterMode, clusterModes, type TetherSpec } from '../../src/api/cluster-mode.ts';
import type { PeeringPhase } from '../../src/api/foreign-cluster.ts';
import { namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import { namespaces, type ResourceType } from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { KubeObject } from '../../src/api/wire.ts';
import { type City, PeeringLab, peeringLabProblem, until } from '../support/labs/peering-lab.ts';
import { short } from '../support/long.ts';
import { whatIsTorn } from '../support/peering/torn-mode.ts';
import { chanceOf, repeatCommand, testSeed } from '../support/seed.ts';
import { TetherPair } from './support/tether-pair.ts';
import { type Write, WriteWatch } from './support/write-watch.ts';

/**
 * Whole processes over real API servers are killed while one tethers itself to the other, and again while that ends: at every moment
 * that is named here in the long run, and at some by a seed in each run. test/unit/peering/mode/killed.test.ts kills at every write.
 */

/** What the device keeps of the company for a while would hide what is left. */
const TETHER: TetherSpec = { cluster: 'company', keepForSeconds: 0 };
const MORE_KINDS = [clusterModes, sharingPolicies, namespaceOffloadings] as ResourceType<KubeObject>[];

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`kills of tethers are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

const DEVICE = 'rome';
const COMPANY = 'milan';
type Test = (write: Write) => boolean;
type Point = readonly [what: string, killed: string, test: Test];

const ORDER: readonly PeeringPhase[] = ['None', 'Pending', 'Offered', 'Accepted', 'Established'];
const reaches =
  (city: string, direction: 'outgoing' | 'incoming', phase: PeeringPhase): Test =>
  (write) =>
    write.city === city &&
    write.kind === 'ForeignCluster' &&
    ORDER.indexOf(write.phases?.[direction] ?? 'None') >= ORDER.indexOf(phase);
const writes =
  (city: string, type: Write['type'], kind: string): Test =>
  (write) =>
    write.city === city && write.kind === kind && write.type === type;
const says =
  (phase: string): Test =>
  ({ city, kind, object }) =>
    city === DEVICE && kind === 'ClusterMode' && (object as ClusterMode).status?.phase === phase;
const ends =
  (city: string, kind: string): Test =>
  (write) =>
    write.city === city &&
    write.kind === kind &&
    (write.type === 'DELETED' || write.object.metadata.deletionTimestamp !== undefined);

const BOTH = `${DEVICE} ${COMPANY}`;
/** Each moment, with those who are killed then. */
const ENTER: readonly Point[] = [
  ['the device says that it enters', DEVICE, says('Entering')],
  ['the device has made the policy', BOTH, writes(DEVICE, 'ADDED', 'SharingPolicy')],
  ['the device has asked', COMPANY, reaches(DEVICE, 'outgoing', 'Pending')],
  ['the company has the request', DEVICE, writes(COMPANY, 'ADDED', 'PeeringRequest')],
  ['the device has an offer', BOTH, writes(DEVICE, 'ADDED', 'Advertisement')],
  ['the company has made the account', COMPANY, writes(COMPANY, 'ADDED', 'ServiceAccount')],
  ['the company has agreed', BOTH, reaches(COMPANY, 'incoming', 'Accepted')],
  ['the device has the credential', DEVICE, writes(DEVICE, 'ADDED', 'Secret')],
  ['the device has the node', COMPANY, writes(DEVICE, 'ADDED', 'VirtualNode')],
  ['the company has asked in return', BOTH, writes(DEVICE, 'ADDED', 'PeeringRequest')],
  ['the company has an offer', COMPANY, writes(COMPANY, 'ADDED', 'Advertisement')],
  ['the device has made the account', DEVICE, writes(DEVICE, 'ADDED', 'ServiceAccount')],
  ['the company has the credential', COMPANY, writes(COMPANY, 'ADDED', 'Secret')],
  ['the company has the node', BOTH, writes(COMPANY, 'ADDED', 'VirtualNode')],
  ['the device has both peerings', DEVICE, reaches(DEVICE, 'incoming', 'Established')],
  ['the device says that it is tethered', DEVICE, says('Tethered')],
  ['the device says so, and the company dies', COMPANY, says('Tethered')],
  ['a namespace is offloaded', BOTH, writes(DEVICE, 'ADDED', 'NamespaceOffloading')],
];
const END: readonly Point[] = [
  ['the device says that it ends', DEVICE, says('Ending')],
  ['the device says so, and the company dies', COMPANY, says('Ending')],
  ['the device has removed the policy', BOTH, ends(DEVICE, 'SharingPolicy')],
  ['a namespace is no longer offloaded', DEVICE, ends(DEVICE, 'NamespaceOffloading')],
  ['the device has withdrawn the account', COMPANY, ends(DEVICE, 'ServiceAccount')],
  ['the device has removed the node', DEVICE, ends(DEVICE, 'VirtualNode')],
  ['the device has forgotten the offer', BOTH, ends(DEVICE, 'Advertisement')],
  ['the company has removed the node', COMPANY, ends(COMPANY, 'VirtualNode')],
  ['the company has forgotten the offer', DEVICE, ends(COMPANY, 'Advertisement')],
  ['the company has withdrawn the account', BOTH, ends(COMPANY, 'ServiceAccount')],
  ['the company has ended the request', COMPANY, ends(COMPANY, 'PeeringRequest')],
  ['the device has ended the request', DEVICE, ends(DEVICE, 'PeeringRequest')],
];

const SEED = testSeed(20_261);
/** Each takes a whole tether. */
const ROUNDS = short('rounds of a tether in which processes are killed twice', {
  short: 2,
  long: ENTER.length,
});

/** One point of each list for each round: all of the longer list in the long run. */
function rounds(): [entering: string, ending: string, enter: Point, end: Point][] {
  const chance = chanceOf(SEED);
  const [first, second] = [chance.below(ENTER.length), chance.below(END.length)];
  return Array.from({ length: ROUNDS }, (_, index) => {
    const spread = Math.floor((index * ENTER.length) / ROUNDS);
    const enter = ENTER[(first + spread) % ENTER.length] as Point;
    const end = END[
      (second + Math.floor((index * END.length) / Math.min(ROUNDS, END.length))) % END.length
    ] as Point;
    return [`${enter[0]} (${enter[1]})`, `${end[0]} (${end[1]})`, enter, end];
  });
}

describeInLab('a tether whose sides are killed', () => {
  let lab: PeeringLab;
  let pair: TetherPair;
  let device: City;
  let company: City;
  /** Everything that exists without a tether, by city. */
  const bare = new Map<string, readonly string[]>();

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [device, company] = [lab.city(DEVICE), lab.city(COMPANY)];
    pair = await TetherPair.of(device, company);
    await pair.run();
    await pair.allow({ approval: 'Automatic', tethering: 'Allow', sharePercent: 50 });
    for (const city of lab.cities) await city.client.create(namespaces, { metadata: { name: 'shop' } });
    await pair.introduce();
    await pair.inPhase('Autonomous');
    await until('they are linked', async () => (await device.foreign(company.id))?.status?.link?.connected);
    for (const city of lab.cities) {
      await until(`${city.name} is furnished`, async () =>
        (await city.inventory()).includes('configmaps shop/kube-root-ca.crt'),
      );
      bare.set(city.name, await objects(city));
    }
  });
  afterAll(async () => {
    pair?.down();
    await lab?.down();
  });

  beforeEach(async () => {
    for (const city of lab.cities) if (!city.isRunning) pair.start(city);
    await pair.want(null);
    await isGone();
  });

  /** What people made, or what the cluster itself keeps, is no part of a tether. */
  const objects = async (city: City): Promise<string[]> =>
    (await city.inventory()).filter((object) => !object.startsWith('foreignclusters '));

  async function isAtRest(phase: 'Tethered' | 'Autonomous'): Promise<void> {
    const { status } = await pair.inPhase(phase);
    expect(status?.mode).toBe(phase);
    const peering: PeeringPhase = phase === 'Tethered' ? 'Established' : 'None';
    for (const [city, peer] of [
      [device, company],
      [company, device],
    ] as const) {
      await city.inPhase(peer.id, 'outgoing', peering);
      await city.inPhase(peer.id, 'incoming', peering);
    }
  }

  async function isWhole(): Promise<void> {
    await isAtRest('Tethered');
    const count = async (city: City, type: ResourceType<KubeObject>): Promise<number> =>
      (await city.client.list(type)).items.length;
    await until('the namespace goes to the company', async () => {
      const { items } = await device.client.list(namespaceOffloadings);
      return items.some(({ metadata }) => metadata.namespace === 'shop');
    });
    expect(await count(device, virtualNodes as ResourceType<KubeObject>)).toBe(1);
    expect(await count(company, virtualNodes as ResourceType<KubeObject>)).toBe(1);
    await until('the device is a node of the company', async () => company.nodeReady(device.id));
    await until('the company is a node of the device', async () => device.nodeReady(company.id));
    await until('the guards hold', async () =>
      /tethered to company/.test(
        await pair.at(device, 'label', 'node', await pair.realNodeOf(device), 'mine=yes'),
      ),
    );
  }

  async function isGone(): Promise<void> {
    await isAtRest('Autonomous');
    for (const city of lab.cities) {
      let differs: string[] = [];
      await until(
        `${city.name} is as it was`,
        async () => {
          const now = await objects(city);
          const before = bare.get(city.name) ?? [];
          differs = [
            ...now.filter((object) => !before.includes(object)).map((object) => `more: ${object}`),
            ...before.filter((object) => !now.includes(object)).map((object) => `less: ${object}`),
          ];
          return differs.length === 0;
        },
        120_000,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}: ${differs.join(', ')}\n${city.process.daemon.tail(20)}`);
      });
    }
  }

  /** Kills at the first such write after `begin`, starts again what was killed, and returns what the mode has said wrongly. */
  async function killedAt(
    [what, killed, isPoint]: Point,
    begin: () => Promise<void>,
    end: () => Promise<void>,
  ): Promise<void> {
    const victims = killed.split(' ').map((name) => lab.city(name));
    const watch = await WriteWatch.start(lab.cities, MORE_KINDS);
    const torn: string[] = [];
    try {
      watch.each(({ kind, object, type }) => {
        if (kind === 'ClusterMode' && type !== 'DELETED') torn.push(...whatIsTorn(object));
      });
      const reached = watch.first(isPoint);
      await begin();
      await reached;
      await Promise.all(victims.map(async (city) => city.kill()));
      for (const city of victims) pair.start(city);
      await end();
      expect(torn).toEqual([]);
    } catch (cause) {
      throw new Error(
        `killed ${killed} when ${what}: ${String(cause)}\nrepeated by: ${repeatCommand(SEED)}`,
        { cause },
      );
    } finally {
      await watch.stop();
    }
  }

  test.each(rounds())('entering: %s; ending: %s', async (_enter, _end, enter, end) => {
    await killedAt(enter, async () => pair.want(TETHER), isWhole);
    await killedAt(end, async () => pair.want(null), isGone);
  });
});
