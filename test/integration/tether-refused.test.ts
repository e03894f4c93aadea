import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { RunError } from '../../lab/run.ts';
import { CLUSTER_MODE, type ClusterMode, clusterModes } from '../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { LABEL_DISCOVERED } from '../../src/api/names.ts';
import { sharingPolicies, type SharingPolicySpec } from '../../src/api/sharing-policy.ts';
import { type City, PeeringLab, peeringLabProblem, until } from '../support/labs/peering-lab.ts';

/** `tributary tether` where it cannot be: it says why, and leaves everything as it was, in all clusters. */

const VERSION = 'tributary.dev/v1alpha1';

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`refused tethers are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('a tether that cannot be', () => {
  let lab: PeeringLab;
  /** The device. */
  let rome: City;
  /** The company. */
  let milan: City;
  let turin: City;

  beforeAll(async () => {
    lab = await PeeringLab.up('refused', [{ name: 'rome' }, { name: 'milan' }, { name: 'turin' }]);
    [rome, milan, turin] = lab.cities as [City, City, City];
    await Promise.all(lab.cities.map(async (city) => city.run()));
    for (const city of lab.cities) {
      for (const other of others(city)) {
        const spec = { clusterID: other.id, endpoint: other.process.endpoint };
        const metadata = { name: other.name };
        await city.client.create(foreignClusters, {
          apiVersion: VERSION,
          kind: 'ForeignCluster',
          metadata,
          spec,
        });
      }
    }
    for (const city of lab.cities) for (const other of others(city)) await known(city, other);
  });
  afterAll(async () => lab?.down());

  const others = (city: City): City[] => lab.cities.filter((one) => one !== city);
  /** Proved its identity, over a link. */
  const known = async (city: City, other: City): Promise<unknown> =>
    until(
      `${city.name} knows ${other.name}`,
      async () => {
        const { status } = await city.client.get(foreignClusters, { name: other.name });
        return status?.link?.connected === true && status.clusterID === other.id;
      },
      60_000,
    ).catch(async (error: unknown) => {
      const { items } = await city.client.list(foreignClusters);
      throw new Error(`${String(error)}: ${JSON.stringify(items)}`, { cause: error });
    });

  /** What a person is told by a command that fails. */
  async function refused(city: City, args: readonly string[], stdin?: string): Promise<string> {
    const command = city.tributary(args, stdin);
    const printed = await command.then(
      (text) => Promise.reject(new Error(`it was not refused: ${text}`)),
      (error: unknown) => (error as RunError).printed,
    );
    return printed;
  }

  /** All objects of all clusters, with what people want of other clusters. */
  async function everything(cities: readonly City[] = lab.cities): Promise<string[]> {
    const all = await Promise.all(
      cities.map(async (city) => {
        const { items } = await city.client.list(foreignClusters);
        // Those that discovery makes come and go.
        const wanted = items
          .filter(({ metadata }) => metadata.labels?.[LABEL_DISCOVERED] === undefined)
          .map(({ metadata, spec }) => `foreignclusters ${metadata.name} ${JSON.stringify(spec)}`);
        const others = (await city.inventory()).filter((one) => !one.startsWith('foreignclusters '));
        return [...others, ...wanted].map((one) => `${city.name}: ${one}`);
      }),
    );
    return all.flat();
  }

  /** Everything is as before, once all that was begun has ended. */
  async function unchanged(work: () => Promise<void>, cities: readonly City[] = lab.cities): Promise<void> {
    const before = await everything(cities);
    await work();
    let differs: string[] = [];
    await until('all is as before', async () => {
      const now = await everything(cities);
      differs = [
        ...now.filter((one) => !before.includes(one)).map((one) => `more: ${one}`),
        ...before.filter((one) => !now.includes(one)).map((one) => `less: ${one}`),
      ];
      return differs.length === 0;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${differs.join(', ')}`, { cause: error });
    });
  }

  const mode = async (city: City): Promise<ClusterMode> =>
    city.client.get(clusterModes, { name: CLUSTER_MODE });
  const phase = async (city: City): Promise<string | undefined> => (await mode(city)).status?.phase;
  const lend = async (city: City, spec: Partial<SharingPolicySpec>): Promise<void> => city.lend(spec);
  const lendNoMore = async (city: City): Promise<void> =>
    city.client.delete(sharingPolicies, { name: 'all' });

  test('to one that nobody knows, or with options that make no sense', async () => {
    await unchanged(async () => {
      expect(await refused(rome, ['tether', 'nowhere'])).toMatch(
        /no ForeignCluster has the name or ClusterID "nowhere"/,
      );
      expect(await refused(rome, ['tether'])).toMatch(/see: tributary tether --help/);
      expect(await refused(rome, ['tether', 'milan', '--lost-after', '5s'])).toMatch(
        /"5s" is not a duration from 10s to 7d/,
      );
      expect(await refused(rome, ['tether', 'milan', '--lost-after', 'soon'])).toMatch(/not a duration/);
      expect(await refused(rome, ['tether', 'milan', '--after-loss', 'Wait'])).toMatch(
        /must be one of Retether, Autonomous/,
      );
      expect(await refused(rome, ['tether', 'milan', '--token', '-'], '\n')).toMatch(
        /standard input, which is empty/,
      );
      expect(await refused(rome, ['tether', 'milan', '--token', 'secret'])).toMatch(/not of the form/);
      const [token = ''] =
        (await turin.tributary(['token', 'create', '--name', 'wrong'])).match(/\S+\.wrong\.\S+/) ?? [];
      expect(await refused(rome, ['tether', 'milan', '--token', '-'], token)).toMatch(
        /Nothing was changed: the token is of cluster/,
      );
      await turin.tributary(['token', 'delete', 'wrong']);
    });
  });

  test('to itself', async () => {
    await unchanged(async () => {
      const spec = { clusterID: rome.id, endpoint: rome.process.endpoint };
      const me = { apiVersion: VERSION, kind: 'ForeignCluster', metadata: { name: 'me' }, spec };
      await rome.client.create(foreignClusters, me);
      expect(await refused(rome, ['tether', 'me'])).toMatch(
        /Nothing was changed: me is this cluster, which cannot be tethered to itself/,
      );
      await rome.client.delete(foreignClusters, { name: 'me' });
    });
  });

  test('without the consent of the other cluster', async () => {
    await unchanged(async () => {
      await lend(milan, {});
      expect(await refused(rome, ['tether', 'milan'])).toMatch(
        /does not allow it to be tethered[^]*stays autonomous/,
      );
      expect(await phase(rome)).toBe('Autonomous');
      await lendNoMore(milan);
    });
  });

  test('with a token that another one has used', async () => {
    await unchanged(async () => {
      await lend(milan, { approval: 'Token', tethering: 'Allow' });
      const [token = ''] =
        (await milan.tributary(['token', 'create', '--name', 'once'])).match(/\S+\.once\.\S+/) ?? [];
      const tether = ['tether', 'milan', '--token', '-', '--keep-for', '0s'];
      expect(await turin.tributary(tether, token)).toMatch(/Tethered in/);
      expect(await refused(rome, ['tether', 'milan', '--token', '-'], token)).toMatch(/used/);
      expect(await turin.tributary(['untether'])).toMatch(/Ended/);
      await lendNoMore(milan);
      await milan.tributary(['token', 'delete', 'once']);
      // It was tethered, and keeps its token and what the company had there.
    }, [rome, milan]);
  });

  test('twice, or to one that is tethered itself', async () => {
    await unchanged(async () => {
      for (const city of lab.cities) await lend(city, { tethering: 'Allow' });
      // What the device keeps of the company for a while would hide what is left.
      const body = { spec: { tether: { cluster: 'milan', keepForSeconds: 0 } } };
      await rome.client.patch(clusterModes, { name: CLUSTER_MODE }, { type: 'merge', body });
      expect(await rome.tributary(['tether', 'milan'])).toMatch(/Tethered in/);
      expect(await rome.tributary(['tether', 'milan', '--lost-after', '1h'])).toMatch(/Tethered in/);
      expect(await refused(rome, ['tether', 'turin'])).toMatch(
        /tethered to .*end that first with: tributary untether/,
      );
      expect(await refused(turin, ['tether', 'rome'])).toMatch(/tethered to .*and lends to no other cluster/);
      expect(await refused(milan, ['tether', 'rome'])).toMatch(/rome is tethered to this cluster/);
      expect(await phase(rome)).toBe('Tethered');
      expect(await rome.tributary(['untether'])).toMatch(/Ended/);
      for (const city of lab.cities) await lendNoMore(city);
    });
  });

  test('while it offers to another one', async () => {
    await lend(milan, { tethering: 'Allow' });
    await lend(rome, {});
    await turin.borrow();
    await until('turin uses rome', async () => {
      const { status } = await turin.client.get(foreignClusters, { name: rome.name });
      return status?.outgoing?.phase === 'Established' && (await turin.nodeReady(rome.id));
    });
    const before = await everything();
    const said = await refused(rome, ['tether', 'milan']);
    const [, way = ''] = /end that with: tributary (unpeer \S+ --incoming)/.exec(said) ?? [];
    expect(way).not.toBe('');
    await until('nothing is half done', async () => (await everything()).join() === before.join());
    expect((await turin.client.get(foreignClusters, { name: rome.name })).status?.outgoing?.phase).toBe(
      'Established',
    );
    await rome.tributary(way.split(' '));
    expect(await rome.tributary(['tether', 'milan'])).toMatch(/Tethered in/);
  });

  test('but to one that a person has ended before by force', async () => {
    expect(await rome.tributary(['untether'])).toMatch(/Ended/);
    await rome.tributary(['unpeer', 'milan', '--force']);
    const tether = { cluster: 'milan', keepForSeconds: 0 };
    const patch = { type: 'merge', body: { spec: { tether } } } as const;
    await rome.client.patch(clusterModes, { name: CLUSTER_MODE }, patch);
    await until('it says so', async () => {
      const { conditions: [said] = [] } = (await mode(rome)).status ?? {};
      return said?.reason === 'Disabled' && said.message.includes('tributary tether milan');
    });
    expect(await rome.tributary(['tether', 'milan'])).toMatch(
      /said not to peer\. It no longer does[^]*Tethered in/,
    );
    const { spec, metadata } = await rome.client.get(foreignClusters, { name: 'milan' });
    expect(spec).toMatchObject({ outgoing: 'Auto', incoming: 'Auto' });
    expect(metadata.annotations ?? {}).toEqual({});
    expect(await rome.tributary(['untether'])).toMatch(/Ended/);
  });
});
