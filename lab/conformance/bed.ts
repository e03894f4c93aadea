/**
 * What the suite runs on: rome, whose real node takes no pods, and milan, which is rome's virtual node. Pods of every
 * namespace that the suite makes in rome run in milan.
 */
import { join } from 'node:path';

import { agentImage, agentImageName } from '../images-agent.ts';
import { conformanceImages } from '../images-conformance.ts';
import { Lab } from '../lab.ts';
import type { Stage } from '../demo/stage.ts';
import { Workbench } from '../demo/workbench.ts';

export const HOME = 'rome';
export const FOREIGN = 'milan';
/** The suite's own image with programs to ask with. */
export const AGNHOST = 'registry.k8s.io/e2e-test-images/agnhost:2.63.0';
const CITIES = [HOME, FOREIGN] as const;
const NODE_PORT = 30_743;
const PATIENCE_MS = 180_000;
/** For `tributary manifests cluster`: the suite puts this label on each namespace that it makes; its value names the spec. */
export const OFFLOADED = '--offload-namespaces e2e-framework --offload-strategy Remote';

/** In rome, for milan. */
const NETWORK = JSON.stringify({ spec: { network: { services: 'OffloadedPods', dns: 'Home' } } });

const DNS_OF_HOME = 'virtualnode --all --for=condition=HomeDNSReachable';

export async function makeBed(name: string, stage: Stage, signal: AbortSignal): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  const archives = [await agentImage(progress), await conformanceImages(progress)];
  const lab = await stage.step('two clusters', async () =>
    Lab.fresh({ name, clusters: CITIES.map((city) => ({ name: city })), signal, progress }),
  );
  const bench = await Workbench.create(lab, { files: join(import.meta.dirname, 'manifests'), signal });
  await stage.step('the images', async () => {
    for (const archive of archives) {
      await Promise.all(CITIES.map(async (city) => lab.cluster(city).loadImage(archive, signal)));
    }
  });
  await stage.step('Tributary in both', async () => install(bench, stage));
  await stage.step('milan is a node of rome, and its only one for new pods', async () => peer(bench, stage));
  return bench;
}

async function install(bench: Workbench, stage: Stage): Promise<void> {
  for (const city of CITIES) {
    const { address } = bench.lab.cluster(city).node();
    const { podCidr } = bench.lab.cluster(city).spec;
    const cluster = [
      `cluster --image ${agentImageName} --cluster-name ${city} --pod-cidr ${podCidr}`,
      `--service NodePort --node-port ${NODE_PORT} --advertise ${address}:${NODE_PORT}`,
      ...(city === HOME ? [OFFLOADED] : []),
    ].join(' ');
    for (const what of [
      'crds',
      cluster,
      `gateway --image ${agentImageName}`,
      `node --image ${agentImageName}`,
    ]) {
      const command = `tributary manifests ${what} | kubectl --context ${city} apply --server-side -f -`;
      await stage.show(bench, command, { timeoutMs: PATIENCE_MS, lines: 1 });
    }
  }
  for (const city of CITIES) {
    for (const what of [
      'tributary-system rollout status deployment/tributary-cluster',
      'tributary-network rollout status deployment/tributary-gateway',
      'tributary-network rollout status daemonset/tributary-node',
    ]) {
      await stage.show(bench, `kubectl --context ${city} -n ${what}`, { timeoutMs: PATIENCE_MS, lines: 1 });
    }
  }
}

async function peer(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `kubectl --context ${FOREIGN} apply -f sharing.yaml`);
  await stage.show(bench, 'kubectl apply -f acceptance.yaml');
  // They find each other on the LAN.
  await stage.until(bench, 'kubectl get nodes', new RegExp(`^${FOREIGN} +Ready `, 'm'), PATIENCE_MS);
  await stage.until(bench, 'kubectl get tunnels', /^\S+ +\S+ +True /m, PATIENCE_MS);
  // The suite's pods ask home's ClusterIPs, and its names.
  await stage.show(
    bench,
    `kubectl patch $(kubectl get foreignclusters -o name) --type merge -p '${NETWORK}'`,
  );
  for (const condition of ['tunnel --all --for=condition=ServicesReachable', DNS_OF_HOME]) {
    await stage.show(bench, `kubectl wait ${condition} --timeout=60s`, { timeoutMs: PATIENCE_MS });
  }
  for (const { name } of bench.lab.cluster(HOME).nodes) {
    await stage.show(bench, `kubectl cordon ${name}`);
  }
}
