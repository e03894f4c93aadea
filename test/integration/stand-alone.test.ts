import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { binaries } from '../../lab/binaries.ts';
import { mainModule } from '../../lab/own-program.ts';
import { setCable } from '../../lab/underlay.ts';
import type { ClusterMode } from '../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { type City, PeeringLab, peeringLabProblem, until } from '../support/labs/peering-lab.ts';

/** A cluster whose cable is out: it reaches its own API server, and nothing else. */

/** Several times what any loop of the program waits between two attempts, but for those that wait for minutes. */
const LONG_ENOUGH_MS = 30_000;

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`clusters alone are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('a cluster without any network', () => {
  let lab: PeeringLab;
  let rome: City;
  let kubectl: string;

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    rome = lab.city('rome');
    ({ kubectl } = await binaries(undefined, ['kubectl']));
    await cable('out');
    await start();
  });
  afterAll(async () => {
    if (rome !== undefined) await cable('in');
    await lab?.down();
  });

  const cable = async (state: 'in' | 'out'): Promise<void> =>
    setCable(lab.lab.spec, rome.cluster.node().spec, state);
  const start = async (): Promise<void> => {
    const before = rome.isRunning ? rome.started() : 0;
    rome.start();
    await until('it has started', async () => Promise.resolve(rome.started() > before));
  };
  /** From within: nobody else can ask. */
  const at = async (...args: string[]): Promise<string> =>
    rome.cluster.node().exec([kubectl, '--kubeconfig', rome.cluster.kubeconfig, ...args]);
  const tributary = async (...args: string[]): Promise<string> => {
    const main = mainModule();
    const said = ['sh', '-c', '"$@" 2>&1 || true', 'sh', process.execPath, main, ...args] as const;
    return rome.cluster.node().exec(['env', `KUBECONFIG=${rome.cluster.kubeconfig}`, ...said]);
  };
  const status = async (): Promise<NonNullable<ClusterMode['status']>> =>
    (JSON.parse(await at('get', 'clustermode', 'cluster', '-o', 'json')) as ClusterMode).status ?? {};
  const isAutonomous = async (): Promise<boolean> => {
    const { mode, phase } = await status();
    return mode === 'Autonomous' && phase === 'Autonomous';
  };
  const runs = async (replicas: number): Promise<void> => {
    await at('-n', 'shop', 'scale', 'deployment', 'web', `--replicas=${replicas}`);
    await at('-n', 'shop', 'rollout', 'status', 'deployment', 'web', '--timeout=60s');
  };
  /**
   * What has gone wrong since then, by how often it was logged. Not that its own API server answered late, which a busy machine
   * is enough for, where an informer has said it once.
   */
  const complaints = (since = 0): Record<string, number> => {
    const counts: Record<string, number> = {};
    const late = new Set<unknown>();
    for (const { level, logger, message, resource } of rome.logged(() => true).slice(since)) {
      if (level !== 'warn' && level !== 'error') continue;
      if (logger === 'tributary.informer' && message === 'lost contact' && !late.has(resource)) {
        late.add(resource);
        continue;
      }
      const key = `${String(logger)}: ${message}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  };
  const objects = async (): Promise<string> =>
    at(
      'get',
      'advertisements,namespaceoffloadings,peeringrequests,sharingpolicies,virtualnodes',
      '--all-namespaces',
      '--output=name',
    );

  test('is autonomous, runs what its users ask for, and complains about nothing', async () => {
    await until('it says so', isAutonomous);
    await at('create', 'namespace', 'shop');
    await at('-n', 'shop', 'create', 'deployment', 'web', '--image=example/none:1');
    await runs(2);
    await new Promise((resolve) => setTimeout(resolve, LONG_ENOUGH_MS));
    expect(complaints()).toEqual({});
    expect(await isAutonomous()).toBe(true);
    expect(await objects()).toBe('');
  });

  test('is not tethered to a cluster that it has never met, and is told so at once', async () => {
    const company = { ...common, spec: { clusterID: 'a'.repeat(26), endpoint: '172.30.0.9:7443' } };
    const manifest = JSON.stringify(company);
    const apply = [kubectl, '--kubeconfig', rome.cluster.kubeconfig, 'apply', '-f', '-'] as const;
    await rome.cluster.node().exec(apply, { stdin: manifest });
    expect(await tributary('tether', 'company', '--timeout', '10s')).toMatch(
      /no ForeignCluster company has proved its identity.*stays autonomous/s,
    );
    expect(await isAutonomous()).toBe(true);
    await at('delete', 'foreignclusters', 'company');
  });

  test('says that the one that it knows cannot be reached, runs on, and gives up when it is told', async () => {
    await cable('in');
    const milan = lab.city('milan');
    await milan.run();
    const spec = { clusterID: milan.id, endpoint: milan.process.endpoint };
    await rome.client.create(foreignClusters, { ...common, spec });
    await until('it is known', async () => (await rome.foreign(milan.id))?.status?.link?.connected === true);
    await milan.kill();
    await rome.kill();
    await cable('out');
    await start();
    const since = rome.logged(() => true).length;
    expect(await tributary('tether', 'company', '--timeout', '10s')).toMatch(
      /waiting for company: there is no link to it.*This cluster is not tethered after 10 s\. The role cluster goes on/s,
    );
    expect(await status()).toMatchObject({ mode: 'Autonomous', phase: 'Entering' });
    await runs(3);
    await new Promise((resolve) => setTimeout(resolve, LONG_ENOUGH_MS));
    for (const [what, times] of Object.entries(complaints(since))) expect([what, times]).toEqual([what, 1]);
    expect(await tributary('untether')).toMatch(/Ended/);
    expect(await isAutonomous()).toBe(true);
    expect(await objects()).toBe('');
    await runs(2);
  });
});

const common = {
  apiVersion: 'tributary.dev/v1alpha1',
  kind: 'ForeignCluster',
  metadata: { name: 'company' },
};
