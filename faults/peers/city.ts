/** One cluster of a pair, with Tributary in it as one process that reaches its own API server through a proxy. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Cluster } from '../../lab/cluster.ts';
import type { KubeApi, KubeObject } from '../../lab/kube-api.ts';
import type { Lab } from '../../lab/lab.ts';
import { rootAddress } from '../../lab/network.ts';
import { PeerProcess } from '../../lab/peer-process.ts';
import { adminToken, kubeconfigWith } from '../access.ts';
import { type FaultProxy, proxyOf } from '../proxy/proxy.ts';
import { until } from '../until.ts';

export const VERSION = 'tributary.dev/v1alpha1';
const SYSTEM = 'tributary-system';

interface Listed<T> {
  items: T[];
}

/** What faults need to know of a ForeignCluster. */
interface Foreign extends KubeObject {
  status?: {
    clusterID?: string;
    link?: { connected: boolean };
    incoming?: { phase: string };
    outgoing?: { phase: string; reason?: string; message?: string };
  };
}

export class City {
  readonly cluster: Cluster;
  readonly proxy: FaultProxy;
  readonly #kubeconfig: string;
  readonly #checkout: string;
  readonly #onStart: (pid: number) => void;
  readonly #onKill: (pid: number) => void;
  #process: PeerProcess | undefined;
  #id = '';

  private constructor(parts: {
    cluster: Cluster;
    proxy: FaultProxy;
    kubeconfig: string;
    checkout: string;
    onStart: (pid: number) => void;
    onKill: (pid: number) => void;
  }) {
    this.cluster = parts.cluster;
    this.proxy = parts.proxy;
    this.#kubeconfig = parts.kubeconfig;
    this.#checkout = parts.checkout;
    this.#onStart = parts.onStart;
    this.#onKill = parts.onKill;
  }

  /** `checkout`: of the program. `onStart` and `onKill` are told the process. */
  static async open(
    lab: Lab,
    name: string,
    given: { checkout: string; onStart: (pid: number) => void; onKill: (pid: number) => void },
  ): Promise<City> {
    const cluster = lab.cluster(name);
    await PeerProcess.prepare(cluster);
    const proxy = await proxyOf(cluster, rootAddress(lab.spec.underlay));
    // As in a cluster, the program is no member of system:masters: what a tether forbids to those, it forbids to them all.
    const token = await adminToken(cluster, { namespace: SYSTEM, name: 'all' });
    const kubeconfig = join(lab.spec.dataDirectory, `${name}.proxy.kubeconfig`);
    writeFileSync(kubeconfig, JSON.stringify(kubeconfigWith(cluster, proxy.url, token)), { mode: 0o600 });
    return new City({ ...given, cluster, proxy, kubeconfig });
  }

  get name(): string {
    return this.cluster.name;
  }

  get api(): KubeApi {
    return this.cluster.api;
  }

  /** Its ClusterID; known once it has run. */
  get id(): string {
    return this.#id;
  }

  /** `host:port` where the other one can dial it. */
  get endpoint(): string {
    return this.#started.endpoint;
  }

  get logFile(): string {
    return this.#started.daemon.spec.logFile;
  }

  get #started(): PeerProcess {
    if (this.#process === undefined) throw new Error(`${this.name} was never started`);
    return this.#process;
  }

  start(): void {
    this.#process = PeerProcess.start(this.cluster, {
      kubeconfig: this.#kubeconfig,
      checkout: this.#checkout,
      options: { 'log-level': 'info' },
    });
    const { id } = this.#process.daemon;
    if (id !== undefined) this.#onStart(id.pid);
  }

  async run(): Promise<void> {
    this.start();
    await until(`the ClusterID of ${this.name}`, async () => {
      const path = `/api/v1/namespaces/${SYSTEM}/configmaps/tributary-announcement`;
      const map = await this.api.get<{ data?: Record<string, string> }>(path);
      this.#id = map?.data?.['clusterID'] ?? '';
      return this.#id === '' ? JSON.stringify(map?.data) : true;
    });
  }

  /** kill -9; resolves when it has gone. */
  async kill(): Promise<void> {
    const daemon = this.#process?.daemon;
    const { pid } = daemon?.id ?? {};
    if (pid !== undefined) this.#onKill(pid);
    await daemon?.kill();
  }

  async restart(): Promise<void> {
    await this.kill();
    this.start();
  }

  tail(lines = 25): string {
    return this.#process?.daemon.tail(lines) ?? '';
  }

  async list<T extends KubeObject>(path: string): Promise<T[]> {
    return (await this.api.get<Listed<T>>(path))?.items ?? [];
  }

  async patch(path: string, body: object): Promise<void> {
    const { status, body: said } = await this.api.call('PATCH', path, body, 'application/merge-patch+json');
    if (status >= 300) throw new Error(`PATCH ${path}: ${status} ${said}`);
  }

  async remove(path: string): Promise<void> {
    const { status, body } = await this.api.call('DELETE', path);
    if (status >= 300 && status !== 404) throw new Error(`DELETE ${path}: ${status} ${body}`);
  }

  /** What it knows of the other one. */
  async foreign(id: string): Promise<Foreign | undefined> {
    const all = await this.list<Foreign>(`/apis/${VERSION}/foreignclusters`);
    return all.find(({ status, metadata }) => status?.clusterID === id || metadata.name === id);
  }
}
