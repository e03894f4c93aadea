/** What a test file can use: both clusters, its own namespace, kubectl. */
import { join } from 'node:path';

import { binaries } from '../../../../lab/binaries.ts';
import { tenantOf } from '../../../../lab/demo/by-hand.ts';
import { onTerminal, Program, type Ended, type ProgramOptions } from '../../../../lab/demo/program.ts';
import { Lab } from '../../../../lab/lab.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { ClusterApi, deploymentPath, podPath } from '../../../support/e2e/api.ts';
import { E2E_LAB, upE2eLab, type E2eNamespace } from '../../../support/e2e/lab.ts';
import { isReady } from '../../../support/e2e/pods.ts';
import { until } from '../../../support/e2e/until.ts';

export interface KubectlOptions extends ProgramOptions {
  /** Default: home, in the file's namespace. */
  readonly cluster?: 'home' | 'foreign';
}

/** The two streaming protocols of kubectl; the environment chooses one. */
export const TRANSPORTS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['WebSocket', {}],
  ['SPDY', { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' }],
];

export class World {
  readonly lab: Lab;
  readonly home: ClusterApi;
  readonly foreign: ClusterApi;
  /** The home namespace of this file, and where its pods run. */
  readonly namespace: string;
  readonly tenant: string;
  readonly #kubectl: string;

  private constructor(lab: Lab, namespace: string, kubectl: string) {
    this.lab = lab;
    this.home = new ClusterApi(lab.cluster('home'));
    this.foreign = new ClusterApi(lab.cluster('foreign'));
    this.namespace = namespace;
    this.tenant = tenantOf(namespace);
    this.#kubectl = kubectl;
  }

  static async open(namespace: E2eNamespace): Promise<World> {
    await upE2eLab();
    const [lab, { kubectl }] = await Promise.all([Lab.open(E2E_LAB), binaries(undefined, ['kubectl'])]);
    return new World(lab, namespace, kubectl);
  }

  /** Removes what the file has made, so that the next file has all the room. */
  async close(): Promise<void> {
    const { home, namespace } = this;
    await home.remove(deploymentPath(namespace));
    await home.remove(`/apis/batch/v1/namespaces/${namespace}/jobs?propagationPolicy=Background`);
    await home.remove(podPath(namespace), { gracePeriodSeconds: 0 });
    await until('no pods left in the namespace', async () => (await home.pods(namespace)).length === 0);
    for (const cluster of this.lab.clusters) cluster.api.close();
  }

  /** Runs kubectl to its end, whatever its exit code. */
  async kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<Ended> {
    return this.start(args, options).ended;
  }

  /** Runs kubectl and returns its standard output; throws unless it ends with 0. */
  async ask(args: readonly string[], options: KubectlOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.kubectl(args, options);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit code ${code}: ${stderr}${stdout}`);
    return stdout;
  }

  /**
   * How many bytes kubectl writes. They do not pass through this process, which may be slow: without the virtual node, too, kubectl
   * pings a server that has said all and gone, and loses to the reset what its reader has not taken yet.
   */
  async bytesOf(args: readonly string[]): Promise<number> {
    const command = ['sh', '-c', '"$0" "$@" | wc -c', ...this.#command(args, {})] as const;
    const { stdout, stderr } = await Program.start(command, this.#options({ timeoutMs: 60_000 })).ended;
    if (stderr !== '') throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return Number(stdout);
  }

  /** Starts kubectl. */
  start(args: readonly string[], options: KubectlOptions = {}): Program {
    return Program.start(this.#command(args, options), this.#options(options));
  }

  /** Starts kubectl on a terminal of that size, and leaves its input open. */
  startOnTerminal(
    args: readonly string[],
    size: { rows: number; columns: number },
    options: KubectlOptions = {},
  ): Program {
    const quoted = this.#command(args, options).map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`);
    return Program.start(onTerminal(quoted.join(' '), size), this.#options({ keepStdin: true, ...options }));
  }

  #command(args: readonly string[], { cluster = 'home' }: KubectlOptions): [string, ...string[]] {
    const { kubeconfig } = this.lab.cluster(cluster);
    const namespace = cluster === 'home' ? this.namespace : this.tenant;
    return [this.#kubectl, `--kubeconfig=${kubeconfig}`, `--namespace=${namespace}`, ...args];
  }

  #options({ env, ...options }: KubectlOptions): ProgramOptions {
    const KUBECACHEDIR = join(this.lab.spec.dataDirectory, 'kube-cache');
    return { ...options, env: { KUBECACHEDIR, ...env } };
  }

  /** Creates a home pod and waits until it is Ready at home. */
  async runPod(pod: object, seconds?: number): Promise<Pod> {
    const { metadata } = await this.home.create(podPath(this.namespace), pod);
    return this.untilPod(metadata.name, 'Ready', isReady, seconds);
  }

  /** Waits until the home pod is as wanted, and returns it. */
  async untilPod(name: string, what: string, isSo: (pod: Pod) => boolean, seconds?: number): Promise<Pod> {
    const read = async (): Promise<Pod | undefined> => this.home.pod(this.namespace, name);
    return until(
      `home pod ${name} ${what}`,
      async () => {
        const pod = await read();
        return pod !== undefined && isSo(pod) && pod;
      },
      {
        ...(seconds !== undefined && { seconds }),
        seen: async () => ({ home: (await read())?.status, remote: (await this.remote(name))?.status }),
      },
    );
  }

  /** The remote pod of that name. */
  async remote(name: string): Promise<Pod | undefined> {
    return this.foreign.pod(this.tenant, name);
  }

  /** Waits until the remote pod is as wanted, and returns it. */
  async untilRemote(name: string, what: string, isSo: (pod: Pod) => boolean): Promise<Pod> {
    return until(
      `remote pod ${name} ${what}`,
      async () => {
        const pod = await this.remote(name);
        return pod !== undefined && isSo(pod) && pod;
      },
      {
        seen: async () => {
          const home = await this.home.pod(this.namespace, name);
          const there = await this.remote(name);
          return [home, there].map((pod) => pod && { metadata: pod.metadata, status: pod.status });
        },
      },
    );
  }

  /** Waits until neither cluster has a pod of that name. */
  async untilGone(name: string): Promise<void> {
    await until(`pod ${name} gone at home and over there`, async () => {
      const both = await Promise.all([this.home.pod(this.namespace, name), this.remote(name)]);
      return both.every((pod) => pod === undefined);
    });
  }

  /** Messages of the events about an object of the home namespace. */
  async events(name: string): Promise<string[]> {
    const found = await this.home.list<{ reason: string; message: string }>(
      `/api/v1/namespaces/${this.namespace}/events?fieldSelector=involvedObject.name%3D${name}`,
    );
    return found.map(({ reason, message }) => `${reason}: ${message}`);
  }
}
