/** Pods abroad ask the DNS of their home. The addresses of the two clusters do not overlap. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { agentImageName } from '../../../lab/images-agent.ts';
import { dnsAddress } from '../../../lab/network.ts';
import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import type { Service } from '../../../src/api/wire.ts';
import { type ClusterApi, corePath } from '../../support/e2e/api.ts';
import { isReady, podSpec } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { Underlay } from './support/underlay.ts';

/** It stays at home. */
const DEPOT = 'depot';
/** Its pods run in milan. */
const TOUR = 'tour';
const GROUP = '/apis/tributary.dev/v1alpha1';
const DOMAIN = 'cluster.local';
/** A Service of it. */
const COUNTER = `counter.${DEPOT}.svc.${DOMAIN}`;

/** Answers each request with its host name. */
const SERVE = `require('node:http').createServer((_, answer) => answer.end(require('node:os').hostname())).listen(8080)`;

/** What a program in a pod asks, with what Node.js asks itself and, for TCP, with a query of our own. */
const ASK = `
  const dns = require('node:dns/promises');
  const [what, name] = process.argv.slice(2);
  const overTcp = async () => {
    const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
    // RFC 1035, 4.1 and 4.2.2: one question of type A, recursion desired, and its length before it.
    const question = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1];
    const socket = require('node:net').connect(53, dns.getServers()[0]);
    socket.end(Buffer.from([0, question.length, ...question]));
    const answer = Buffer.concat(await socket.toArray()).subarray(2);
    const afterName = (at) => {
      while (answer[at] > 0 && answer[at] < 192) at += answer[at] + 1;
      return answer[at] === 0 ? at + 1 : at + 2;
    };
    const found = [];
    // The question comes back as it was.
    for (let left = answer.readUInt16BE(6), at = question.length; left > 0; left--) {
      at = afterName(at);
      if (answer.readUInt16BE(at) === 1) found.push(answer.subarray(at + 10, at + 14).join('.'));
      at += 10 + answer.readUInt16BE(at + 8);
    }
    return found;
  };
  const questions = {
    address: async () => (await dns.lookup(name, { all: true, family: 4 })).map(({ address }) => address),
    tcp: overTcp,
    reverse: async () => dns.reverse(name),
    srv: async () => (await dns.resolveSrv(name)).map(({ priority, weight, port, name }) => [priority, weight, port, name].join(' ')),
    http: async () => [await (await fetch(name, { signal: AbortSignal.timeout(10_000) })).text()],
  };
  questions[what]().then((said) => console.log(said.join(' ')), (error) => console.log(error.code ?? error.message));
`;

let underlay: Underlay;
let rome: ClusterApi;

const pod = (name: string, spec: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { name } },
  spec: {
    ...podSpec('', { container: { image: agentImageName, command: ['node', '-e', SERVE] } }),
    terminationGracePeriodSeconds: 0,
    ...spec,
  },
});
const AT_HOME = { nodeSelector: {}, tolerations: [], nodeName: 'rome-1' };
const ABROAD = { nodeSelector: { 'tributary.dev/virtual-node': 'milan' } };
const service = (name: string, selected: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector: { name: selected }, ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...spec },
});
const HEADLESS = { clusterIP: 'None' };

const ask = async (command: string, stdin?: string): Promise<string> => {
  const options = { timeoutMs: 120_000, ...(stdin !== undefined && { stdin }) };
  return (await underlay.peers.ask(command, options)).trim();
};

const apply = async (namespace: string, items: readonly object[]): Promise<string> =>
  ask(`kubectl -n ${namespace} apply -f -`, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));

const ready = async (namespace: string, name: string): Promise<unknown> =>
  underlay.peers.untilPod(namespace, name, isReady, 120);

beforeAll(async () => {
  underlay = await Underlay.open(TOUR);
  ({ rome } = underlay.peers);
  await choose({ services: 'OffloadedPods', dns: 'Home' });
  for (const condition of [
    'tunnel --all --for=condition=ServicesReachable',
    'virtualnode milan --for=condition=HomeDNSReachable',
  ])
    await ask(`kubectl wait ${condition} --timeout=60s`);
  await ask(`kubectl create namespace ${DEPOT}`);
  await apply(DEPOT, [
    pod('clerk', AT_HOME),
    service('counter', 'clerk'),
    service('shelf', 'clerk', HEADLESS),
  ]);
  await apply(TOUR, [
    service('band', 'drummer', HEADLESS),
    pod('singer', ABROAD),
    pod('drummer', { ...ABROAD, hostname: 'drums', subdomain: 'band' }),
  ]);
  await ready(DEPOT, 'clerk');
  for (const name of ['singer', 'drummer']) await ready(TOUR, name);
}, 500_000);

