import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LABEL_OFFLOAD } from '../../src/api/names.ts';
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  OFFLOADING_NAME,
} from '../../src/api/namespace-offloading.ts';
import { events, namespaces, pods } from '../../src/api/resources.ts';
import { acceptancePolicies } from '../../src/api/acceptance-policy.ts';
import type { Pod } from '../../src/api/wire.ts';
import { printYaml } from '../../src/cli/yaml.ts';
import { type City, PeeringLab, peeringLabProblem, say, until } from '../support/labs/peering-lab.ts';
import { applyYaml } from '../support/labs/rights-cluster.ts';
import { short } from '../support/long.ts';

/** Pods that come into being with their namespace, and pods that were there before, as whole processes over real API servers. */

const VERSION = 'tributary.dev/v1alpha1';
const FILES = short('files with a namespace and its pods', { short: 4, long: 25 });

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`the first moment is not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

const deployment = (namespace: string, name = 'web', labels = { app: name }): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace },
  spec: {
    replicas: 2,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        containers: [
          {
            name: 'main',
            image: 'example/none:1',
            envFrom: [{ configMapRef: { name: 'settings' } }],
            resources: { requests: { cpu: '5m', memory: '8Mi' } },
          },
        ],
      },
    },
  },
});
/** What people write into one file: the namespace first, and in it all that belongs to it. */
const fileOf = (namespace: string, offload: Record<string, string>): object[] => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: offload } },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace },
    data: { colour: 'blue' },
  },
  deployment(namespace),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
  },
];

const shown = (times: readonly number[]): string =>
  times
    .toSorted((one, other) => one - other)
    .map((ms) => (ms / 1000).toFixed(1))
    .join(', ');

describeInLab('the first moment of a namespace', () => {
  let lab: PeeringLab;
  let rome: City;
  let milan: City;

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    const spec = { peers: { anyone: true }, approval: 'Automatic' as const };
    const all = { apiVersion: VERSION, kind: 'AcceptancePolicy', metadata: { name: 'all' }, spec };
    await rome.client.create(acceptancePolicies, all);
    await milan.lend();
    await Promise.all([rome.run(), milan.run()]);
    await until('milan is a node of rome', async () => rome.nodeReady(milan.id));
  });
  afterAll(async () => lab?.down());

  const podsOf = async (namespace: string): Promise<Pod[]> =>
    (await rome.client.list(pods, { namespace })).items.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    );
  const isReady = ({ status }: Pod): boolean =>
    status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
  const isAbroad = ({ spec }: Pod): boolean => spec?.nodeName === 'milan';
  const offloading = async (namespace: string): Promise<NamespaceOffloading> =>
    rome.client.get(namespaceOffloadings, { namespace, name: OFFLOADING_NAME });
  const ready = async (namespace: string, reason: string): Promise<NamespaceOffloading> =>
    until(`${namespace} is ${reason}`, async () => {
      const found = await offloading(namespace).catch(() => undefined);
      const condition = found?.status?.conditions?.find(({ type }) => type === 'Ready');
      return condition?.reason === reason && found;
    });

  test(`one file with a namespace that is labelled Remote, ${FILES} times: all pods run abroad`, async () => {
    const times: number[] = [];
    const later: number[] = [];
    const where = { abroad: 0, home: 0 };
    for (let index = 0; index < FILES; index++) {
      const namespace = `file-${index}`;
      const timed = async (file: object[], count: number): Promise<[ms: number, pods: Pod[]]> => {
        const from = performance.now();
        await applyYaml(rome.cluster, printYaml(file));
        const found = await until(`${count} pods of ${namespace} are Ready`, async () => {
          const all = await podsOf(namespace);
          return all.length === count && all.every(isReady) && all;
        });
        return [performance.now() - from, found];
      };
      const [ms, found] = await timed(fileOf(namespace, { [LABEL_OFFLOAD]: 'Remote' }), 2);
      times.push(ms);
      for (const pod of found) where[isAbroad(pod) ? 'abroad' : 'home']++;
      // For comparison, in the namespace that now exists.
      later.push((await timed([deployment(namespace, 'more')], 4))[0]);
    }
    say(`${where.abroad} of ${FILES * 2} pods abroad; to Ready pods: ${shown(times)} s from the file`);
    say(`${shown(later)} s from a Deployment in the namespace that was there by then`);
    expect(where).toEqual({ abroad: FILES * 2, home: 0 });
    const { status } = await ready('file-0', 'AsExpected');
    expect(status?.podsAtHome).toBe(0);
  });

  test('meanwhile nobody was told to do something, and the agent did not complain about rights', async () => {
    const told = (await rome.client.list(events)).items.filter(({ involvedObject }) =>
      involvedObject.namespace?.startsWith('file-'),
    );
    const reasons = new Set(told.map(({ reason }) => reason));
    say(`events on the pods and their namespaces: ${[...reasons].join(', ')}`);
    expect(reasons).not.toContain('NamespaceNotOffloaded');
    expect(reasons).not.toContain('PodAtHome');
    const complaints = rome.logged(
      ({ message, level, ...line }) =>
        level === 'warn' && message === 'lost contact' && /forbidden/iu.test(String(line['error'])),
    );
    expect(complaints).toEqual([]);
    // A node that is not Ready for a moment would keep a whole application at home.
    const losses = rome.logged(
      ({ message, ok }) => message === 'contact with the foreign cluster has changed' && ok === false,
    );
    expect(losses).toEqual([]);
  });

  test('pods that were there before are counted, and moved one by one when the object says so', async () => {
    const namespace = 'before';
    await applyYaml(rome.cluster, printYaml(fileOf(namespace, {})));
    await until('two pods are Ready at home', async () => {
      const all = await podsOf(namespace);
      return all.length === 2 && all.every(isReady);
    });
    const metadata = { name: OFFLOADING_NAME, namespace };
    const spec = { podStrategy: 'Remote' as const };
    const body = { apiVersion: VERSION, kind: 'NamespaceOffloading', metadata, spec };
    await rome.client.create(namespaceOffloadings, body);
    const told = await ready(namespace, 'PodsAtHome');
    expect(told.status).toMatchObject({ podsAtHome: 2, clusters: [{ phase: 'Ready' }] });
    expect((await podsOf(namespace)).filter(isAbroad)).toEqual([]);

    const move = { type: 'merge', body: { spec: { existingPods: 'Move' } } } as const;
    await rome.client.patch(namespaceOffloadings, metadata, move);
    let least = 2;
    const areAbroad = async (): Promise<boolean> => {
      const serving = (await podsOf(namespace)).filter(isReady);
      least = Math.min(least, serving.length);
      return serving.length === 2 && serving.every(isAbroad);
    };
    // Nothing is moved in the first fifteen seconds, and then one after the other.
    await until('both are abroad', areAbroad, 180_000);
    // Never more than one of them is missing.
    expect(least).toBeGreaterThanOrEqual(1);
    const after = await ready(namespace, 'AsExpected');
    expect(after.status?.podsAtHome).toBe(0);
  });

  test('a label that comes off brings them home, and what it made is gone', async () => {
    const off = { type: 'merge', body: { metadata: { labels: { [LABEL_OFFLOAD]: null } } } } as const;
    await rome.client.patch(namespaces, { name: 'file-0' }, off);
    await until('its object is gone', async () =>
      offloading('file-0').then(
        () => false,
        () => true,
      ),
    );
    await until('its pods are Ready at home', async () => {
      const all = await podsOf('file-0');
      return all.length === 4 && all.every((pod) => isReady(pod) && !isAbroad(pod));
    });
  });
});
