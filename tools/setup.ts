/**
 * Makes ahead of time what the lab would otherwise make at its first use: the programs, the images.
 * Usage: node tools/setup.ts kwok|containers|image
 */
import { binaries, type BinaryName } from '../lab/binaries.ts';
import { agentImage } from '../lab/images-agent.ts';
import { systemImages } from '../lab/images.ts';

const began = performance.now();
const progress = (line: string): void => {
  console.error(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
};

/** What a kwok cluster and the tests of one run. */
const kwokPrograms: readonly BinaryName[] = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
  'kwok',
];

const profiles: Readonly<Record<string, () => Promise<unknown>>> = {
  kwok: async () => binaries(progress, kwokPrograms),
  containers: async () => {
    await binaries(progress);
    await systemImages(progress);
  },
  image: async () => console.log(await agentImage(progress)),
};

const profile = profiles[process.argv[2] ?? ''];
try {
  if (profile === undefined) throw new Error('usage: node tools/setup.ts kwok|containers|image');
  await profile();
} catch (error) {
  console.error(`setup: ${Error.isError(error) ? error.message : String(error)}`);
  process.exitCode = 1;
}
