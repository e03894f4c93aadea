import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CLUSTER_MODE, type ClusterMode, clusterModes } from '../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { TAINT_DEVICE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { deployments, namespaces, nodes, pods } from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { Bodies } from './support/bodies.ts';
import { Laptop } from './support/laptop.ts';
import { longOnly } from '../support/long.ts';
import {
  type City,
  type LogLine,
  PeeringLab,
  peeringLabProblem,
  say,
  until,
} from '../support/labs/peering-lab.ts';

/** A tethered laptop that sleeps for eight hours, wakes elsewhere, and finds the company gone for a while. */

const testLong = longOnly('a laptop without its company, and one that stops', test);
const MINUTE_MS = 60_000;
/**
 * Dials of one minute of the peering endpoint: eleven for the link, with the shortest waits that are possible, and one by those who
 * ask for the API server over there. They try it at its own address as well: every two to four seconds until another way is found,
 * and every ten seconds to see whether it is back.
 */
const MOST_DIALS = 12;
const MOST_OTHERS = 15;
const VERSION = 'tributary.dev/v1alpha1';
/** Names of those that nothing removes. */
const patient = ['there', 'back', 'companys'];

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`laptops are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('a tethered laptop', () => {
  let lab: PeeringLab;
  /** The laptop. */
  let rome: City;
  /** The company. */
  let milan: City;
  let laptop: Laptop;
  let bodies: Bodies;

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    laptop = new Laptop(lab, rome, milan);
    await laptop.close();
    // API servers show the time of the machine, and nobody can change that. So both programs begin eight hours before, and come to
    // the right time while the laptop sleeps: as in a real sleep, certificates, tokens and times of theirs are then eight hours old.
    // Both, since the company's day passes as well: they refuse a peer whose clock is an hour ahead.
    laptop.setClocks(-8);
    await rome.run({}, { ...laptop.program, kubeconfig: await laptop.account() });
    await milan.run({}, laptop.program);
    const everyone = { peers: { anyone: true as const }, approval: 'Automatic' as const };
    await milan.client.create(sharingPolicies, {
      apiVersion: VERSION,
      kind: 'SharingPolicy',
      metadata: { name: 'devices' },
      spec: { ...everyone, tethering: 'Allow' },
    });
    await rome.client.create(namespaces, { metadata: { name: 'shop' } });
    await milan.client.create(namespaces, { metadata: { name: 'works' } });
    await rome.client.create(foreignClusters, {
      apiVersion: VERSION,
      kind: 'ForeignCluster',
      metadata: { name: 'company' },
      spec: { clusterID: milan.id, endpoint: milan.process.endpoint },
    });
    await want({ cluster: 'company', lostAfterSeconds: 30 });
    await inPhase('Tethered');
    bodies = await Bodies.watch(lab.cities, ['rome', 'milan']);
  });
  afterAll(async () => {
    await bodies?.stop();
    await laptop?.restore();
    await lab?.down();
  });

  const want = async (tether: object): Promise<void> =>
    void (await until('the mode is there', async () =>
      rome.client
        .patch(clusterModes, { name: CLUSTER_MODE }, { type: 'merge', body: { spec: { tether } } })
        .catch(() => undefined),
    ));
  const mode = async (): Promise<ClusterMode> => rome.client.get(clusterModes, { name: CLUSTER_MODE });
  const inPhase = async (phase: string): Promise<ClusterMode> => {
    let last: ClusterMode | undefined;
    try {
      return await until(
        `the mode is ${phase}`,
        async () => {
          last = await mode();
          return last.status?.phase === phase ? last : undefined;
        },
        90_000,
      );
    } catch (cause) {
      const tail = rome.process.log.split('\n').slice(-15).join('\n');
      throw new Error(`${String(cause)}\n${JSON.stringify(last?.status)}\n${tail}`, { cause });
    }
  };
  const isReady = async (city: City, node: string): Promise<boolean> => {
    const { status } = await city.client.get(nodes, { name: node });
    return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  };
  const isLinked = async (): Promise<boolean> =>
    (await milan.foreign(rome.id))?.status?.link?.connected === true;
  /** How often it has taken back control. */
  const losses = async (): Promise<string[]> =>
    (await rome.eventsAbout(CLUSTER_MODE)).filter((line) => line.includes('Lost'));
  /** What users see of the patient ones: each pod of theirs, and how often it began anew. */
  const asked = async (): Promise<string[]> => {
    const seen = [
      ...(await rome.client.list(pods, { namespace: 'shop' })).items,
      ...(await milan.client.list(pods, { namespace: 'works' })).items,
    ];
    return seen
      .filter(({ metadata: { name } }) => patient.some((one) => name.startsWith(one)))
      .map(({ metadata: { name, uid }, status }) => {
        const restarts = (status?.containerStatuses ?? []).map(({ restartCount }) => restartCount);
        return `${name} ${uid} ${status?.phase} ${restarts.join()}`;
      });
  };

  const seesAgain = async (seen: readonly string[]): Promise<void> => {
    let now: string[] = [];
    await until('users see what they saw', async () => {
      now = await asked();
      return String(now) === String(seen);
    }).catch(() => expect(now).toEqual(seen));
  };

  const deploy = async (name: string, tolerations: object[] = []): Promise<void> => {
    const labels = { app: name };
    const containers = [{ name: 'main', image: 'example/none:1' }];
    await rome.client.create(deployments, {
      metadata: { namespace: 'shop', name },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers, tolerations } },
      },
    });
  };
  const runsAt = async (name: string, city: City): Promise<void> => {
    try {
      await until(`${name} runs in ${city.name}`, async () =>
        Promise.resolve(bodies.running(name).some(({ at }) => at.startsWith(city.name))),
      );
    } catch (cause) {
      const found = [rome, milan].map(async ({ name: where, client }) =>
        (await client.list(pods)).items
          .filter(({ metadata }) => metadata.name.startsWith(name))
          .map(({ metadata, spec, status }) => JSON.stringify([where, metadata, spec?.nodeName, status])),
      );
      throw new Error(`${String(cause)}\n${(await Promise.all(found)).flat().join('\n')}`, { cause });
    }
  };

  test('runs what both ask for', async () => {
    await until('the namespace goes to the company', async () =>
      rome.client.get(namespaceOffloadings, { namespace: 'shop', name: 'offloading' }).catch(() => undefined),
    );
    const { items } = await milan.client.list(nodes);
    const own = items.find(({ metadata }) => metadata.name !== 'rome')?.metadata.name ?? '';
    const cordon = async (name: string, unschedulable: boolean): Promise<unknown> =>
      milan.client.patch(nodes, { name }, { type: 'merge', body: { spec: { unschedulable } } });
    await until('its node is ready', async () => isReady(milan, 'rome').catch(ignoring('NotFound')));
    await cordon('rome', true);
    await deploy('there');
    await runsAt('there', milan);
    await cordon('rome', false);
    await cordon(own, true);
    await deploy('back');
    // Those that nobody waits for: others wait for five minutes, which a night is longer than.
    const soon = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 };
    const lost = ['not-ready', 'unreachable'].map((key) => ({ ...soon, key: `node.kubernetes.io/${key}` }));
    await deploy('hasty', lost);
    await runsAt('back', rome);
    await runsAt('hasty', rome);
    await cordon(own, false);
    await milan.client.create(namespaceOffloadings, {
      apiVersion: VERSION,
      kind: 'NamespaceOffloading',
      metadata: { name: 'offloading', namespace: 'works' },
      spec: { podStrategy: 'Remote' },
    });
    await until('it is mapped', async () => {
      const ref = { namespace: 'works', name: 'offloading' };
      return (await milan.client.get(namespaceOffloadings, ref)).status?.clusters?.[0]?.phase === 'Ready';
    });
    await milan.client.create(pods, {
      metadata: { namespace: 'works', name: 'companys' },
      spec: {
        tolerations: [TAINT_DEVICE, TAINT_VIRTUAL_NODE].map((key) => ({ key, operator: 'Exists' })),
        containers: [{ name: 'main', image: 'example/none:1' }],
      },
    });
    await runsAt('companys', rome);
    await until(
      'their users see that they run',
      async () => (await asked()).filter((line) => line.includes('Running')).length === patient.length,
    );
  });

  test('comes back by itself after eight hours of sleep, at another address', async () => {
    const [before, seen] = [bodies.running(...patient), await asked()];
    const [hasty] = bodies.running('hasty');
    laptop.sleep();
    await until('the company has no link', async () => !(await isLinked()));
    await until('its node is not ready', async () => !(await isReady(milan, 'rome')));
    const told = ({ message }: LogLine): boolean => message === 'the presence of a home has changed';
    await until(
      'its Lease has lapsed',
      async () => Promise.resolve(milan.logged(told).some(({ reason }) => reason === 'HomeAway')),
      90_000,
    );
    await until('a pod on it is being removed', async () =>
      (await milan.client.list(pods)).items.some(
        ({ metadata }) => metadata.name === hasty?.name && metadata.deletionTimestamp !== undefined,
      ),
    );
    await laptop.move();
    laptop.setClocks(0);
    const [dialled, woke] = [await laptop.dials(), performance.now()];
    laptop.wake();
    await until('there is a link', isLinked);
    say(`linked ${seconds(woke)} s after it woke`);
    await until('its node is ready', async () => isReady(milan, 'rome'));
    await inPhase('Tethered');
    say(`its node is ready ${seconds(woke)} s after it woke`);
    // It was not there for the company any more, and ends on the laptop before it begins elsewhere.
    await until('the removed pod runs again, once', async () => {
      const [now, ...more] = bodies.running('hasty');
      return Promise.resolve(now !== undefined && now.uid !== hasty?.uid && more.length === 0);
    });
    await seesAgain(seen);
    expect(bodies.running(...patient)).toEqual(before);
    expect([...bodies.twice]).toEqual([]);
    // It never took back control: it had its time to dial.
    expect(await losses()).toEqual([]);
    const { links, others } = await laptop.since(dialled);
    say(`${links} dials of the peering endpoint, ${others} of other ports`);
    expect(links).toBeLessThanOrEqual(MOST_DIALS);
    expect(others).toBeLessThanOrEqual(MOST_OTHERS);
  });

  testLong(
    'a company that is away is dialled a few times a minute, and decides again when it is back',
    async () => {
      const [before, seen] = [bodies.running(...patient), await asked()];
      const [dialled, began] = [await laptop.dials(), performance.now()];
      await laptop.refuse();
      await inPhase('Lost');
      await new Promise((resolve) => setTimeout(resolve, MINUTE_MS - (performance.now() - began)));
      const { links, others } = await laptop.since(dialled);
      say(`a minute without the company: ${links} dials of the peering endpoint, ${others} of other ports`);
      expect(links).toBeLessThanOrEqual(MOST_DIALS);
      expect(others).toBeLessThanOrEqual(MOST_OTHERS);
      expect(bodies.running(...patient)).toEqual(before);
      const again = performance.now();
      await laptop.admit();
      await inPhase('Tethered');
      await until('its node is ready', async () => isReady(milan, 'rome'));
      say(`tethered again ${seconds(again)} s after the company was back`);
      await seesAgain(seen);
      // It may have been on the laptop again, and was removed again.
      await until('the hasty one runs, once', async () =>
        Promise.resolve(bodies.running('hasty').length === 1),
      );
      expect(bodies.running(...patient)).toEqual(before);
      expect([...bodies.twice]).toEqual([]);
    },
  );

  testLong(
    'with RunLocally the company stops what was forwarded while it sleeps, and takes it again',
    async () => {
      await want({ whenLost: 'RunLocally', stopSeconds: 10, marginSeconds: 5 });
      await until('the company holds itself to it', async () => (await mode()).status?.tether?.fence);
      const staying = bodies.running('back', 'companys');
      const [there] = bodies.running('there');
      const lost = await losses();
      laptop.sleep();
      const isFenced = async (): Promise<boolean> =>
        (await milan.client.get(peeringRequests, { name: rome.id })).status?.reason === 'Fenced';
      await until('the company stops it', isFenced, 90_000);
      await until('it has stopped', async () => Promise.resolve(bodies.running('there').length === 0));
      const woke = performance.now();
      laptop.wake();
      // The company has taken its account away, and the laptop asks for a token of the new one now and then.
      await until(
        'it runs again, once',
        async () => {
          const [now, ...more] = bodies.running('there');
          return Promise.resolve(now !== undefined && now.uid !== there?.uid && more.length === 0);
        },
        120_000,
      );
      say(`it runs again ${seconds(woke)} s after it woke`);
      expect(bodies.running('back', 'companys')).toEqual(staying);
      expect([...bodies.twice]).toEqual([]);
      expect(await losses()).toEqual(lost);
    },
  );
});

const seconds = (began: number): string => ((performance.now() - began) / 1000).toFixed(1);
