import 'reflect-metadata';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { KubeObject } from '../../lab/kube-api.ts';
import { ANNOTATION_WHEN_AWAY, LABEL_NODE_TYPE, NODE_TYPE_VIRTUAL } from '../../src/api/names.ts';
import { namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import { nodes, pods } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { awaited } from '../support/eventually.ts';
import { NODE } from '../support/labs/agent-lab.ts';
import { AwayBed } from './support/away-bed.ts';

/**
 * What becomes of pods while their foreign cluster answers nothing: with the real controllers of Kubernetes, and under the rights of
 * role `cluster`. The tests follow each other.
 */

const GRACE_SECONDS = 10;
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const WAIT = { deadlineMs: 90_000 };

let bed: AwayBed;
beforeAll(async () => {
  bed = await AwayBed.up(GRACE_SECONDS);
  await bed.offload({ podStrategy: 'Remote', whenAway: { pods: 'Stay' } });
});
afterAll(async () => bed?.down());

const template = (app: string, spec: object = {}): object => ({
  metadata: { labels: { app } },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'web:1' }], ...spec },
});
const inShop = (name: string): { name: string; namespace: string } => ({ name, namespace: 'shop' });
const deployment = (app: string): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: inShop(app),
  spec: { replicas: 2, selector: { matchLabels: { app } }, template: template(app) },
});
const service = (app: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: inShop(app),
  spec: { selector: { app }, ports: [{ port: 80 }] },
});
const STATEFUL_SET: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: inShop('db'),
  spec: {
    serviceName: 'db',
    replicas: 1,
    selector: { matchLabels: { app: 'db' } },
    template: template('db'),
  },
};
const JOB: KubeObject = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: inShop('sum'),
  spec: { template: template('sum', { restartPolicy: 'Never' }) },
};
const BARE = {
  apiVersion: 'v1',
  kind: 'Pod',
  ...(template('bare') as Pick<Pod, 'spec'>),
  metadata: { ...inShop('bare'), labels: { app: 'bare' } },
};

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
const isThere = ({ spec }: Pod): boolean => spec?.nodeName === NODE;
const uids = (all: readonly Pod[]): string[] => all.map(({ metadata }) => metadata.uid).toSorted();

/** Waits until so many pods are Ready, all of them there or all of them here. */
const run = async (app: string, count: number, there: boolean): Promise<Pod[]> =>
  awaited(
    `${count} pods of ${app} run ${there ? 'over there' : 'at home'}`,
    async () => {
      const found = await bed.pods(app);
      return found.length === count && found.every((pod) => isReady(pod) && isThere(pod) === there) && found;
    },
    { ...WAIT, seen: async () => (await bed.pods(app)).map(({ spec, status }) => ({ spec, status })) },
  );

/** Of not-ready and unreachable: for how many seconds; undefined: without end. */
const stayOf = ({ spec }: Pod): unknown[] =>
  (spec?.tolerations ?? [])
    .filter(({ key = '' }) => /^node.kubernetes.io.(not-ready|unreachable)$/u.test(key))
    .map(({ tolerationSeconds }) => tolerationSeconds);

async function cutOff(): Promise<void> {
  bed.cut();
  await awaited('the Node is not Ready', async () => !(await bed.isNodeReady()), WAIT);
}

async function healed(): Promise<void> {
  bed.heal();
  await awaited('the Node is Ready', async () => bed.isNodeReady(), WAIT);
}

const versions = async (): Promise<string[]> => {
  const { metadata } = await bed.lab.home.get(nodes, { name: NODE });
  const all = [...(await bed.lab.pods('home')).map((pod) => pod.metadata), metadata];
  return all.map(({ name, resourceVersion }) => `${name} ${resourceVersion}`).toSorted();
};

test('a gap that is shorter than the time of grace changes nothing', async () => {
  const objects = [deployment('web'), service('web'), STATEFUL_SET, JOB];
  for (const object of objects) await bed.lab.homeCluster.api.apply(object);
  await bed.lab.home.create<Pod>(pods, BARE);
  for (const [app, count] of [
    ['web', 2],
    ['db', 1],
    ['sum', 1],
    ['bare', 1],
  ] as const) {
    await run(app, count, true);
  }
  await awaited('endpoints are ready', async () => (await bed.readyEndpoints('web')) === 2, WAIT);
  const before = await versions();
  const silenced = (): number => bed.lab.proxy.counts.get('silence') ?? 0;
  const hung = silenced();
  bed.cut();
  await awaited('a probe has hung', () => silenced() > hung, WAIT);
  bed.heal();
  await awaited('probes pass again', () => bed.passed > 3, WAIT);
  expect(await versions()).toEqual(before);
  expect(await bed.isNodeReady()).toBe(true);
});

