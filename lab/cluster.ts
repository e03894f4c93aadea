/** A cluster of a running lab, as tests and demos use it. */
import { ClusterPki } from './cluster-pki.ts';
import { waitForMetrics } from './containers.ts';
import type { Daemon } from './daemon.ts';
import type { ClusterAccess, Journal } from './journal.ts';
import { KubeApi } from './kube-api.ts';
import { renderKubeconfig } from './kubeconfig.ts';
import { knownDaemons, ownerOf } from './known-daemons.ts';
import { Node } from './node.ts';
import type { Subject } from './pki.ts';
import type { ClusterSpec, LabSpec } from './spec.ts';
import { together } from './together.ts';

const START_TIMEOUT_MS = 120_000;

export class Cluster {
  readonly spec: ClusterSpec;
  /** https://ADDRESS:PORT, reachable from the root network namespace and from every node and pod of the lab. */
  readonly server: string;
  /** Path of a kubeconfig of a member of system:masters. */
  readonly kubeconfig: string;
  /** The cluster's keys; `pki.authority.issue` makes client and serving certificates that it trusts. */
  readonly pki: ClusterPki;
  /** Plain calls as system:masters. */
  readonly api: KubeApi;
  /** Real nodes, the one with the control plane first; with kwok that one, on the underlay, or none. */
  readonly nodes: readonly Node[];
  readonly #journal: Journal;

  private constructor(
    options: { lab: LabSpec; cluster: ClusterSpec; journal: Journal; access: ClusterAccess },
    pki: ClusterPki,
  ) {
    this.spec = options.cluster;
    this.server = options.access.server;
    this.kubeconfig = options.access.kubeconfig;
    this.pki = pki;
    this.api = new KubeApi({ server: this.server, caCert: pki.authority.cert, client: pki.admin });
    this.nodes = options.cluster.nodes.map((node) => new Node({ ...options, node }));
    this.#journal = options.journal;
  }

  static async open(options: {
    lab: LabSpec;
    cluster: ClusterSpec;
    journal: Journal;
    access: ClusterAccess;
  }): Promise<Cluster> {
    return new Cluster(options, await ClusterPki.load(options.access.pkiDirectory));
  }

  get name(): string {
    return this.spec.name;
  }

  /** A node by its Kubernetes name; without one, the first. */
  node(name?: string): Node {
    const found = name === undefined ? this.nodes[0] : this.nodes.find((node) => node.name === name);
    if (!found) throw new Error(`cluster ${this.name} has no node ${name ?? ''}`);
    return found;
  }

  /**
   * One daemon, to kill, stop or restart it: `kube-apiserver`, `etcd`, `kube-controller-manager`, `kube-scheduler`;
   * `kubelet`, `kube-proxy` and `containerd` are those of the first node, `home-2/kubelet` that of another.
   */
  daemon(name: string): Daemon {
    const daemons = knownDaemons(this.#journal);
    const first = this.spec.nodes[0]?.name ?? '';
    const found = daemons.get(name) ?? daemons.get(`${this.name}/${name}`) ?? daemons.get(`${first}/${name}`);
    if (!found)
      throw new Error(`cluster ${this.name} has no daemon ${name}: ${[...daemons.keys()].join(' ')}`);
    return found;
  }

  /** The machines of all nodes and of the control plane lose their power at once; etcd's data stay as they are. */
  async stop(): Promise<void> {
    this.#journal.append({ kind: 'power', name: this.name, on: false });
    this.api.close();
    await Promise.all([
      ...this.#controlPlane().map(async (daemon) => daemon.kill()),
      ...this.nodes.map(async (node) => node.cutPower()),
    ]);
  }

  /** The end of `stop`; resolves when the API server is ready and the programs of all nodes run. */
  async start(signal?: AbortSignal): Promise<void> {
    await Promise.all(this.nodes.map(async (node) => node.restorePower()));
    const [etcd, apiServer, ...others] = this.#controlPlane();
    etcd?.start();
    apiServer?.start();
    const isReady = async (): Promise<boolean> => this.api.isReady();
    await apiServer?.waitFor('/readyz', isReady, { timeoutMs: START_TIMEOUT_MS, signal });
    for (const daemon of others) daemon.start();
    await together(
      signal,
      this.nodes.map((node) => async (signal: AbortSignal) => node.startPrograms(signal)),
    );
    this.#journal.append({ kind: 'power', name: this.name, on: true });
  }

  /** In the order in which they were started at first: etcd, API server, the rest. */
  #controlPlane(): Daemon[] {
    return [...knownDaemons(this.#journal).values()].filter(({ name }) => ownerOf(name) === this.name);
  }

  /** The text of a kubeconfig for anybody, with a new client certificate. */
  async kubeconfigFor(subject: Subject): Promise<string> {
    return renderKubeconfig({
      name: this.name,
      server: this.server,
      caCert: this.pki.authority.cert,
      client: await this.pki.authority.issue(subject),
    });
  }

  /** Imports an OCI or docker archive into every node. */
  async loadImage(archive: string, signal?: AbortSignal): Promise<void> {
    if (this.spec.workload === 'kwok')
      throw new Error(`cluster ${this.name} only pretends to run containers`);
    await together(
      signal,
      this.nodes.map((node) => async (signal: AbortSignal) => node.loadImage(archive, signal)),
    );
  }

  /** Waits until `kubectl top nodes` would answer for every node; `up` does not. */
  async waitForMetrics(signal?: AbortSignal): Promise<void> {
    await waitForMetrics(this.api, this.spec, signal);
  }
}
