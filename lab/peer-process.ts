/**
 * Tributary as one process (role `all`) in the network of a cluster's first node: for clusters whose containers are
 * only pretended, and for tests that kill it. It reaches the API server as the kubeconfig's user says.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import type { Cluster } from './cluster.ts';
import type { Daemon } from './daemon.ts';
import type { KubeObject } from './kube-api.ts';

const repository = join(import.meta.dirname, '..');
const PEERING_PORT = 7443;

export interface PeerProcessOptions {
  /** Options of the command line besides those that the lab knows, by long name. */
  readonly options?: Readonly<Record<string, string>>;
  /** Folder of another checkout to run, for tests of different versions; its modules must be installed. */
  readonly checkout?: string;
  /** Default: the cluster's administrator. */
  readonly kubeconfig?: string;
}

export class PeerProcess {
  readonly cluster: Cluster;
  readonly daemon: Daemon;

  private constructor(cluster: Cluster, daemon: Daemon) {
    this.cluster = cluster;
    this.daemon = daemon;
  }

  /** `host:port` at which other clusters of the lab can dial it. */
  get endpoint(): string {
    return `${this.cluster.node().address}:${PEERING_PORT}`;
  }

  /** Everything it has logged, also in earlier lives. */
  get log(): string {
    return readFileSync(this.daemon.spec.logFile, 'utf8');
  }

  /** Makes what it needs in the cluster: the kinds and the namespace. */
  static async prepare(cluster: Cluster): Promise<void> {
    await cluster.api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tributary-system' } });
    const folder = join(repository, 'deploy', 'crds');
    const files = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
    await cluster.api.apply(...files.map((text) => parse(text) as KubeObject));
  }

  static start(cluster: Cluster, given: PeerProcessOptions = {}): PeerProcess {
    const { address } = cluster.node();
    const options: Record<string, string> = {
      kubeconfig: given.kubeconfig ?? cluster.kubeconfig,
      'cluster-name': cluster.name,
      'node-address': address,
      'peering-port': String(PEERING_PORT),
      advertise: `${address}:${PEERING_PORT}`,
      'home-api-server': new URL(cluster.server).host,
      'log-level': 'debug',
      ...given.options,
    };
    const { checkout = repository } = given;
    return new PeerProcess(
      cluster,
      cluster.node().spawn('tributary', [
        process.execPath,
        join(checkout, 'src/main.ts'),
        'all',
        ...Object.entries(options)
          .filter(([, value]) => value !== '')
          .flatMap(([name, value]) => [`--${name}`, value]),
      ]),
    );
  }
}
