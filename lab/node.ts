/**
 * A real node: containerd, kubelet and kube-proxy in a network namespace, the first two also in a mount namespace
 * where the paths compiled into them are the node's own. Their mounts and sockets end with their processes.
 */
import { existsSync, mkdirSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { createCgroup } from './cgroups.ts';
import type { ClusterPki } from './cluster-pki.ts';
import { run, type RunOptions } from './run.ts';
import { Daemon, type DaemonSpec } from './daemon.ts';
import { NODE_PATHS } from './host.ts';
import type { Journal } from './journal.ts';
import { renderKubeconfig } from './kubeconfig.ts';
import { cniTemplate, containerdToml, kubeletConfig, proxyConfig, type NodeFiles } from './node-config.ts';
import type { ClusterSpec, LabSpec, NodeSpec } from './spec.ts';
import { bridgeAddress } from './network.ts';

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
    for (const path of [files.containerdRoot, files.cniConfigDirectory]) {
      mkdirSync(path, { recursive: true });
    }
    writeFileSync(files.cniTemplate, cniTemplate(this.spec));
    writeFileSync(
      files.resolvConf,
      `nameserver ${bridgeAddress({ ...this.#options.lab.underlay, segment: this.#options.cluster.segment })}\n`,
    );
    const toml = join(this.#data, 'containerd.toml');
    writeFileSync(toml, containerdToml(files, snapshotterFor(this.#data)));
    const containerd = this.#start('containerd', ['containerd', '--config', toml], {
      mountNamespace: this.mountNamespace,
    });
    await containerd.waitFor('its socket', async () => this.#ctr(['version']), {
      timeoutMs: CONTAINERD_TIMEOUT_MS,
      signal,
    });
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
      { mountNamespace: this.mountNamespace },
    );
    this.#start('kube-proxy', [programs['kube-proxy'], `--config=${proxyYaml}`, '--v=2']);
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
    extra: Pick<DaemonSpec, 'env' | 'mountNamespace'> = {},
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

  async #ctr(args: readonly string[]): Promise<boolean> {
    if (!existsSync(this.containerdSocket)) return false;
    try {
      await run(['ctr', '-a', this.containerdSocket, ...args], { timeoutMs: 2_000 });
      return true;
    } catch {
      return false;
    }
  }

  /** Every mount is private to it: what a node mounts is neither seen by the host nor left behind on it. */
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
      containerdRoot: at('containerd'),
      cniConfigDirectory: at('cni'),
      cniTemplate: at('cni-template.json'),
      cniBinDirectory: cniBinDirectory() ?? '/opt/cni/bin',
      resolvConf: at('resolv.conf'),
      clientCa: at('ca.crt'),
      servingCert: at('kubelet.crt'),
      servingKey: at('kubelet.key'),
      proxyKubeconfig: at('kube-proxy.kubeconfig'),
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

function createCgroupOf({ journal, node }: NodeOptions): void {
  journal.append({ kind: 'cgroup', name: node.netns });
  createCgroup(node.netns);
}
