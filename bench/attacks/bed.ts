/**
 * What is attacked: a real control plane with an etcd of default size and compaction every five minutes, as by default, and
 * Tributary in it as one process (role `all`), with the policies that people apply. Everything is on loopback.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { binaries } from '../../lab/binaries.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { Lab } from '../../lab/lab.ts';
import { readAnnouncementData } from '../../src/api/own-announcement.ts';
import { configMaps } from '../../src/api/resources.ts';
import { sharingPolicies, type SharingPolicySpec } from '../../src/api/sharing-policy.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { ignoring } from '../../src/lib/errors.ts';
import { peerArguments } from '../pods/peer-program.ts';
import { cpuMs } from '../frame/process-figures.ts';
import { compileProgram, imageFlags, runToEnd } from '../../lab/compiled-program.ts';
import { Program } from '../frame/program.ts';
import { Borrower } from './borrower.ts';

export const SYSTEM = 'tributary-system';
/** etcd's default, which the lab's kwok clusters exceed. */
const DEFAULT_QUOTA = '--quota-backend-bytes=2147483648';
/** Of the attacker: nothing of its own is in its way. */
const PATIENT = {
  etcd: ['--quota-backend-bytes=8589934592'],
  'kube-apiserver': ['--etcd-compaction-interval=30s'],
};
const READY_MS = 60_000;
const POLL_MS = 100;

export class AttackBed {
  readonly lab: Lab;
  readonly cluster: Cluster;
  /** A person's. */
  readonly admin: HttpClient;
  /** `host:port` of the peering endpoint. */
  readonly endpoint: string;
  readonly #programs: Program[] = [];
  readonly #borrowers: Borrower[] = [];
  #main = '';
  #clusterID = '';

  private constructor(lab: Lab, admin: HttpClient, endpoint: string) {
    this.lab = lab;
    this.cluster = lab.cluster('victim');
    this.admin = admin;
    this.endpoint = endpoint;
  }

  /** `attack`: its name, so that two can run beside each other. `hasProvider`: with the API server of a cluster that lends, whose etcd takes more than the attacker can write. */
  static async up(
    { attack, hasProvider = false }: { attack: string; hasProvider?: boolean | undefined },
    progress: (line: string) => void = () => {},
  ): Promise<AttackBed> {
    const flags = { etcd: [DEFAULT_QUOTA], 'kube-apiserver': ['--etcd-compaction-interval=5m'] };
    const lab = await Lab.fresh({
      name: `at-${attack}`,
      workload: 'kwok',
      clusters: [
        { name: 'victim', nodes: 10, flags },
        ...(hasProvider ? [{ name: 'provider', nodes: 2, flags: PATIENT }] : []),
      ],
      progress,
    });
    try {
      const kubeconfig = readFileSync(lab.cluster('victim').kubeconfig, 'utf8');
      const [port = 0] = await freePorts(1);
      const admin = createClient(await parseKubeconfig(kubeconfig));
      const bed = new AttackBed(lab, admin, `127.0.0.1:${port}`);
      await bed.#furnish(port);
      return bed;
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  async down(): Promise<void> {
    await Promise.all(this.#borrowers.map(async (borrower) => borrower.stop()));
    await Promise.all(this.#programs.map(async (program) => program.stop()));
    await this.admin.close();
    await this.lab.down();
  }

  /** Of the cluster that is attacked. */
  get clusterID(): string {
    return this.#clusterID;
  }

  get etcdUrl(): string {
    const { command } = this.cluster.daemon('etcd').spec;
    const flag = command.find((part) => part.startsWith('--listen-client-urls='));
    return flag?.split('=', 2)[1] ?? '';
  }

  /** Resident memory of each of Tributary's programs now. Throws where one has ended. */
  rssMib(): number[] {
    return this.#programs.map(({ figures }) => figures.rssMiB);
  }

  /** Time that each program has used of a processor, in milliseconds, by its name. */
  cpuMs(): Record<string, number> {
    const daemons = ['kube-apiserver', 'etcd'].map((name): [string, number] => {
      const { id } = this.cluster.daemon(name);
      if (id === undefined) throw new Error(`${name} has ended`);
      return [name, cpuMs(id.pid)];
    });
    const tributary = this.#programs.reduce((sum, { figures }) => sum + figures.cpuMs, 0);
    return { ...Object.fromEntries(daemons), tributary };
  }

  /** What this cluster lends; default: to anybody, at once. */
  async policy(spec: Partial<SharingPolicySpec> = {}): Promise<void> {
    const body = {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'SharingPolicy',
      metadata: { name: 'everybody' },
      spec: { peers: { anyone: true }, approval: 'Automatic' as const, ...spec },
    };
    await this.admin.create(sharingPolicies, body);
  }

  /** A cluster that wants to borrow, with an identity of its own and a link; it has asked for nothing yet. */
  async borrower(name: string): Promise<Borrower> {
    const borrower = new Borrower(this, name);
    this.#borrowers.push(borrower);
    await borrower.start();
    return borrower;
  }

  /** The role `peer` for that virtual node, as a program beside the others: pods of these clusters run nothing. */
  async startPeer(virtualNode: string): Promise<void> {
    const folder = join(this.lab.spec.dataDirectory, virtualNode);
    const { args } = await peerArguments(this.cluster, { virtualNode, folder });
    this.#programs.push(Program.start('peer', [...imageFlags(), this.#main, ...args], this.lab.spec));
  }

  async until(
    what: string,
    condition: () => boolean | Promise<boolean>,
    limitMs: number = READY_MS,
  ): Promise<void> {
    const end = performance.now() + limitMs;
    while (!(await condition())) {
      if (performance.now() > end) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
      await sleep(POLL_MS);
    }
  }

  async #furnish(peeringPort: number): Promise<void> {
    const folder = join(this.lab.spec.dataDirectory, 'agent');
    const main = (this.#main = compileProgram(folder));
    const { kubectl } = await binaries(undefined, ['kubectl']);
    const { kubeconfig } = this.cluster;
    const apply = (objects: string): string =>
      runToEnd(kubectl, ['--kubeconfig', kubeconfig, 'apply', '--server-side', '-f', '-'], objects);
    apply(runToEnd(process.execPath, [main, 'manifests', 'crds']));
    apply(runToEnd(process.execPath, [main, 'manifests', 'cluster', '--image', 'none']));
    const [webhook = 0, ops = 0] = await freePorts(2);
    const options = {
      kubeconfig,
      'cluster-name': 'victim',
      'node-address': '127.0.0.1',
      'system-namespace': SYSTEM,
      'peering-port': String(peeringPort),
      advertise: `127.0.0.1:${peeringPort}`,
      'webhook-port': String(webhook),
      'ops-port': String(ops),
    };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    this.#programs.push(
      Program.start('tributary', [...imageFlags(), main, 'run', 'all', ...args], this.lab.spec),
    );
    await this.until('it has announced itself', async () => {
      // Throws when the program has ended.
      this.rssMib();
      const ref = { namespace: SYSTEM, name: 'tributary-announcement' };
      const found = await this.admin.get(configMaps, ref).catch(ignoring('NotFound'));
      this.#clusterID = readAnnouncementData(found?.data)?.clusterID ?? '';
      return this.#clusterID !== '';
    });
  }
}
