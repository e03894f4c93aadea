/** Clusters without Tributary, and the folder of somebody who reads documents. */
import { cpSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { binaries } from '../../../../lab/binaries.ts';
import { Workbench } from '../../../../lab/demo/workbench.ts';
import { agentImage, agentImageName } from '../../../../lab/images-agent.ts';
import { shopImages } from '../../../../lab/images-shop.ts';
import { Lab } from '../../../../lab/lab.ts';
import type { ClusterOptions } from '../../../../lab/spec.ts';
import { DOCUMENTS_LAB, isKept, onlyLab } from '../../../support/e2e/lab.ts';
import { ROOT } from './blocks.ts';
import { Reader } from './reader.ts';
import type { Replacements } from './reading.ts';

/** The nodes of a lab pull nothing. */
const IMAGES: Replacements = {
  IMAGE: agentImageName,
  'docker.io/library/busybox:1.37': 'lab.local/busybox:1',
  'docker.io/library/debian:13-slim': 'lab.local/busybox:1',
  'docker.io/library/nginx:1.29': 'lab.local/nginx:1',
  'docker.io/library/redis:8': 'lab.local/redis:1',
  'docker.io/nicolas/webdis:0.1.23': 'lab.local/webdis:1',
};

/** What a browser would show of an address. */
const PAGE = `#!${process.execPath}
fetch(process.argv[2]).then(async (answer) => console.log(await answer.text()));
`;

/** `prepare` is for a lab that is new. */
export async function readerAt(
  clusters: readonly ClusterOptions[],
  prepare?: (lab: Lab) => Promise<void>,
): Promise<Reader> {
  const lab = await theLab(clusters, prepare);
  const bench = await Workbench.create(lab);
  const { helm } = await binaries(console.error, ['helm']);
  symlinkSync(helm, join(bench.directory, 'bin', 'helm'));
  writeFileSync(join(bench.directory, 'bin', 'page'), PAGE, { mode: 0o755 });
  for (const folder of ['deploy', 'examples'])
    cpSync(join(ROOT, folder), join(bench.directory, folder), { recursive: true });
  for (const path of globSync('examples/**/*.yaml', { cwd: bench.directory })) {
    const file = join(bench.directory, path);
    const text = readFileSync(file, 'utf8');
    writeFileSync(
      file,
      Object.entries(IMAGES).reduce((all, [name, image]) => all.replaceAll(name, image), text),
    );
  }
  for (const { api } of lab.clusters) api.close();
  return new Reader(bench, IMAGES, (line) => void process.stderr.write(`${line}\n`));
}

async function theLab(
  clusters: readonly ClusterOptions[],
  prepare?: (lab: Lab) => Promise<void>,
): Promise<Lab> {
  await onlyLab(DOCUMENTS_LAB);
  if (isKept()) {
    const lab = await Lab.open(DOCUMENTS_LAB).catch(() => undefined);
    if (lab !== undefined) return lab;
  }
  const archives = [await agentImage(console.error), ...(await shopImages(console.error))];
  const lab = await Lab.fresh({ name: DOCUMENTS_LAB, clusters });
  for (const archive of archives)
    await Promise.all(lab.clusters.map(async (cluster) => cluster.loadImage(archive)));
  await prepare?.(lab);
  return lab;
}