afterAll(async () => {
  await underlay?.peers.run(`kubectl delete namespace ${DEPOT} --ignore-not-found`, { timeoutMs: 100_000 });
  await underlay?.close();
}, 200_000);

/** What the program in that pod is told. */
const told = async (words: string, from = 'singer'): Promise<string> =>
  ask(`kubectl -n ${TOUR} exec -i ${from} -- node - ${words}`, ASK);
const untilTold = async (words: string, expected: string): Promise<string> =>
  until(`${words} is ${expected}`, async () => (await told(words)) === expected, {
    seen: async () => told(words),
  }).then(() => expected);
const addressOf = async (namespace: string, name: string): Promise<string> =>
  (await rome.pod(namespace, name))?.status?.podIP ?? '';
const clusterIP = async (namespace: string, name: string, api = rome): Promise<string> => {
  const found = await api.get<Service>(corePath(namespace, 'services', name));
  return found?.spec?.clusterIP ?? '';
};

test('they run in milan, ask what they would ask at home, and home shows what their owner wrote', async () => {
  const { serviceCidr } = underlay.peers.lab.cluster('rome').spec;
  const atHome = await rome.pod(TOUR, 'singer');
  expect(atHome?.spec).toMatchObject({ nodeName: 'milan', dnsPolicy: 'ClusterFirst' });
  expect(atHome?.spec).not.toHaveProperty('dnsConfig');
  const lines = (await ask(`kubectl -n ${TOUR} exec singer -- cat /etc/resolv.conf`)).split('\n');
  expect(lines.toSorted()).toEqual([
    `nameserver ${dnsAddress(serviceCidr)}`,
    'options ndots:5',
    `search ${TOUR}.svc.${DOMAIN} svc.${DOMAIN} ${DOMAIN}`,
  ]);
});

test('a Service of a namespace that stays at home: its name, by UDP and TCP, and the name of its ClusterIP', async () => {
  const address = await clusterIP(DEPOT, 'counter');
  await untilTold(`address counter.${DEPOT}`, address);
  expect(await told(`tcp ${COUNTER}`)).toBe(address);
  expect(await told(`reverse ${address}`)).toBe(COUNTER);
  expect(await told(`srv _http._tcp.${COUNTER}`)).toBe(`0 100 80 ${COUNTER}`);
  expect(await told(`http http://counter.${DEPOT}/`)).toBe('clerk');
});

test('headless Services name pods at home and pods beside, at addresses that lead there', async () => {
  await untilTold(`address shelf.${DEPOT}`, await addressOf(DEPOT, 'clerk'));
  expect(await told(`http http://shelf.${DEPOT}:8080/`)).toBe('clerk');
  await untilTold('address drums.band', await addressOf(TOUR, 'drummer'));
  expect(await told('http http://drums.band:8080/')).toBe('drums');
});

const NODE = `${GROUP}/virtualnodes/milan`;
async function choose(network: object): Promise<void> {
  const cluster = await underlay.peers.cluster('rome');
  await rome.patch(`${GROUP}/foreignclusters/${cluster?.metadata.name ?? ''}`, { spec: { network } });
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
  await apply(TOUR, [pod('late', ABROAD)]);
  await ready(TOUR, 'late');
  const selector = 'involvedObject.name=late,reason=ForeignDNS';
  const events = `kubectl -n ${TOUR} get events --field-selector ${selector} -o jsonpath='{.items[*].message}'`;
  await until('the pod says so', async () => (await ask(events)).includes('services: OffloadedPods'));
  expect(await told(`tcp ${COUNTER}`, 'late')).toBe('');
  const theirs = await clusterIP('default', 'kubernetes', underlay.peers.milan);
  expect(await told('address kubernetes.default', 'late')).toBe(theirs);
});

test('chosen no more, nothing is said; pods that run keep the DNS that they have', async () => {
  await choose({ services: 'OffloadedPods', dns: 'Foreign' });
  await untilSaid(/^nothing$/);
  await untilTold(`address counter.${DEPOT}`, await clusterIP(DEPOT, 'counter'));
  expect(await told(`tcp ${COUNTER}`, 'late')).toBe('');
});
