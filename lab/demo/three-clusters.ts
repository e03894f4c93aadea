/** rome, milan and turin, which all use the same addresses and become one network. */
import { join } from 'node:path';

import { agentImage, agentImageName } from '../images-agent.ts';
import { Lab } from '../lab.ts';
import type { Stage } from './stage.ts';
import { Workbench } from './workbench.ts';

const SAME = { podCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16', metricsServer: false } as const;
export const CITIES = ['rome', 'milan', 'turin'] as const;
export type City = (typeof CITIES)[number];

export const NODE_PORT = 30_743;
export const PATIENCE_MS = 90_000;
/** Only here the Lease of the gateway is so short. */
const LEASE_SECONDS = 2;

export interface Preparation {
  name: string;
  stage: Stage;
  signal: AbortSignal;
  /** Folder of the manifests. */
  files: string;
  /** Where it is not one. */
  nodes: Partial<Record<City, number>>;
  /** Archives of further images. */
  images?: (progress: (line: string) => void) => Promise<readonly string[]>;
}

/** turin is on another LAN. */
export async function prepareThree({
  name,
  stage,
  signal,
  files,
  nodes,
  images,
}: Preparation): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  const archives = (async () => [await agentImage(progress), ...((await images?.(progress)) ?? [])])();
  // Awaited below; a failure before that must not count as unhandled.
  archives.catch(() => undefined);
  const clusters = [
    { name: 'rome', nodes: nodes.rome ?? 1, ...SAME },
    { name: 'milan', nodes: nodes.milan ?? 1, ...SAME },
    { name: 'turin', nodes: nodes.turin ?? 1, segment: 1, ...SAME },
  ];
  const lab = await stage.step('three clusters with the same addresses', async () =>
    Lab.fresh({ name, clusters, signal, progress }),
  );
  const bench = await Workbench.create(lab, { files: join(import.meta.dirname, files), signal });
  await stage.step('the images', async () => {
    for (const archive of await archives) {
      for (const city of CITIES) await lab.cluster(city).loadImage(archive, signal);
    }
    progress(`loaded into ${CITIES.join(', ')}`);
  });
  return bench;
}

export async function installThree(
  bench: Workbench,
  stage: Stage,
  { clusterOptions = '' }: { clusterOptions?: string } = {},
): Promise<void> {
  for (const city of CITIES) {
    const { address } = bench.lab.cluster(city).node();
    const apply = `kubectl --context ${city} apply --server-side -f -`;
    const options = [
      `--image ${agentImageName}`,
      `--cluster-name ${city} --pod-cidr ${SAME.podCidr}`,
      `--service NodePort --node-port ${NODE_PORT} --advertise ${address}:${NODE_PORT}`,
      ...(clusterOptions === '' ? [] : [clusterOptions]),
    ].join(' ');
    for (const what of [
      'crds',
      `cluster ${options}`,
      `gateway --image ${agentImageName} --lease-seconds ${LEASE_SECONDS}`,
      `node --image ${agentImageName}`,
    ]) {
      await stage.show(bench, `tributary manifests ${what} | ${apply}`, {
        timeoutMs: PATIENCE_MS,
        lines: 1,
      });
    }
  }
  for (const city of CITIES) {
    for (const what of [
      'tributary-system rollout status deployment/tributary-cluster',
      'tributary-network rollout status deployment/tributary-gateway',
      'tributary-network rollout status daemonset/tributary-node',
    ]) {
      await stage.show(bench, `kubectl --context ${city} -n ${what}`, {
        timeoutMs: PATIENCE_MS,
        lines: 1,
      });
    }
  }
}

/** milan is found on the LAN, turin is named. */
export async function peerThree(bench: Workbench, stage: Stage, more = ''): Promise<void> {
  for (const city of ['milan', 'turin']) {
    await stage.show(bench, `kubectl --context ${city} apply -f sharing.yaml`);
  }
  await stage.show(bench, 'kubectl apply -f acceptance.yaml');
  const endpoint = `${bench.lab.cluster('turin').node().address}:${NODE_PORT}`;
  const id = await clusterID(bench, 'turin');
  await stage.show(bench, `tributary peer ${endpoint} --id ${id} --name turin${more}`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.until(bench, 'kubectl get nodes', /^milan +Ready [^]*^turin +Ready /m, PATIENCE_MS);
  const ready = /(?:^\S+ +\S+ +True .*\n?){2}/m;
  await stage.until(bench, 'kubectl get tunnels', ready, PATIENCE_MS);
}

async function clusterID(bench: Workbench, city: City): Promise<string> {
  const { stdout } = await bench.run(`tributary id --context ${city} -o json`);
  return (JSON.parse(stdout) as { clusterID: string }).clusterID;
}
