/** Pods abroad ask the DNS of their home. Two clusters whose addresses do not overlap. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { AGNHOST, FOREIGN, HOME, makeBed } from '../../../lab/conformance/bed.ts';
import { Stage } from '../../../lab/demo/stage.ts';
import type { Workbench } from '../../../lab/demo/workbench.ts';
import { dnsAddress } from '../../../lab/network.ts';
import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import type { Pod, Service } from '../../../src/api/wire.ts';
import { ClusterApi, corePath } from '../../support/e2e/api.ts';
import { NAMES_LAB, onlyLab } from '../../support/e2e/lab.ts';
import { isReady } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';

/** It stays at home. */
const DEPOT = 'depot';
/** Its pods run in milan. */
const TOUR = 'tour';
const GROUP = '/apis/tributary.dev/v1alpha1';
const DOMAIN = 'cluster.local';

let bench: Workbench;
let rome: ClusterApi;

const pod = (name: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { name } },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'main', image: AGNHOST, args: ['netexec', '--http-port=8080'] }],
    ...spec,
  },
});
const service = (name: string, selected: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector: { name: selected }, ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...spec },
});
const HEADLESS = { clusterIP: 'None' };

async function ask(command: string, stdin?: string): Promise<string> {
  const options = { timeoutMs: 120_000, ...(stdin !== undefined && { stdin }) };
  const { code, stdout, stderr } = await bench.run(command, options);
  if (code !== 0) throw new Error(`${command}: exit code ${code}: ${stderr}${stdout}`);
  return stdout.trim();
}

const apply = async (namespace: string, items: readonly object[]): Promise<string> =>
  ask(`kubectl -n ${namespace} apply -f -`, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));

async function ready(namespace: string, name: string): Promise<Pod> {
  const read = async (): Promise<Pod | undefined> => rome.pod(namespace, name);
  return until(
    `${namespace}/${name} is Ready`,
    async () => {
      const found = await read();
      return found !== undefined && isReady(found) && found;
    },
    { seconds: 120, seen: async () => (await read())?.status },
  );
}

beforeAll(async () => {
  await onlyLab(NAMES_LAB);
  const stage = new Stage((line) => void process.stderr.write(`${line}\n`));
  bench = await makeBed(NAMES_LAB, stage, new AbortController().signal);
  rome = new ClusterApi(bench.lab.cluster(HOME));
  for (const { name } of bench.lab.cluster(HOME).nodes) await ask(`kubectl uncordon ${name}`);
  await ask(`kubectl create namespace ${DEPOT}`);
  await ask(`kubectl create namespace ${TOUR} && kubectl label namespace ${TOUR} e2e-framework=${TOUR}`);
  const atHome = { nodeSelector: { 'kubernetes.io/hostname': bench.lab.cluster(HOME).node().name } };
  await apply(DEPOT, [
    pod('clerk', atHome),
    service('counter', 'clerk'),
    service('shelf', 'clerk', HEADLESS),
  ]);
  await apply(TOUR, [
    service('band', 'drummer', HEADLESS),
    pod('singer'),
    pod('drummer', { hostname: 'drums', subdomain: 'band' }),
  ]);
  await ready(DEPOT, 'clerk');
  for (const name of ['singer', 'drummer']) await ready(TOUR, name);
}, 900_000);

afterAll(() => {
  for (const cluster of bench?.lab.clusters ?? []) cluster.api.close();
});

const inside = async (name: string, command: string): Promise<string> =>
  ask(`kubectl -n ${TOUR} exec ${name} -- ${command}`);
const dig = async (words: string, from = 'singer'): Promise<string> =>
  inside(from, `dig +short +search ${words}`);
const untilDug = async (words: string, expected: string): Promise<string> =>
  until(`dig ${words} says ${expected}`, async () => (await dig(words)) === expected, {
    seen: async () => dig(words),
  }).then(() => expected);
const addressOf = async (namespace: string, name: string): Promise<string> =>
  (await rome.pod(namespace, name))?.status?.podIP ?? '';
const clusterIP = async (namespace: string, name: string, api = rome): Promise<string> => {
  const found = await api.get<Service>(corePath(namespace, 'services', name));
  return found?.spec?.clusterIP ?? '';
};

