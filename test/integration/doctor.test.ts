import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';

import { run } from '../../lab/run.ts';
import { supportBundleCommand } from '../../src/cli/doctor/support-bundle.ts';
import { tokenCommand } from '../../src/cli/peering/token.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { LABEL_OFFLOAD, LABEL_VIRTUAL_NODE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import {
  clusterRoles,
  configMaps,
  deployments,
  events,
  namespaces,
  nodes,
  pods,
  secrets,
  services,
} from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { Doctor } from '../support/doctor.ts';
import { longOnly } from '../support/long.ts';
import { type City, PeeringLab, peeringLabProblem, say, until } from '../support/labs/peering-lab.ts';

/**
 * A fault is brought into a peering; the doctor finds it; what it says is done to the letter; and the doctor finds nothing more. The
 * roles run as processes here, so that "start it again" starts the process. Faults of tunnels: doctor-network.test.ts.
 */

const SYSTEM = 'tributary-system';
const TEN_MINUTES_MS = 600_000;
const OPTIONS = { 'pod-cidr': '10.244.0.0/16' };

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`the doctor is not tested on whole peerings: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

/** Six of the rows take most of the time. */
const testLong = longOnly('further faults that are injected for the doctor', test);

describeInLab('the doctor', () => {
  let lab: PeeringLab;
  let rome: City;
  let milan: City;
  let doctor: Doctor;
  const began = new Map<string, number>();
  const directory = mkdtempSync(join(tmpdir(), 'doctor-test-'));

  beforeAll(async () => {
    doctor = await Doctor.ready();
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    await rome.borrow();
    await Promise.all([rome.run(OPTIONS), milan.run(OPTIONS)]);
  });
  afterAll(async () => {
    await lab?.down();
    doctor?.gone();
    rmSync(directory, { recursive: true, force: true });
  });
  afterEach(() => {
    for (const [name, start] of began) say(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
    began.clear();
  });
  const timed = (name: string): void => void began.set(name, performance.now());

  const at = ({ cluster }: City): string => cluster.kubeconfig;
  const peered = async (): Promise<void> => {
    await rome.inPhase(milan.id, 'outgoing', 'Established');
    await until('milan is a node of rome', async () => rome.nodeReady(milan.id));
  };
  const again = async (city: City, program = {}): Promise<void> => {
    await city.kill();
    await city.run(OPTIONS, program);
  };

  test('a policy is missing', async () => {
    timed('policy');
    const wanted = { check: 'policies', says: /NoPolicyMatches/u };
    await doctor.finds(at(rome), wanted);
    const finding = await doctor.finds(at(milan), { ...wanted, about: /let rome use us/u });
    await doctor.follow(at(milan), finding);
    await peered();
    await doctor.isContent(at(milan), { check: 'policies' });
    await doctor.isContent(at(rome), { check: 'policies' });
  });

  test('nothing is wrong: the exit code is 0', async () => {
    const { findings, code } = await doctor.ask(at(rome), 'milan');
    expect(findings.filter(({ level }) => level === 'problem')).toEqual([]);
    expect(code).toBe(0);
  });

  test('a right of a role is missing', async () => {
    timed('right');
    const name = 'tributary-cluster';
    const before = await rome.client.get(clusterRoles, { name });
    const body = { rules: (before.rules ?? []).slice(1) };
    await rome.client.patch(clusterRoles, { name }, { type: 'merge', body });
    const finding = await doctor.finds(at(rome), { check: 'rights', says: /it lacks/u });
    expect((await doctor.ask(at(rome))).code).toBe(1);
    await doctor.follow(at(rome), finding);
    await doctor.isContent(at(rome), { check: 'rights' });
  });

  testLong('the endpoint is that of another cluster', async () => {
    timed('endpoint');
    const name = (await rome.foreign(milan.id))?.metadata.name ?? '';
    const body = { spec: { endpoint: `${rome.address}:7443` } };
    await rome.client.patch(foreignClusters, { name }, { type: 'merge', body });
    const finding = await doctor.finds(at(rome), { check: 'reachability', says: /another cluster/u });
    await doctor.follow(at(rome), finding, { 'HOST:PORT': `${milan.address}:7443` });
    await doctor.isContent(at(rome), { check: 'reachability' });
  });

  test('a quota is used up', async () => {
    timed('quota');
    const node = (await rome.client.list(nodes, { labelSelector: LABEL_VIRTUAL_NODE })).items[0];
    const cpu = node?.status?.allocatable?.['cpu'] ?? '1';
    await rome.client.create(pods, {
      metadata: { name: 'large', namespace: 'default' },
      spec: {
        nodeSelector: { [LABEL_VIRTUAL_NODE]: node?.metadata.labels?.[LABEL_VIRTUAL_NODE] ?? '' },
        tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
        containers: [{ name: 'main', image: 'example/none:1', resources: { requests: { cpu } } }],
      },
    });
    const finding = await doctor.finds(at(milan), { check: 'quotas', says: /used up: .*cpu/u });
    await doctor.follow(at(milan), finding);
    await doctor.isContent(at(milan), { check: 'quotas' });
    await rome.client.delete(pods, { name: 'large', namespace: 'default' }, { gracePeriodSeconds: 0 });
  });

  testLong('the webhook is not reached', async () => {
    timed('webhook');
    await rome.client.create(namespaces, { metadata: { name: 'shop', labels: { [LABEL_OFFLOAD]: 'true' } } });
    await doctor.isContent(at(rome), { check: 'webhook' });
    await rome.kill();
    const { remedy } = await doctor.finds(at(rome), { check: 'webhook', says: /failed calling webhook/u });
    expect(remedy).toContain('start it again');
    await rome.run(OPTIONS);
    await doctor.isContent(at(rome), { check: 'webhook' });
  });

  testLong('a clock is ten minutes off', async () => {
    timed('clock');
    const file = join(directory, 'clock');
    writeFileSync(file, String(TEN_MINUTES_MS));
    const clock = pathToFileURL(join(import.meta.dirname, 'support', 'set-clock.ts'));
    await again(rome, { imports: [`${clock.href}?file=${file}`] });
    const ahead = { check: 'clocks', says: /(?:59|60)\d s ahead/u };
    // Of the cluster itself, and of the home that its provider sees.
    const { remedy } = await doctor.finds(at(rome), { ...ahead, about: /tributary-cluster/u });
    await doctor.finds(at(milan), { ...ahead, about: /the home rome/u });
    expect(remedy).toContain('set the clock');
    writeFileSync(file, '0');
    await doctor.isContent(at(rome), { check: 'clocks' });
    await doctor.isContent(at(milan), { check: 'clocks' });
    await again(rome);
  });

  testLong('a peer is too old', async () => {
    timed('version');
    const past = new URL('./support/past-peer.ts', import.meta.url);
    await again(milan, { imports: [past.href] });
    const { remedy } = await doctor.finds(at(rome), { check: 'versions', says: /no common protocol/u });
    expect(remedy).toContain('upgrade the older side');
    // It is upgraded, and not far enough.
    await again(milan, { imports: [`${past.href}?software=0.0.9`] });
    const old = { check: 'versions', level: 'warning', says: /^0\.0\.9$/u } as const;
    expect((await doctor.finds(at(rome), old)).remedy).toMatch(/^upgrade milan/u);
    await again(milan);
    await doctor.isContent(at(rome), { check: 'versions' });
    await peered();
  });

  testLong('a certificate has expired', async () => {
    timed('certificate');
    const { pki, server } = milan.cluster;
    const { cert, key } = await pki.authority.issue({ commonName: 'guest', days: -1 });
    const data = (text: string): string => Buffer.from(text).toString('base64');
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'it',
      clusters: [{ name: 'it', cluster: { server, 'certificate-authority-data': data(pki.authority.cert) } }],
      users: [{ name: 'it', user: { 'client-certificate-data': data(cert), 'client-key-data': data(key) } }],
      contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
    };
    const tenant = await milan.tributary(['tenant', '--peer', 'guest', '--namespace', 'guest-shop']);
    writeFileSync(join(directory, 'tenant.yaml'), tenant);
    const apply = { check: '', subject: '', level: 'ok', tried: '', cameBack: '' } as const;
    const file = join(directory, 'tenant.yaml');
    await doctor.follow(at(milan), { ...apply, run: `kubectl apply --server-side -f ${file}` });
    await rome.client.create(secrets, {
      metadata: { namespace: SYSTEM, name: 'guest-kubeconfig' },
      data: { kubeconfig: data(JSON.stringify(kubeconfig)) },
    });
    await rome.client.create(virtualNodes, {
      metadata: { name: 'guest' },
      spec: {
        kubeconfigSecretRef: { namespace: SYSTEM, name: 'guest-kubeconfig' },
        resources: { cpu: '1', memory: '1Gi', pods: '10' },
        namespaces: [{ homeNamespace: 'default', tenantNamespace: 'guest-shop' }],
      },
    });
    const finding = await doctor.finds(at(rome), { check: 'certificates', says: /expired at/u });
    const printed = await milan.tributary([
      'tenant-kubeconfig',
      '--peer',
      'guest',
      '--namespace',
      'guest-shop',
    ]);
    const fresh = join(directory, 'fresh');
    writeFileSync(fresh, printed);
    await doctor.follow(at(rome), finding, { FILE: fresh });
    await doctor.isContent(at(rome), { check: 'certificates' });
    // No agent runs for it here, so the test uses the credential in its place.
    const stored = await rome.client.get(secrets, { namespace: SYSTEM, name: 'guest-kubeconfig' });
    const text = Buffer.from(stored.data?.['kubeconfig'] ?? '', 'base64').toString();
    const guest = createClient(await parseKubeconfig(text));
    try {
      await guest.list(pods, { namespace: 'guest-shop' });
    } finally {
      await guest.close();
    }
    await rome.client.delete(virtualNodes, { name: 'guest' });
  });

  testLong('the DNS of tenants is broken', async () => {
    timed('dns');
    const labels = { 'k8s-app': 'kube-dns' };
    const metadata = { namespace: 'kube-system', labels };
    await milan.client.create(deployments, {
      metadata: { ...metadata, name: 'coredns' },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'dns', image: 'example/dns:1' }] } },
      },
    });
    await milan.client.create(services, {
      metadata: { ...metadata, name: 'kube-dns' },
      spec: { selector: labels, ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] },
    });
    const finding = await doctor.finds(at(milan), { check: 'dns', says: /none is ready: neither guests/u });
    await doctor.follow(at(milan), finding);
    await doctor.isContent(at(milan), { check: 'dns' });
  });

  test('what may not be read is said to be unknown, with the right that is missing', async () => {
    const account = await rome.cluster.pki.authority.issue({ commonName: 'nobody' });
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'it',
      clusters: [
        {
          name: 'it',
          cluster: {
            server: rome.cluster.server,
            'certificate-authority-data': Buffer.from(rome.cluster.pki.authority.cert).toString('base64'),
          },
        },
      ],
      users: [
        {
          name: 'it',
          user: {
            'client-certificate-data': Buffer.from(account.cert).toString('base64'),
            'client-key-data': Buffer.from(account.key).toString('base64'),
          },
        },
      ],
      contexts: [{ name: 'it', context: { cluster: 'it', user: 'it' } }],
    };
    const file = join(directory, 'nobody');
    writeFileSync(file, JSON.stringify(config));
    const { findings, code } = await doctor.ask(file);
    const unread = findings.filter(({ check, level }) => check === 'access' && level === 'unknown');
    expect(unread.map(({ remedy }) => remedy).join('\n')).toContain(
      'the right to list tunnels.tributary.dev',
    );
    expect(code).toBe(0);
  });

  test('the support bundle holds what helps, and no secret that was planted', async () => {
    timed('support bundle');
    const planted = 'pl4nted-s3cret';
    const base64 = Buffer.from(planted).toString('base64');
    const made = await doctor.command(tokenCommand, at(milan), ['create']);
    const token = /[a-z2-7]{26}\.[\w-]+\.[\w-]{43}/u.exec(made.out)?.[0] ?? '';
    expect(token).not.toBe('');
    const metadata = (name: string): { namespace: string; name: string } => ({ namespace: SYSTEM, name });
    await milan.client.create(secrets, { metadata: metadata('planted'), data: { password: base64 } });
    const kubeconfig = `users:\n- name: a\n  user:\n    token: ${planted}\n`;
    await milan.client.create(configMaps, { metadata: metadata('planted'), data: { kubeconfig } });
    await milan.client.create(deployments, {
      metadata: {
        ...metadata('planted'),
        annotations: {
          'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({ data: { password: base64 } }),
          note: `join with ${token}`,
        },
      },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'planted' } },
        template: {
          metadata: { labels: { app: 'planted' } },
          spec: {
            containers: [
              {
                name: 'main',
                image: 'example/kept',
                env: [{ name: 'ANY', value: planted }],
                args: ['--token', planted, `--password=${planted}`],
              },
            ],
          },
        },
      },
    });
    await milan.client.create(events, {
      metadata: metadata('planted'),
      involvedObject: { namespace: SYSTEM, kind: 'Pod', name: 'planted' },
      message: `refused: Authorization: Bearer ${planted}`,
      reason: 'Kept',
    });
    const file = join(directory, 'bundle.tar.gz');
    await doctor.command(supportBundleCommand, at(milan), ['--file', file]);
    const text = await run(['tar', '-xzOf', file]);
    for (const secret of [planted, base64, token.slice(-43), 'PRIVATE KEY', 'eyJ'])
      expect(text).not.toContain(secret);
    for (const kept of ['example/kept', 'Kept', 'password', 'kind: ForeignCluster', '"findings"'])
      expect(text).toContain(kept);
    const names = (await run(['tar', '-tzf', file]))
      .split('\n')
      .map((name) => name.split('/').slice(1).join('/'));
    expect(names).toEqual(
      expect.arrayContaining([
        'doctor.json',
        'unread.txt',
        'cluster/foreignclusters.yaml',
        `namespaces/${SYSTEM}/secrets.yaml`,
      ]),
    );
  });
});
