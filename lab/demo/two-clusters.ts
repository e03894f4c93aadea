/** rome, which uses milan's two nodes for its namespace `shop`: volumes, a runtime class for guests, no tunnel. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';

import { agentImage, agentImageName } from '../images-agent.ts';
import { Lab } from '../lab.ts';
import type { Stage } from './stage.ts';
import { Workbench } from './workbench.ts';

const CITIES = ['rome', 'milan'] as const;
const NODE_PORT = 30_743;
export const PATIENCE_MS = 120_000;

export async function prepareTwo(
  { name, stage, signal }: { name: string; stage: Stage; signal: AbortSignal },
  files: string,
): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  const image = agentImage(progress);
  // Awaited below; a failure before that must not count as unhandled.
  image.catch(() => undefined);
  const clusters = [{ name: 'rome' }, { name: 'milan', nodes: 2, storage: true, hardenedRuntime: true }];
  const lab = await stage.step(
    'two clusters, milan with two nodes, volumes and a hardened runtime',
    async () => Lab.fresh({ name, clusters, signal, progress }),
  );
  const folder = (of: string): string => join(import.meta.dirname, of);
  const bench = await Workbench.create(lab, { files: folder('two-clusters'), signal });
  cpSync(folder(files), bench.directory, { recursive: true });
  await stage.step('the image of Tributary', async () => {
    const archive = await image;
    await Promise.all(CITIES.map(async (city) => lab.cluster(city).loadImage(archive, signal)));
    progress('loaded into rome and milan');
  });
  return bench;
}

export async function installTwo(bench: Workbench, stage: Stage): Promise<void> {
  for (const city of CITIES) {
    const { address } = bench.lab.cluster(city).node();
    const options = [
      `--image ${agentImageName} --cluster-name ${city}`,
      `--service NodePort --node-port ${NODE_PORT} --advertise ${address}:${NODE_PORT}`,
    ].join(' ');
    const apply = `kubectl --context ${city} apply --server-side -f -`;
    for (const what of ['crds', `cluster ${options}`]) {
      await stage.show(bench, `tributary manifests ${what} | ${apply}`, {
        timeoutMs: PATIENCE_MS,
        lines: 1,
      });
    }
  }
  for (const city of CITIES) {
    await stage.show(
      bench,
      `kubectl --context ${city} -n tributary-system rollout status deployment/tributary-cluster`,
      { timeoutMs: PATIENCE_MS, lines: 1 },
    );
  }
}

/** From a policy to a namespace of rome whose pods run in milan. */
export async function peerTwo(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl --context milan apply -f sharing.yaml');
  await stage.show(bench, 'kubectl apply -f acceptance.yaml -f storage-class.yaml');
  const endpoint = `${bench.lab.cluster('milan').node().address}:${NODE_PORT}`;
  const { stdout } = await bench.run('tributary id --context milan -o json');
  const { clusterID } = JSON.parse(stdout) as { clusterID: string };
  await stage.show(bench, `tributary peer ${endpoint} --id ${clusterID} --name milan`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.until(bench, 'kubectl get nodes', /^milan +Ready /m, PATIENCE_MS);
  await stage.show(bench, 'kubectl create namespace shop');
  await stage.show(bench, 'kubectl apply -f offloading.yaml');
  await stage.until(
    bench,
    'kubectl -n shop get namespaceoffloadings',
    /^offloading +Remote +True /m,
    PATIENCE_MS,
  );
}
