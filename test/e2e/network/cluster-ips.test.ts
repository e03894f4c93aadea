import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Service } from '../../../src/api/wire.ts';
import { aPod } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { readyPod, serve } from './support/app.ts';
import { conditionOf, OneNetwork, SHOP, type City, type Provider } from './support/network.ts';
import { Place } from './support/pods.ts';
import type { ProbeRun } from './support/udp-probes.ts';

/** Pods abroad ask ClusterIPs of home. Milan uses another range of Services than rome, turin the same. */

/** A namespace of rome that is not offloaded. */
const BACK = 'back';
const UDP = 7000;
const VIRTUAL = 'tributary.dev/virtual-node';

let network: OneNetwork;
const places = new Map<string, Place>();
/** Addresses of pods as rome shows them. */
const shown = new Map<string, string>();
/** ClusterIPs in rome. */
const ip = new Map<string, string>();

const place = (name: string): Place => {
  const found = places.get(name);
  if (found === undefined) throw new Error(`no pod ${name}`);
  return found;
};

const pod = (name: string, app: string, nodeSelector: Record<string, string>): object =>
  aPod(name, serve(8080), {
    labels: { app, name },
    spec: { terminationGracePeriodSeconds: 1, nodeSelector },
  });
const on = (node: string): Record<string, string> => ({ 'kubernetes.io/hostname': node });
const at = (provider: Provider): Record<string, string> => ({ [VIRTUAL]: provider });

const service = (name: string, spec: object, ports: object[] = [{ port: 80, targetPort: 8080 }]): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { ports, ...spec },
});
const slice = (name: string, address: string, port: number): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  ports: [{ port }],
  endpoints: [{ addresses: [address] }],
});

async function apply(city: City, namespace: string, items: readonly object[]): Promise<void> {
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await network.ask(`kubectl --context ${city} -n ${namespace} apply -f -`, { stdin });
}

async function runs(name: string, namespace: string, city: City): Promise<void> {
  const atHome = await readyPod(network, 'rome', { namespace, name });
  shown.set(name, atHome.status?.podIP ?? '');
  places.set(name, await Place.of(network.lab, await readyPod(network, city, { namespace, name })));
}

/** Runs one pod on each node of milan, so that one of them is not the gateway's. */
async function oneOnEachNodeOfMilan(names: readonly string[]): Promise<void> {
  const nodes = network.lab.cluster('milan').nodes.map(({ name }) => name);
  for (const [index, name] of names.entries()) {
    const others = nodes.filter((_, other) => other !== index);
    for (const other of others) await network.ask(`kubectl --context milan cordon ${other}`);
    await apply('rome', SHOP, [pod(name, 'pair', at('milan'))]);
    await runs(name, SHOP, 'milan');
    for (const other of others) await network.ask(`kubectl --context milan uncordon ${other}`);
  }
  expect(new Set(names.map((name) => place(name).node.name)).size).toBe(2);
}

beforeAll(async () => {
  network = await OneNetwork.open();
  await network.ask(`kubectl create namespace ${BACK}`);
  await apply('rome', BACK, [
    pod('back-1', 'back', on('rome-1')),
    pod('back-2', 'back', on('rome-2')),
    service('both', { selector: { app: 'back' } }),
    service('sticky', { selector: { app: 'back' }, sessionAffinity: 'ClientIP' }),
    ...['back-1', 'back-2'].map((name) =>
      service(name, { selector: { name } }, [
        { name: 'tcp', port: 80, targetPort: 8080 },
        { name: 'udp', port: UDP, protocol: 'UDP' },
      ]),
    ),
    service('node-1', {}, [{ port: 443 }]),
    slice('node-1', network.lab.cluster('rome').node('rome-1').address, 10_250),
    service('node-2', {}, [{ port: 443 }]),
    slice('node-2', network.lab.cluster('rome').node('rome-2').address, 10_250),
    service('outside', {}, [{ port: 443 }]),
    slice('outside', network.lab.cluster('turin').node().address, 10_250),
  ]);
  await apply('rome', SHOP, [
    pod('afar', 'afar', at('turin')),
    ...['asker', 'beside', 'afar'].map((name) => service(name, { selector: { name } })),
  ]);
  await apply('milan', 'default', [aPod('own', serve(8080), { spec: { nodeSelector: {} } })]);
  for (const name of ['back-1', 'back-2']) await runs(name, BACK, 'rome');
  await oneOnEachNodeOfMilan(['asker', 'beside']);
  await runs('afar', SHOP, 'turin');
  places.set(
    'own',
    await Place.of(network.lab, await readyPod(network, 'milan', { namespace: 'default', name: 'own' })),
  );
  for (const namespace of [BACK, SHOP, 'default']) {
    const found = await network.api('rome').list<Service>(`/api/v1/namespaces/${namespace}/services`);
    for (const { metadata, spec } of found) ip.set(metadata.name, spec?.clusterIP ?? '');
  }
}, 500_000);

