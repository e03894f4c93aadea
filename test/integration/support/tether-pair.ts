/** A device and a company as whole processes: what tests of tethers do with them, and what they wait for. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binaries } from '../../../lab/binaries.ts';
import { run } from '../../../lab/run.ts';
import {
  CLUSTER_MODE,
  type ClusterMode,
  clusterModes,
  type TetherSpec,
} from '../../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../../src/api/foreign-cluster.ts';
import { nodes, pods } from '../../../src/api/resources.ts';
import { sharingPolicies, type SharingPolicySpec } from '../../../src/api/sharing-policy.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { type City, until } from '../../support/labs/peering-lab.ts';

const VERSION = 'tributary.dev/v1alpha1';

export class TetherPair {
  readonly device: City;
  readonly company: City;
  readonly #kubectl: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'tributary-tether-'));

  private constructor(device: City, company: City, kubectl: string) {
    this.device = device;
    this.company = company;
    this.#kubectl = kubectl;
  }

  static async of(device: City, company: City): Promise<TetherPair> {
    const { kubectl } = await binaries(undefined, ['kubectl']);
    return new TetherPair(device, company, kubectl);
  }

  /** Starts both. As in a cluster, the program is no administrator: what a tether forbids to those, it forbids to them all. */
  async run(): Promise<void> {
    await this.device.run({}, { kubeconfig: await this.#account() });
    await this.company.run();
  }

  /** As `run`, and does not wait. */
  start(city: City): void {
    city.start({}, city === this.device ? { kubeconfig: this.#file } : {});
  }

  down(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Runs kubectl; resolves with the output, of refusals too. */
  async at(city: City, ...args: string[]): Promise<string> {
    const command = [this.#kubectl, '--kubeconfig', city.cluster.kubeconfig, ...args];
    return run(['sh', '-c', '"$@" 2>&1 || true', 'sh', ...command]);
  }

  async mode(): Promise<ClusterMode> {
    return this.device.client.get(clusterModes, { name: CLUSTER_MODE });
  }

  /** Resolves once the device has seen what is wanted and is in that phase. */
  async inPhase(phase: string): Promise<ClusterMode> {
    let last: ClusterMode | undefined;
    try {
      return await until(`the mode is ${phase}`, async () => {
        last = await this.mode();
        const isSeen = (last.status?.observedGeneration ?? 0) >= (last.metadata.generation ?? 0);
        return isSeen && last.status?.phase === phase ? last : undefined;
      });
    } catch (cause) {
      const tail = this.device.process.daemon.tail(8);
      throw new Error(`${String(cause)}\n${JSON.stringify(last?.status)}\n${tail}`, { cause });
    }
  }

  async want(tether: TetherSpec | null): Promise<void> {
    const body = { spec: { tether } };
    await this.device.client.patch(clusterModes, { name: CLUSTER_MODE }, { type: 'merge', body });
  }

  /** What the company lends to anyone; by default to those who bring a token. */
  async allow(more: Partial<SharingPolicySpec>): Promise<void> {
    const spec = { peers: { anyone: true as const }, approval: 'Token' as const, ...more };
    const body = { apiVersion: VERSION, kind: 'SharingPolicy', metadata: { name: 'devices' }, spec };
    const apply = { type: 'apply', body, fieldManager: 'test', force: true } as const;
    await this.company.client.patch(sharingPolicies, { name: 'devices' }, apply);
  }

  /** Makes the company known to the device. */
  async introduce(): Promise<void> {
    const { id: clusterID, process } = this.company;
    await this.device.client.create(foreignClusters, {
      apiVersion: VERSION,
      kind: 'ForeignCluster',
      metadata: { name: 'company' },
      spec: { clusterID, endpoint: process.endpoint },
    });
  }

  /** Those that are not ending. */
  async podsOf(city: City, namespace: string): Promise<Pod[]> {
    const { items } = await city.client.list(pods, { namespace });
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  async runningOn(city: City, namespace: string, node: string, name = ''): Promise<Pod> {
    return until(`a pod of ${namespace} runs on ${node} in ${city.name}`, async () =>
      (await this.podsOf(city, namespace)).find(
        ({ metadata, spec, status }) =>
          metadata.name.startsWith(name) && spec?.nodeName === node && status?.phase === 'Running',
      ),
    );
  }

  /** The name of a Node that stands for neither of the two. */
  async realNodeOf(city: City): Promise<string> {
    const virtual = new Set([this.device.name, this.company.name]);
    const { items } = await city.client.list(nodes);
    const real = items.find(({ metadata }) => !virtual.has(metadata.name));
    if (real === undefined) throw new Error(`no node of its own in ${city.name}`);
    return real.metadata.name;
  }

  /** Says of a node of the company whether it takes pods. The one of the device comes a moment after the tether has begun. */
  async cordon(name: string, unschedulable: boolean): Promise<void> {
    const body = { spec: { unschedulable } };
    await until(`${this.company.name} has a node ${name}`, async () =>
      this.company.client.patch(nodes, { name }, { type: 'merge', body }).catch(ignoring('NotFound')),
    );
  }

  get #file(): string {
    return join(this.#folder, this.device.name);
  }

  /** A kubeconfig of an account in the namespace of the program. */
  async #account(): Promise<string> {
    const { device } = this;
    await this.at(device, '-n', 'tributary-system', 'create', 'serviceaccount', 'all');
    const binding = ['create', 'clusterrolebinding', 'lab-all', '--clusterrole=cluster-admin'];
    await this.at(device, ...binding, '--serviceaccount=tributary-system:all');
    const token = await this.at(device, '-n', 'tributary-system', 'create', 'token', 'all', '--duration=2h');
    writeFileSync(this.#file, readFileSync(device.cluster.kubeconfig));
    const here = [this.#kubectl, '--kubeconfig', this.#file, 'config'] as const;
    const user = (await run([...here, 'view', '-o', 'jsonpath={.contexts[0].context.user}'])).trim();
    await run([...here, 'unset', `users.${user}`]);
    await run([...here, 'set-credentials', user, `--token=${token.trim()}`]);
    return this.#file;
  }
}
