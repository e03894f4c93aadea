/** Which programs the lab runs, from which Go package each is built, and how an installed one prints its version. */
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
  | 'pause'
  | 'e2e'
  | 'ginkgo'
  | 'agnhost'
  | 'nonewprivs'
  | 'greeter'
  | 'helm';

export interface ProgramSource {
  /** A package of a required module, or `./folder` for one beside go.mod. */
  readonly package: string;
  /**
   * The module whose version is the program's, and the arguments that make one on the PATH print it. Absent: such a program
   * is never taken, since the lab puts it into an image and so needs it without shared libraries.
   */
  readonly fromPath?: { readonly module: string; readonly versionArguments: readonly string[] };
}

/** A Go module under lab/binaries and the programs it pins. One more program is one more row, here and in its tools.go. */
export interface BinaryModule {
  readonly name: string;
  readonly programs: Readonly<Partial<Record<BinaryName, ProgramSource>>>;
  /** What `-X` sets, beside `-s -w`, from go.mod. */
  readonly variables?: (goMod: string) => Readonly<Record<string, string>>;
}

const KUBERNETES = 'k8s.io/kubernetes';

const kubernetes = (program: string, versionArguments: readonly string[] = ['--version']): ProgramSource => ({
  package: `${KUBERNETES}/cmd/${program}`,
  fromPath: { module: KUBERNETES, versionArguments },
});

function kubernetesVersion(goMod: string): Readonly<Record<string, string>> {
  const version = pinnedVersion(goMod, KUBERNETES);
  const [major = '', minor = ''] = version.replace(/^v/, '').split('.');
  const prefix = 'k8s.io/component-base/version';
  return {
    [`${prefix}.gitVersion`]: version,
    [`${prefix}.gitMajor`]: major,
    [`${prefix}.gitMinor`]: minor,
  };
}

export const modules: readonly BinaryModule[] = [
  {
    // One module, so that each library has one version and is compiled once: a third of what six modules took.
    name: 'programs',
    programs: {
      etcd: {
        package: 'go.etcd.io/etcd/server/v3',
        fromPath: { module: 'go.etcd.io/etcd/server/v3', versionArguments: ['--version'] },
      },
      'kube-apiserver': kubernetes('kube-apiserver'),
      'kube-controller-manager': kubernetes('kube-controller-manager'),
      'kube-scheduler': kubernetes('kube-scheduler'),
      kubelet: kubernetes('kubelet'),
      'kube-proxy': kubernetes('kube-proxy'),
      kubectl: kubernetes('kubectl', ['version', '--client']),
      kwok: {
        package: 'sigs.k8s.io/kwok/cmd/kwok',
        fromPath: { module: 'sigs.k8s.io/kwok', versionArguments: ['--version'] },
      },
      // Built with the plugins that the lab uses, without those of four cloud providers.
      coredns: { package: './coredns' },
      'metrics-server': { package: 'sigs.k8s.io/metrics-server/cmd/metrics-server' },
      // Debian's own is four years old and five times slower.
      'wireguard-go': { package: 'golang.zx2c4.com/wireguard' },
      pause: { package: './pause' },
    },
    variables: kubernetesVersion,
  },
  {
    // It needs one module under two spellings of its name, which cannot be built together with any other program. Its
    // go.mod names the same versions of shared libraries as that of `programs`, so that those are not compiled again.
    name: 'local-path',
    programs: { 'local-path-provisioner': { package: 'github.com/rancher/local-path-provisioner' } },
  },
  {
    // Kubernetes' own end-to-end suite and the programs of its images. Its go.mod names the same versions as that of
    // `programs`, so that most of it is compiled already.
    name: 'conformance',
    programs: {
      e2e: { package: './e2e' },
      ginkgo: { package: 'github.com/onsi/ginkgo/v2/ginkgo' },
      agnhost: { package: `${KUBERNETES}/test/images/agnhost` },
      nonewprivs: { package: `${KUBERNETES}/test/images/nonewprivs` },
    },
    variables: kubernetesVersion,
  },
  {
    // Apart, so that a change of it builds nothing else anew.
    name: 'operator',
    programs: { greeter: { package: './greeter' } },
  },
  {
    // It requires newer libraries than `programs` does; its go.mod replaces them by the same ones, so that those are not
    // compiled again.
    name: 'helm',
    programs: { helm: { package: 'helm.sh/helm/v4/cmd/helm' } },
  },
];

/** Built only if they are requested: not every lab of containers runs them. */
const OPTIONAL: ReadonlySet<BinaryName> = new Set([
  'kwok',
  'local-path-provisioner',
  'e2e',
  'ginkgo',
  'agnhost',
  'nonewprivs',
  'greeter',
  'helm',
]);

/** What every lab of containers runs. */
export const standardPrograms = (): BinaryName[] =>
  modules.flatMap(programNames).filter((name) => !OPTIONAL.has(name));

export const programNames = (module: BinaryModule): BinaryName[] =>
  Object.keys(module.programs) as BinaryName[];

/** Where a module's go.mod lies. */
export const moduleDir = (module: BinaryModule): string => join(import.meta.dirname, 'binaries', module.name);

/** The name of a module's cache entry: the sources of its own programs count, beside go.mod and go.sum. */
export function moduleKey(module: BinaryModule, dir: string = moduleDir(module)): string {
  const own = Object.values(module.programs)
    .map((source) => source.package)
    .filter((path) => path.startsWith('./'))
    .map((path) => join(path, 'main.go'));
  const parts = ['go.mod', 'go.sum', ...own].map((file) => {
    try {
      return readFileSync(join(dir, file));
    } catch {
      return '';
    }
  });
  return `${module.name}-${shortHash(...parts)}`;
}

/** The version of a required module that go.mod pins, as in `v1.36.3`; empty where it does not require it. */
export function pinnedVersion(goMod: string, module: string): string {
  const line = goMod
    .split('\n')
    .map((text) => text.replace(/^require /, '').trim())
    .find((text) => text.startsWith(`${module} v`));
  return line?.split(' ')[1] ?? '';
}

/** Whether the version that a program prints is exactly the pinned one, not a longer or older one. */
export function statesVersion(output: string, pinned: string): boolean {
  const bare = pinned.replace(/^v/, '');
  return bare !== '' && output.split(/[^0-9A-Za-z.+-]+/).some((word) => word === bare || word === `v${bare}`);
}