test('Stay: all stay, endpoints are not ready meanwhile, and everything goes on when contact is back', async () => {
  const before = { bodies: await bed.bodies(), pods: uids(await bed.lab.pods('home')) };
  const since = systemClock.monotonic();
  bed.cut();
  await awaited('no endpoint is ready', async () => (await bed.readyEndpoints('web')) === 0, WAIT);
  const seconds = (systemClock.monotonic() - since) / 1000;
  await awaited('the Node is not Ready', async () => !(await bed.isNodeReady()), WAIT);
  console.log(`endpoints were not ready ${seconds.toFixed(1)} s after the cut; grace ${GRACE_SECONDS} s`);
  await awaited(
    'all stay without end',
    async () => {
      const all = await bed.lab.pods('home');
      return all.every((pod) => stayOf(pod).length === 2 && stayOf(pod).every((one) => one === undefined));
    },
    { ...WAIT, seen: async () => (await bed.lab.pods('home')).map(stayOf) },
  );
  await awaited(
    'it is told of those that stay in any case',
    async () => {
      const told = await bed.told();
      const stay = told.filter((one) => one.startsWith('StaysWhileAway'));
      return stay.length === 3 && stay.some((one) => one.endsWith(' db-0'));
    },
    { ...WAIT, seen: async () => bed.told() },
  );
  expect(uids(await bed.lab.pods('home'))).toEqual(before.pods);
  await healed();
  await awaited('endpoints are ready', async () => (await bed.readyEndpoints('web')) === 2, WAIT);
  expect(await bed.bodies()).toEqual(before.bodies);
  expect(uids(await bed.lab.pods('home'))).toEqual(before.pods);
});

test('a policy that is changed meanwhile: Move goes wherever there is place, and what must not run twice stays', async () => {
  const others = async (): Promise<string[]> => [
    ...uids(await bed.pods('db')),
    ...uids(await bed.pods('sum')),
    ...uids(await bed.pods('bare')),
  ];
  const [stayed, old] = [await others(), uids(await bed.pods('web'))];
  await cutOff();
  await bed.change({ podStrategy: 'LocalAndRemote', whenAway: { pods: 'Move', afterSeconds: 1 } });
  const moved = await run('web', 2, false);
  expect(uids(moved).filter((uid) => old.includes(uid))).toEqual([]);
  expect(await others()).toEqual(stayed);
  // Their bodies may still run, so their objects stay until contact is back.
  const ending = (await bed.lab.pods('home')).filter(({ metadata }) => old.includes(metadata.uid));
  expect(ending.map(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([true, true]);
  await healed();
  await awaited('the old ones have ended', async () => (await bed.bodies()).length === 3, {
    ...WAIT,
    seen: async () => bed.bodies(),
  });
  await awaited('and are gone', async () => (await bed.lab.pods('home')).length === 5, WAIT);
  expect(uids(await bed.pods('web'))).toEqual(uids(moved));
  expect(await others()).toEqual(stayed);
});

test('Home: replacements stay on real nodes, also in a namespace that is Remote; a person lets a StatefulSet go', async () => {
  await bed.change({
    podStrategy: 'Remote',
    holdOffSeconds: 600,
    whenAway: { pods: 'Move', afterSeconds: 1, to: 'Home' },
  });
  await bed.lab.homeCluster.api.apply(deployment('api'));
  await run('api', 2, true);
  const [db] = uids(await bed.pods('db'));
  await cutOff();
  await run('api', 2, false);
  const { status } = await bed.lab.home.get(namespaceOffloadings, inShop('offloading'));
  expect(status?.heldOff?.map(({ owner, virtualNode }) => `${owner} ${virtualNode}`)).toEqual([`* ${NODE}`]);
  await awaited(
    'it is told of the namespace',
    async () => (await bed.told()).some((one) => one.startsWith('KeptHome')),
    {
      ...WAIT,
      seen: async () => bed.told(),
    },
  );
  expect(uids(await bed.pods('db'))).toEqual([db]);

  const taints = { spec: { taints: [{ key: OUT_OF_SERVICE, value: 'off', effect: 'NoExecute' }] } };
  const { spec } = await bed.lab.home.get(nodes, { name: NODE });
  const all = [...(spec?.taints ?? []), ...taints.spec.taints];
  await bed.lab.home.patch(nodes, { name: NODE }, { type: 'merge', body: { spec: { taints: all } } });
  const [again] = uids(await run('db', 1, false));
  expect(again).not.toBe(db);

  await healed();
  await awaited('all bodies have ended', async () => (await bed.bodies()).length === 0, {
    ...WAIT,
    seen: async () => bed.bodies(),
  });
  expect(uids(await bed.pods('db'))).toEqual([again]);
  const node = await bed.lab.home.get(nodes, { name: NODE });
  expect(node.metadata.labels?.[LABEL_NODE_TYPE]).toBe(NODE_TYPE_VIRTUAL);
  expect(node.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE)).toBe(true);
  expect((await bed.pods('api'))[0]?.metadata.annotations?.[ANNOTATION_WHEN_AWAY]).toBeUndefined();
  expect(bed.complaints.filter((line) => line.includes('denied'))).toEqual([]);
});