afterAll(async () => {
  await network?.ask(`kubectl delete namespace ${BACK} --ignore-not-found --wait=false`);
  await network?.ask(`kubectl -n ${SHOP} delete pod,service --all --wait=false`);
  await network?.ask('kubectl --context milan -n default delete pod own --ignore-not-found --wait=false');
  await network?.close();
}, 60_000);

const choose = async (provider: Provider, change: object): Promise<void> =>
  network.setNetwork('rome', provider, change);

const CONDITION = 'ServicesReachable';
const says = async (provider: Provider, expected: RegExp): Promise<string> =>
  until(`the Tunnel to ${provider} says ${expected}`, async () => {
    const { status, reason, message } = conditionOf(await network.tunnel('rome', provider), CONDITION) ?? {};
    const text = `${status} ${reason}: ${message}`;
    return expected.test(text) && text;
  });

/** What a pod hears from a Service of rome, also where that is an error; empty where it hears nothing. */
async function hears(from: string, to: string, port = 80): Promise<string> {
  const url = `http://${ip.get(to)}:${port}/cgi-bin/who`;
  const { stdout } = await place(from).run(`timeout 3 wget -qO- ${url} 2>&1 | grep -v Terminated`);
  return stdout.trim().replace(/\[::ffff:([\d.]+)\]/, '$1');
}

const untilHears = async (from: string, to: string, expected: RegExp, port = 80): Promise<string> => {
  let last = '';
  return until(
    `${from} hears ${expected} from the ClusterIP of ${to}`,
    async () => {
      last = await hears(from, to, port);
      return expected.test(last) && last;
    },
    { seen: async () => Promise.resolve(last) },
  );
};

async function names(from: string, to: string): Promise<Set<string>> {
  const ask = `timeout 3 wget -qO- http://${ip.get(to)}/cgi-bin/who`;
  const { stdout } = await place(from).run(`for i in $(seq 24); do ${ask}; done`, 100_000);
  return new Set([...stdout.matchAll(/^(\S+) answers/gm)].map(([, name]) => name ?? ''));
}

test('unasked, they lead nowhere, and the Tunnel says so', async () => {
  await says('milan', /^False NotChosen: .*services: OffloadedPods/);
  await untilHears('back-1', 'back-2', /^back-2 answers/);
  // There is no route to it, or no answer.
  expect(await hears('asker', 'back-2')).toMatch(/^$|unreachable/);
});

test('chosen, but not allowed over there, they lead nowhere either, and the Tunnel says what to do', async () => {
  await choose('milan', { services: 'OffloadedPods' });
  await says('milan', /^False SeenElsewhere: .*10\.96\.0\.0\/16 as 100\.\d+\.0\.0\/16: .*ownAddresses/);
  expect(await hears('asker', 'back-2')).not.toContain('answers');
});

test('allowed, pods on each node there reach home pods on each node here, and are seen as home shows them', async () => {
  await network.setNetwork('milan', 'rome', { ownAddresses: ['10.96.0.0/16'] });
  await says('milan', /^True AsExpected: .*10\.96\.0\.0\/16/);
  for (const from of ['asker', 'beside'])
    for (const to of ['back-1', 'back-2'])
      expect(await untilHears(from, to, /answers/)).toBe(`${to} answers ${shown.get(from)}`);
});