test('they run in milan, ask what they would ask at home, and home shows what their owner wrote', async () => {
  const { serviceCidr } = bench.lab.cluster(HOME).spec;
  const atHome = await rome.pod(TOUR, 'singer');
  expect(atHome?.spec).toMatchObject({ nodeName: FOREIGN, dnsPolicy: 'ClusterFirst' });
  expect(atHome?.spec).not.toHaveProperty('dnsConfig');
  const lines = (await inside('singer', 'cat /etc/resolv.conf')).split('\n');
  expect(lines.toSorted()).toEqual([
    `nameserver ${dnsAddress(serviceCidr)}`,
    'options ndots:5',
    `search ${TOUR}.svc.${DOMAIN} svc.${DOMAIN} ${DOMAIN}`,
  ]);
});

test('a Service of a namespace that stays at home: its name, by UDP and TCP, and the name of its ClusterIP', async () => {
  const address = await clusterIP(DEPOT, 'counter');
  await untilDug(`counter.${DEPOT}`, address);
  expect(await dig(`+tcp counter.${DEPOT}.svc.${DOMAIN}`)).toBe(address);
  expect(await dig(`-x ${address}`)).toBe(`counter.${DEPOT}.svc.${DOMAIN}.`);
  expect(await dig(`_http._tcp.counter.${DEPOT}.svc SRV`)).toBe(`0 100 80 counter.${DEPOT}.svc.${DOMAIN}.`);
  expect(await inside('singer', `curl -sS -m 10 http://counter.${DEPOT}/hostname`)).toBe('clerk');
});

test('headless Services name pods at home and pods beside, at addresses that lead there', async () => {
  await untilDug(`shelf.${DEPOT}`, await addressOf(DEPOT, 'clerk'));
  expect(await inside('singer', `curl -sS -m 10 http://shelf.${DEPOT}:8080/hostname`)).toBe('clerk');
  await untilDug('drums.band', await addressOf(TOUR, 'drummer'));
  expect(await inside('singer', 'curl -sS -m 10 http://drums.band:8080/hostname')).toBe('drums');
});

const NODE = `${GROUP}/virtualnodes/${FOREIGN}`;
async function choose(network: object): Promise<void> {
  const [name] = (await ask('kubectl get foreignclusters -o name')).split('\n');
  await ask(`kubectl patch ${name} --type merge -p '${JSON.stringify({ spec: { network } })}'`);
}
const said = async (): Promise<string> => {
  const { status } = (await rome.get<VirtualNode>(NODE)) ?? {};
  const found = status?.conditions?.find(({ type }) => type === 'HomeDNSReachable');
  return found === undefined ? 'nothing' : `${found.status} ${found.reason}: ${found.message}`;
};
const untilSaid = async (expected: RegExp): Promise<boolean> =>
  until(`the VirtualNode says ${expected}`, async () => expected.test(await said()), { seen: said });

test('without ClusterIPs of home, new pods ask the foreign DNS, and say why', async () => {
  await untilSaid(/^True AsExpected: .*cluster\.local/);
  await choose({ services: 'None' });
  await untilSaid(/^False NotChosen: .*services: OffloadedPods/);
  await apply(TOUR, [pod('late')]);
  await ready(TOUR, 'late');
  const selector = 'involvedObject.name=late,reason=ForeignDNS';
  const told = `kubectl -n ${TOUR} get events --field-selector ${selector} -o jsonpath='{.items[*].message}'`;
  await until('the pod says so', async () => (await ask(told)).includes('services: OffloadedPods'));
  expect(await dig(`counter.${DEPOT}`, 'late')).toBe('');
  const theirs = new ClusterApi(bench.lab.cluster(FOREIGN));
  expect(await dig('kubernetes.default', 'late')).toBe(await clusterIP('default', 'kubernetes', theirs));
});

test('chosen no more, nothing is said; pods that run keep the DNS that they have', async () => {
  await choose({ services: 'OffloadedPods', dns: 'Foreign' });
  await untilSaid(/^nothing$/);
  await untilDug(`counter.${DEPOT}`, await clusterIP(DEPOT, 'counter'));
  expect(await dig(`counter.${DEPOT}`, 'late')).toBe('');
});
