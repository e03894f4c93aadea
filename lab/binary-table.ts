/** Which programs the lab runs, from which Go module each is built, and how a ready-made one tells its version. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { shortHash } from './cache.ts';

export type BinaryName =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'kubectl'
  | 'coredns'
  | 'kwok'
  | 'metrics-server'
  | 'local-path-provisioner'
  | 'wireguard-go'
  | 'pause';

/** A Go module under lab/binaries and the programs it pins. One more program is one more row. */
export interface BinaryModule {
  readonly name: string;
  /** Program name -> Go package. */
  readonly programs: Readonly<Partial<Record<BinaryName, string>>>;
  /** What `-X` sets, beside `-s -w`. */
  readonly variables?: (version: string) => Readonly<Record<string, string>>;
  /**
   * The arguments that make a program on the PATH print its version. Absent: such a program is never taken,
   * since the lab puts it into an image and so needs it without shared libraries.
   */
  readonly versionArguments?: (program: string) => readonly string[];
  /** Built only where it is named: not every lab wants it. */
  readonly optional?: boolean;
}

const kubernetes = (program: string): string => `k8s.io/kubernetes/cmd/${program}`;

export const modules: readonly BinaryModule[] = [
  {
    name: 'kubernetes',
    programs: {
      'kube-apiserver': kubernetes('kube-apiserver'),
      'kube-controller-manager': kubernetes('kube-controller-manager'),
      'kube-scheduler': kubernetes('kube-scheduler'),
      kubelet: kubernetes('kubelet'),
      'kube-proxy': kubernetes('kube-proxy'),
      kubectl: kubernetes('kubectl'),
    },
    variables: (version) => {
      const [major = '', minor = ''] = version.replace(/^v/, '').split('.');
      const prefix = 'k8s.io/component-base/version';
      return {
        [`${prefix}.gitVersion`]: version,
        [`${prefix}.gitMajor`]: major,
        [`${prefix}.gitMinor`]: minor,
      };
    },
    versionArguments: (program) => (program === 'kubectl' ? ['version', '--client'] : ['--version']),
  },
  {
    name: 'etcd',
    programs: { etcd: 'go.etcd.io/etcd/server/v3' },
    versionArguments: () => ['--version'],
  },
  { name: 'kwok', programs: { kwok: 'sigs.k8s.io/kwok/cmd/kwok' }, versionArguments: () => ['--version'] },
  { name: 'coredns', programs: { coredns: 'github.com/coredns/coredns' } },
  { name: 'metrics-server', programs: { 'metrics-server': 'sigs.k8s.io/metrics-server/cmd/metrics-server' } },
  {
    name: 'local-path',
    programs: { 'local-path-provisioner': 'github.com/rancher/local-path-provisioner' },
    optional: true,
  },
  // Debian's own is four years old and five times slower; versionArguments are absent, since it must be static.
  { name: 'wireguard', programs: { 'wireguard-go': 'golang.zx2c4.com/wireguard' } },
  { name: 'pause', programs: { pause: '.' } },
];

/** What every lab of containers runs. */
export const standardPrograms = (): BinaryName[] =>
  modules.filter(({ optional = false }) => !optional).flatMap(programNames);

export const programNames = (module: BinaryModule): BinaryName[] =>
  Object.keys(module.programs) as BinaryName[];

/** Where a module's go.mod lies. */
export const moduleDir = (module: BinaryModule): string => join(import.meta.dirname, 'binaries', module.name);

/** The name of a module's cache entry: its own sources count, where it has any, beside go.mod and go.sum. */
export function moduleKey(dir: string, name: string): string {
  const parts = ['go.mod', 'go.sum', 'main.go'].map((file) => {
    try {
      return readFileSync(join(dir, file));
    } catch {
      return '';
    }
  });
  return `${name}-${shortHash(...parts)}`;
}

/** The version that go.mod pins for the first direct requirement, as in `v1.36.3`; empty where there is none. */
export const pinnedVersion = (goMod: string): string => /^require \S+ (v\S+)/m.exec(goMod)?.[1] ?? '';

/** Whether a program's own words about its version name the pinned one and not merely a longer or older one. */
export function statesVersion(output: string, pinned: string): boolean {
  const bare = pinned.replace(/^v/, '');
  return bare !== '' && output.split(/[^0-9A-Za-z.+-]+/).some((word) => word === bare || word === `v${bare}`);
}