test('all endpoints answer, and with session affinity one of them', async () => {
  await until('both answer', async () => (await names('asker', 'both')).size === 2);
  for (const from of ['asker', 'beside']) expect((await names(from, 'sticky')).size).toBe(1);
});

test.each(['back-1', 'back-2'])('datagrams to %s and back', async (to) => {
  const program = [process.execPath, join(import.meta.dirname, 'support', 'udp-probes.ts')] as const;
  const echo = place(to).start([...program, 'echo', String(UDP)]);
  await echo.waitFor(/listening/);
  const sender = place('asker').start([...program, 'send', ip.get(to) ?? '', String(UDP), '200']);
  const { stdout } = await sender.ended;
  await echo.stop();
  const { lost } = JSON.parse(stdout) as ProbeRun;
  expect(lost).toBeLessThan(20);
});

test('an endpoint beside the pod that asks, itself, and one in a third cluster', async () => {
  const { seenAs = [] } = (await network.tunnel('rome', 'milan'))?.spec ?? {};
  expect(seenAs).toContainEqual({ prefix: '10.96.0.0/16', as: '10.96.0.0/16' });
  for (const [from, to] of [
    ['asker', 'beside'],
    ['asker', 'asker'],
    ['beside', 'beside'],
    ['asker', 'afar'],
    ['back-2', 'beside'],
  ] as const)
    await untilHears(from, to, new RegExp(`^${to} answers`));
  await choose('milan', { transit: 'None' });
  await until('third clusters are closed', async () => (await hears('asker', 'afar')) === '');
  await untilHears('asker', 'beside', /^beside answers/);
  await choose('milan', { transit: null });
  await untilHears('asker', 'afar', /^afar answers/);
});

test('not behind them: nodes, what is outside, and the API server where that is closed', async () => {
  const refused = /400 Bad Request/;
  for (const to of ['node-1', 'node-2', 'outside']) {
    await untilHears('back-1', to, refused, 443);
    expect([to, await hears('asker', to, 443)]).toEqual([to, '']);
  }
  // The pod has a token, so it reaches the API server, which expects TLS.
  await untilHears('asker', 'kubernetes', refused, 443);
  await choose('milan', { apiServer: 'None' });
  await until('the API server is closed', async () => (await hears('asker', 'kubernetes', 443)) === '');
  await untilHears('back-1', 'kubernetes', refused, 443);
  await choose('milan', { apiServer: null });
  await untilHears('asker', 'kubernetes', refused, 443);
});

test('pods of the foreign cluster itself do not reach them, whatever else they may', async () => {
  expect(await hears('own', 'back-1')).toBe('');
  await network.setAccess('rome', 'milan', 'AllPods');
  await until('own pods of milan reach home pods', async () => {
    const views = (await network.tunnel('milan', 'rome'))?.status?.views ?? [];
    const view = views.find(({ use }) => use === 'Pods')?.as.replace('.0.0/16', '') ?? '';
    const address = shown.get('back-1')?.replace('10.244', view) ?? '';
    return (await place('own').fetch(`${address}:8080`)).startsWith('back-1 answers');
  });
  expect(await hears('own', 'back-1')).toBe('');
  await network.setAccess('rome', 'milan', null);
});

test('a cluster that uses the same range keeps it for itself, and the Tunnel says what to do', async () => {
  await choose('turin', { services: 'OffloadedPods' });
  await says('turin', /^False SeenElsewhere: .*10\.96\.0\.0\/16 as 100\.\d+\.0\.0\/16: .*another range/);
  expect(conditionOf(await network.tunnel('rome', 'turin'), 'Ready')?.status).toBe('True');
  expect(await hears('afar', 'back-1')).not.toContain('answers');
  await choose('turin', { services: null });
  await says('turin', /^False NotChosen/);
});

test('taken back, they lead nowhere again', async () => {
  await choose('milan', { services: null });
  await network.setNetwork('milan', 'rome', { ownAddresses: null });
  await says('milan', /^False NotChosen/);
  await until('nothing is heard', async () => /^$|unreachable/.test(await hears('asker', 'back-1')));
  await untilHears('back-2', 'back-1', /^back-1 answers/);
});
