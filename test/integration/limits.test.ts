import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { KubeObject } from '../../lab/kube-api.ts';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { configMaps, nodes, pods } from '../../src/api/resources.ts';
import { API_VERSION, virtualNodes } from '../../src/api/virtual-node.ts';
import type { Pod } from '../../src/api/wire.ts';
import { awaited, eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { onNode, webDeployment } from '../support/labs/web.ts';

/** An agent at the limits: of files, of the size of objects, and of what somebody takes away for a moment. */

const FILES = 256;
/** Connections that say nothing: more than there are files. */
const IDLE = 400;
const REPLICAS = 5;

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  await lab.start();
  await lab.ready();
});
afterAll(async () => lab?.down());

const deployment = (image: string): KubeObject => webDeployment(image, REPLICAS);

/** Resolves when all run that image, each with one body. */
async function rolledOut(image: string): Promise<void> {
  await awaited(`all run ${image}`, async () => {
    const here = (await lab.pods('home')).filter(({ metadata }) => metadata.labels?.['app'] === 'web');
    const there = (await lab.pods('foreign')).filter(({ metadata }) => metadata.labels?.['app'] === 'web');
    return (
      here.length === REPLICAS &&
      there.length === REPLICAS &&
      here.every(
        ({ metadata, spec, status }) =>
          status?.phase === 'Running' &&
          spec?.containers[0]?.image === image &&
          there.filter((body) => body.metadata.labels?.[LABEL_HOME_UID] === metadata.uid).length === 1,
      )
    );
  });
}

const bodies = async (): Promise<string[]> =>
  (await lab.pods('foreign')).map(({ metadata }) => metadata.uid).toSorted();

test(`with ${FILES} files and ${IDLE} idle connections to its port: pods are made and deleted, and it stays Ready`, async () => {
  await lab.homeCluster.api.apply(deployment('web:1'));
  await rolledOut('web:1');
  const limited = spawnSync('prlimit', ['--pid', String(lab.pid()), `--nofile=${FILES}:${FILES}`]);
  expect(limited.stderr.toString()).toBe('');
  const { status } = await lab.home.get(nodes, { name: NODE });
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  expect(port).toBeGreaterThan(0);
  const idle: Socket[] = [];
  try {
    for (let n = 0; n < IDLE; n++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      idle.push(socket);
    }
    // The kernel accepts them; whether the agent does, is its own affair.
    await Promise.all(idle.map(async (socket) => once(socket, 'connect').catch(() => undefined)));
    await eventually('it has no file left', () => readdirSync(`/proc/${lab.pid()}/fd`).length >= FILES);
    await lab.homeCluster.api.apply(deployment('web:2'));
    await rolledOut('web:2');
    expect(await lab.condition('Ready')).toMatchObject({ status: 'True' });
  } finally {
    for (const socket of idle) socket.destroy();
  }
  expect(() => process.kill(lab.pid(), 0)).not.toThrow();
});

test('the VirtualNode is deleted and made again at once: one Node, and each pod has one body', async () => {
  await rolledOut('web:2');
  const { metadata, spec } = await lab.home.get(virtualNodes, { name: NODE });
  const before = await bodies();
  await lab.home.delete(virtualNodes, { name: NODE });
  await lab.home.create(virtualNodes, {
    apiVersion: API_VERSION,
    kind: 'VirtualNode',
    metadata: { name: NODE, labels: metadata.labels ?? {} },
    spec,
  });
  // It bears no status until its agent has seen it.
  await lab.ready();
  await rolledOut('web:2');
  expect(await bodies()).toEqual(before);
  expect((await lab.home.list(nodes)).items.filter((node) => node.metadata.name === NODE)).toHaveLength(1);
});

const LABEL = 'a'.repeat(63);
const LARGE = { name: `${'b'.repeat(200)}.${'c'.repeat(52)}`, namespace: 'shop' };
const TEXT = 'наука 科学 🜲 \u202E\t';
const ENV = Array.from({ length: 1_000 }, (_, n) => ({ name: `V${n}`, value: `${TEXT}${n}` }));
const SETTINGS = { name: 'large', namespace: 'shop' };

test('a pod with a thousand variables, the longest names, letters of all kinds, and a ConfigMap that is too large over there', async () => {
  await rolledOut('web:2');
  const before = await bodies();
  await lab.home.create(configMaps, { metadata: SETTINGS, data: { filler: 'x'.repeat(900_000) } });
  await lab.home.create(pods, {
    metadata: {
      ...LARGE,
      labels: { [`example.com/${LABEL}`]: LABEL },
      annotations: { 'example.com/text': TEXT },
    },
    spec: {
      ...onNode,
      containers: [{ name: 'main', image: 'web:1', env: ENV }],
      volumes: [{ name: 'large', configMap: { name: SETTINGS.name } }],
    },
  });
  const status = async (): Promise<Pod['status']> => (await lab.home.get(pods, LARGE)).status;
  await awaited(
    'it waits, in the words of the provider',
    async () => (await status())?.message?.includes('hold 128 KiB at most'),
    { seen: status },
  );
  expect(await bodies()).toEqual(before);
  const data = { text: TEXT.repeat(1_000), filler: 'x'.repeat(50_000) };
  await lab.home.patch(configMaps, SETTINGS, { type: 'merge', body: { data } });
  await awaited('home shows that it runs', async () => (await status())?.phase === 'Running', {
    seen: status,
  });
  const body = (await lab.pods('foreign')).find(({ metadata }) => metadata.name === LARGE.name);
  expect(body?.spec?.containers[0]?.env).toEqual(ENV);
  expect(body?.metadata.labels?.[`example.com/${LABEL}`]).toBe(LABEL);
  const copies = await lab.foreign.list(configMaps, { namespace: 'tenant' });
  expect(copies.items.map((copy) => copy.data)).toContainEqual(data);
  await lab.home.delete(pods, LARGE);
  await eventually('it is gone on both sides', async () =>
    [...(await lab.pods('home')), ...(await lab.pods('foreign'))].every(
      ({ metadata }) => metadata.name !== LARGE.name,
    ),
  );
  expect(await bodies()).toEqual(before);
});
