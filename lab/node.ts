/**
 * A real node: containerd, kubelet and kube-proxy in a network namespace, the first two also in a mount namespace
 * where the paths compiled into them are the node's own. Their mounts and sockets end with their processes.
 */
import { existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { createCgroup, removeCgroup } from './cgroups.ts';
import type { ClusterPki } from './cluster-pki.ts';
import { run, type RunOptions } from './run.ts';
import { Daemon, type DaemonSpec, FRUGAL } from './daemon.ts';
import { hardenedSpec } from './hardened-runtime.ts';
import { NODE_PATHS } from './host.ts';
import type { Journal } from './journal.ts';
import { knownDaemons, ownerOf } from './known-daemons.ts';
import { renderKubeconfig } from './kubeconfig.ts';
import { policyEngine } from './network-policy/engine.ts';
import { cniTemplate, containerdToml, kubeletConfig, proxyConfig, type NodeFiles } from './node-config.ts';
import { bridgeAddress } from './network.ts';
import { processesOn } from './node-processes.ts';
import { hostsToml, REGISTRY_PORT } from './registry.ts';
import { killAll } from './process.ts';
import type { ClusterSpec, LabSpec, NodeSpec } from './spec.ts';
import { resetNetwork, setCable } from './underlay.ts';

export interface NodeOptions {
  readonly lab: LabSpec;
  readonly cluster: ClusterSpec;
  readonly node: NodeSpec;
  readonly journal: Journal;
}

/** Where Debian, Fedora and the upstream archive put the CNI plugins. */
const CNI_BIN_DIRECTORIES = ['/usr/lib/cni', '/usr/libexec/cni', '/opt/cni/bin'];
const OVERLAYFS_MAGIC = 0x794c7630;
const TMPFS_MAGIC = 0x01021994;
const CONTAINERD_TIMEOUT_MS = 30_000;
const KILL_MS = 10_000;

const REGISTRY = join(import.meta.dirname, 'registry.ts');

/** In the order in which they start. */
export const NODE_PROGRAMS = ['containerd', 'registry', 'kubelet', 'kube-proxy', 'network-policies'] as const;

/** First folder that holds CNI's bridge plugin. */
export function cniBinDirectory(): string | undefined {
  return CNI_BIN_DIRECTORIES.find((directory) => existsSync(join(directory, 'bridge')));
}

export class Node {
  readonly spec: NodeSpec;
  readonly #options: NodeOptions;
  readonly #data: string;

  constructor(options: NodeOptions) {
    this.spec = options.node;
    this.#options = options;
    this.#data = join(options.lab.dataDirectory, options.node.name);
  }

  get name(): string {
    return this.spec.name;
  }

  /** Name of its network namespace. */
  get netns(): string {
    return this.spec.netns;
  }

  get address(): string {
    return this.spec.address;
  }

  /** containerd's socket, for `ctr -a`. */
  get containerdSocket(): string {
    return join(this.#options.lab.runDirectory, `${this.name}.sock`);
  }

  get mountNamespace(): string {
    return join(namespaceDirectory(this.#options.lab.runDirectory), this.name);
  }

  /** Runs a program in the node's network namespace, with the files of the host; its standard output. */
  async exec(
    command: readonly [string, ...string[]],
    options: Omit<RunOptions, 'netns'> = {},
  ): Promise<string> {
    return run(command, { ...options, netns: this.netns });
  }

  /** Starts a program of the caller's in the node's network namespace; it ends with the lab at the latest. */
  spawn(
    name: string,
    command: readonly [string, ...string[]],
    env?: Readonly<Record<string, string>>,
  ): Daemon {
    return this.#start(name, command, env === undefined ? {} : { env });
  }

  /** Starts containerd, which needs no API server. */
  async startRuntime(signal?: AbortSignal): Promise<void> {
    createCgroupOf(this.#options);
    await this.#createMountNamespace();
    const files = this.#files();
    const registry = join(files.registries, '_default');
    for (const path of [files.containerdRoot, files.cniConfigDirectory, registry]) {
      mkdirSync(path, { recursive: true });
    }
    writeFileSync(join(registry, 'hosts.toml'), hostsToml);
    writeFileSync(files.cniTemplate, cniTemplate(this.spec));
    writeFileSync(
      files.resolvConf,
      `nameserver ${bridgeAddress({ ...this.#options.lab.underlay, segment: this.#options.cluster.segment })}\n`,
    );
    if (files.hardenedSpec !== undefined) writeFileSync(files.hardenedSpec, await hardenedSpec());
    const toml = join(this.#data, 'containerd.toml');
    writeFileSync(toml, containerdToml(files, snapshotterFor(this.#data)));
    const containerd = this.#start('containerd', ['containerd', '--config', toml], {
      mountNamespace: this.mountNamespace,
      // Containers would inherit timers that are late.
      env: FRUGAL.env,
    });
    const { containerdSocket, containerdRoot } = files;
    this.#start('registry', [
      process.execPath,
      REGISTRY,
      String(REGISTRY_PORT),
      containerdSocket,
      containerdRoot,
    ]);
    await this.#waitForRuntime(containerd, signal);
  }

  /** Starts kubelet and kube-proxy, which do need one. */
  async startAgents(
    programs: Readonly<Record<'kubelet' | 'kube-proxy', string>>,
    pki: ClusterPki,
    server: string,
  ): Promise<void> {
    const { cluster } = this.#options;
    const files = this.#files();
    const kubeconfig = join(this.#data, 'kubelet.kubeconfig');
    const identity = await pki.authority.issue({
      commonName: `system:node:${this.name}`,
      organizations: ['system:nodes'],
      dns: [this.name],
      ips: [this.address, '127.0.0.1'],
    });
    const proxy = await pki.authority.issue({ commonName: 'system:kube-proxy' });
    const base = { name: cluster.name, server, caCert: pki.authority.cert };
    const secret = { mode: 0o600 };
    writeFileSync(files.clientCa, pki.authority.cert);
    writeFileSync(files.servingCert, identity.cert);
    writeFileSync(files.servingKey, identity.key, secret);
    writeFileSync(kubeconfig, renderKubeconfig({ ...base, client: identity }), secret);
    writeFileSync(files.proxyKubeconfig, renderKubeconfig({ ...base, client: proxy }), secret);

    const kubeletYaml = join(this.#data, 'kubelet.yaml');
    const proxyYaml = join(this.#data, 'kube-proxy.yaml');
    writeFileSync(kubeletYaml, kubeletConfig(cluster, this.spec, files));
    writeFileSync(proxyYaml, proxyConfig(cluster, this.spec, files));
    const named = `--hostname-override=${this.name}`;
    this.#start(
      'kubelet',
      [
        programs.kubelet,
        `--config=${kubeletYaml}`,
        `--kubeconfig=${kubeconfig}`,
        named,
        `--node-ip=${this.address}`,
        '--v=2',
      ],
      { mountNamespace: this.mountNamespace, ...FRUGAL },
    );
    this.#start('kube-proxy', [programs['kube-proxy'], `--config=${proxyYaml}`, '--v=2'], FRUGAL);
    if (cluster.networkPolicies) {
      this.#start('network-policies', policyEngine({ server, pki, node: this.name }));
    }
  }

  /**
   * The machine loses its power: kubelet, containerd and the containers do not end properly, and nothing answers any
   * more. Programs started by `spawn` end for good. A control plane on it goes on with its network, as if it were on
   * another machine; `Cluster.stop` stops both.
   */
  async kill(): Promise<void> {
    const { journal, cluster } = this.#options;
    if (cluster.nodes[0]?.name !== this.name) return this.cutPower();
    journal.append({ kind: 'power', name: this.name, on: false });
    await this.#killAll(
      [...knownDaemons(journal).values()].filter(({ name }) => ownerOf(name) === cluster.name),
    );
  }

  /** Like `kill`, with the control plane if there is one. */
  async cutPower(): Promise<void> {
    const { journal, lab } = this.#options;
    journal.append({ kind: 'power', name: this.name, on: false });
    await setCable(lab, this.spec, 'out');
    await this.#killAll([]);
  }

  /**
   * The machine boots: its disk is as it was, its memory and its network are new. Resolves when its programs run;
   * Kubernetes then makes the node Ready and decides which pods run on it.
   */
  async start(signal?: AbortSignal): Promise<void> {
    await this.restorePower();
    await this.startPrograms(signal);
  }

  /** The first half of `start`: a machine as it is before any of its programs runs. */
  async restorePower(): Promise<void> {
    const { cluster, lab } = this.#options;
    await resetNetwork(cluster, this.spec);
    if (isReal(cluster)) {
      await removeCgroup(this.netns);
      createCgroup(this.netns);
      // When the last process leaves a mount namespace, its mounts disappear, including those of containers.
      await run(['umount', this.mountNamespace]).catch(() => undefined);
      rmSync(join(this.#data, 'root', 'run'), { recursive: true, force: true });
      await this.#createMountNamespace();
    }
    await setCable(lab, this.spec, 'in');
  }

  /** The second half of `start`. */
  async startPrograms(signal?: AbortSignal): Promise<void> {
    const { journal } = this.#options;
    const daemons = knownDaemons(journal);
    for (const name of NODE_PROGRAMS) {
      const daemon = daemons.get(`${this.name}/${name}`);
      daemon?.start();
      if (name === 'containerd' && daemon) await this.#waitForRuntime(daemon, signal);
    }
    journal.append({ kind: 'power', name: this.name, on: true });
  }

  /** Cuts its network: everything on it goes on, and cannot be reached. */
  async freeze(): Promise<void> {
    await setCable(this.#options.lab, this.spec, 'out');
  }

  /** The end of `freeze`. */
  async thaw(): Promise<void> {
    await setCable(this.#options.lab, this.spec, 'in');
  }

  /** Imports an OCI or docker archive into the node's containerd. */
  async loadImage(archive: string, signal?: AbortSignal): Promise<void> {
    await run(['ctr', '-a', this.containerdSocket, '-n', 'k8s.io', 'images', 'import', archive], {
      signal,
      timeoutMs: 300_000,
    });
  }

  #start(
    name: string,
    command: readonly [string, ...string[]],
    extra: Pick<DaemonSpec, 'env' | 'mountNamespace' | 'timerSlackMs'> = {},
  ): Daemon {
    const spec: DaemonSpec = {
      name: `${this.name}/${name}`,
      command,
      netns: this.netns,
      logFile: join(this.#data, 'log', `${name}.log`),
      ...extra,
    };
    return Daemon.start(spec, this.#options.journal);
  }

  async #waitForRuntime(containerd: Daemon, signal?: AbortSignal): Promise<void> {
    await containerd.waitFor('its socket', async () => this.#ctr(['version']), {
      timeoutMs: CONTAINERD_TIMEOUT_MS,
      signal,
    });
  }

  async #killAll(spared: readonly Daemon[]): Promise<void> {
    const pids = new Set(spared.map(({ id }) => id?.pid));
    await killAll(() => processesOn(this).filter(({ pid }) => !pids.has(pid)), KILL_MS);
  }

  async #ctr(args: readonly string[]): Promise<boolean> {
    if (!existsSync(this.containerdSocket)) return false;
    try {
      await run(['ctr', '-a', this.containerdSocket, ...args], { timeoutMs: 2_000 });
      return true;
    } catch {
      return false;
    }
  }

  /** Every mount is private: the host does not see what a node mounts, and nothing is left on the host. */
  async #createMountNamespace(): Promise<void> {
    const binds = NODE_PATHS.map((path) => {
      const own = join(this.#data, 'root', path);
      mkdirSync(own, { recursive: true });
      return `mount --bind ${own} ${path}`;
    });
    mkdirSync(dirname(this.mountNamespace), { recursive: true });
    writeFileSync(this.mountNamespace, '');
    // Shared again inside, for pods that ask for mount propagation; nobody outside is in that group.
    const script = [...binds, 'mount --make-rshared /'].join(' && ');
    await run(['unshare', `--mount=${this.mountNamespace}`, '--propagation=private', 'sh', '-c', script]);
  }

  #files(): NodeFiles {
    const at = (name: string): string => join(this.#data, name);
    return {
      containerdSocket: this.containerdSocket,
      registries: at('registries'),
      containerdRoot: at('containerd'),
      cniConfigDirectory: at('cni'),
      cniTemplate: at('cni-template.json'),
      cniBinDirectory: cniBinDirectory() ?? '/opt/cni/bin',
      resolvConf: at('resolv.conf'),
      clientCa: at('ca.crt'),
      servingCert: at('kubelet.crt'),
      servingKey: at('kubelet.key'),
      proxyKubeconfig: at('kube-proxy.kubeconfig'),
      hardenedSpec: this.#options.cluster.hardenedRuntime ? at('hardened-spec.json') : undefined,
    };
  }
}

/** Where mount namespaces are kept. It has to be a private mount, made once per lab. */
export const namespaceDirectory = (runDirectory: string): string => join(runDirectory, 'ns');

/** Makes the folder in which mount namespaces can be kept alive. */
export async function createNamespaceDirectory(runDirectory: string): Promise<void> {
  const directory = namespaceDirectory(runDirectory);
  mkdirSync(directory, { recursive: true });
  await run(['mount', '--bind', directory, directory]);
  // The kernel refuses to keep a mount namespace where its own mount would propagate into it.
  await run(['mount', '--make-private', directory]);
}

/** Overlays cannot lie on every file system; copying is slow and always works. */
export function snapshotterFor(directory: string): string {
  const { type } = statfsSync(directory);
  return type === OVERLAYFS_MAGIC || type === TMPFS_MAGIC ? 'native' : 'overlayfs';
}

const isReal = ({ workload }: ClusterSpec): boolean => workload === 'containers';

function createCgroupOf({ journal, node }: NodeOptions): void {
  journal.append({ kind: 'cgroup', name: node.netns });
  createCgroup(node.netns);
}
