/**
 * Builds the programs and images in advance that the lab would otherwise build at its first use.
 * Usage: node tools/setup.ts kwok|containers|image|tests|long
 */
import { binaries, type BinaryName } from '../lab/binaries.ts';
import { standardPrograms } from '../lab/binary-table.ts';
import { agentImage } from '../lab/images-agent.ts';
import { conformanceImages } from '../lab/images-conformance.ts';
import { greeterImage, localPathImage, systemImages } from '../lab/images.ts';
import { missing, thisMachine } from '../lab/preflight.ts';

const began = performance.now();
const progress = (line: string): void => {
  console.error(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
};

/** The programs that a kwok cluster and its tests run. */
const kwokPrograms: readonly BinaryName[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
  'kwok',
];

async function containers(): Promise<void> {
  // One build for all programs: each library is compiled once, and programs are linked in parallel.
  await binaries(progress, [...standardPrograms(), ...kwokPrograms]);
  await systemImages(progress);
  await localPathImage(progress);
}

/** What most suites use on this machine, so that their tests wait for no compiler. */
async function tests(): Promise<void> {
  if (missing(thisMachine()) !== undefined) {
    await binaries(progress, kwokPrograms);
    return;
  }
  await containers();
  await agentImage(progress);
}

/** What only `make test-long` runs beside that: an operator, and a tenth of Kubernetes' own end-to-end suite. */
async function long(): Promise<void> {
  if (missing(thisMachine()) !== undefined) return;
  await greeterImage(progress);
  await binaries(progress, ['e2e', 'ginkgo']);
  await conformanceImages(progress);
}

const profiles: Readonly<Record<string, () => Promise<unknown>>> = {
  kwok: async () => binaries(progress, kwokPrograms),
  containers,
  tests,
  long,
  image: async () => console.log(await agentImage(progress)),
};

const profile = profiles[process.argv[2] ?? ''];
try {
  if (profile === undefined) throw new Error(`usage: node tools/setup.ts ${Object.keys(profiles).join('|')}`);
  await profile();
} catch (error) {
  console.error(`setup: ${Error.isError(error) ? error.message : String(error)}`);
  process.exitCode = 1;
}
