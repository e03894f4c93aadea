/**
 * Tributary as one process (role `all`) in the network of a cluster's first node: for clusters with pretended
 * containers, and for tests that kill it. It uses the API server as the user of the kubeconfig.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parseAllDocuments } from 'yaml';

import { binaries } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import type { Daemon } from './daemon.ts';
import { mainModule } from './own-program.ts';
import { run } from './run.ts';

const repository = join(import.meta.dirname, '..');
const PEERING_PORT = 7443;

const sources = (checkout: string): string => join(checkout, 'src/main.ts');
const main = (checkout: string): string => (checkout === repository ? mainModule() : sources(checkout));

/** How a checkout runs the role `all`: in older ones, roles are commands like all others. */
export const roleAll = (checkout: string): string[] =>
  existsSync(join(checkout, 'src/cli/run.ts')) ? ['run', 'all'] : ['all'];

export interface PeerProcessOptions {
  /** Instead of `all`. */
  readonly role?: 'cluster';
  /** Options of the command line besides those that the lab knows, by long name. */
  readonly options?: Readonly<Record<string, string>>;
  /** Folder of another checkout to run, for tests of different versions; its modules must be installed. */
  readonly checkout?: string;
  /** Flags of Node.js and the main module; default: mainModule, or the sources of another checkout. */
  readonly program?: readonly string[];
  /** Modules that are loaded before the program, which is the sources then: they reach into its modules. */
  readonly imports?: readonly string[];
  /** Default: the cluster's administrator. */
  readonly kubeconfig?: string;
}

/** By checkout and arguments: all clusters of a lab are given the same. */
const manifests = new Map<string, Promise<string>>();

async function printed(checkout: string, what: readonly string[]): Promise<string> {
  const command = [process.execPath, main(checkout), 'manifests', ...what] as const;
  const key = command.join(' ');
  const text = manifests.get(key) ?? run(command);
  manifests.set(key, text);
  return text;
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

  /** Everything that it has logged, also before it was started again. */
  get log(): string {
    return readFileSync(this.daemon.spec.logFile, 'utf8');
  }

  /** Applies what `tributary manifests` prints for the role `cluster`, but for the pods. */
  static async prepare(cluster: Cluster, checkout: string = repository): Promise<void> {
    const { kubectl } = await binaries(undefined, ['kubectl']);
    for (const what of [['crds'], ['cluster', '--image', 'none']]) {
      const objects = parseAllDocuments(await printed(checkout, what)).map(
        (document) => document.toJS() as { kind?: string },
      );
      const applied = objects.filter((object) => object?.kind !== 'Deployment');
      await run([kubectl, '--kubeconfig', cluster.kubeconfig, 'apply', '--server-side', '-f', '-'], {
        stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: applied }),
      });
    }
  }

  static start(cluster: Cluster, given: PeerProcessOptions = {}): PeerProcess {
    const { address } = cluster.node();
    const options: Record<string, string> = {
      kubeconfig: given.kubeconfig ?? cluster.kubeconfig,
      'cluster-name': cluster.name,
      ...(given.role === undefined && { 'node-address': address }),
      'peering-port': String(PEERING_PORT),
      advertise: `${address}:${PEERING_PORT}`,
      'home-api-server': new URL(cluster.server).host,
      'log-level': 'debug',
      ...given.options,
    };
    const { checkout = repository, imports = [] } = given;
    const { program = [imports.length === 0 ? main(checkout) : sources(checkout)] } = given;
    return new PeerProcess(
      cluster,
      cluster.node().spawn('tributary', [
        process.execPath,
        ...imports.map((path) => `--import=${path}`),
        ...program,
        ...(given.role === undefined ? roleAll(checkout) : ['run', given.role]),
        ...Object.entries(options)
          .filter(([, value]) => value !== '')
          .flatMap(([name, value]) => [`--${name}`, value]),
      ]),
    );
  }
}
