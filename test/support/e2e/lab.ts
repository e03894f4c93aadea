/**
 * The labs of the end-to-end tests, one for each folder of test/e2e. The first file of a folder starts its lab and
 * removes those of other folders, because idle clusters also use the two cores. The lab of test/e2e/kubelet is made
 * here: two clusters, with the agent as pods in the home cluster.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { peeringSteps, virtualNodeYaml, type PeeringOptions } from '../../../lab/demo/by-hand.ts';
import { Workbench } from '../../../lab/demo/workbench.ts';
import { agentImage } from '../../../lab/images-agent.ts';
import { holdLab } from '../../../lab/holder.ts';
import { Lab } from '../../../lab/lab.ts';

export const E2E_LAB = 'e2e';
/** For the tests of peering, and of faults in the underlying network; see peers.ts and test/e2e/underlay. */
export const PEERS_LAB = 'peers';
/** For the tests of the network, and of namespaces that stretch over clusters; see test/e2e/network. */
export const NETWORK_LAB = 'net';

/** For what documents tell people to type; see test/e2e/documents. */
export const DOCUMENTS_LAB = 'documents';

/** By folder of test/e2e. */
const LABS: Readonly<Record<string, string>> = {
  kubelet: E2E_LAB,
  peers: PEERS_LAB,
  underlay: PEERS_LAB,
  network: NETWORK_LAB,
  documents: DOCUMENTS_LAB,
};

/** The labs of this run: tools/test.ts may run files of another folder in parallel. */
function ownLabs(): string[] {
  const one = LABS[process.env['TRIBUTARY_E2E_FOLDER'] ?? ''];
  return one === undefined ? Object.values(LABS) : [one];
}

/** One offloaded namespace for each test file, so that none sees what another leaves. */
export const E2E_NAMESPACES = [
  'logs',
  'exec',
  'attach',
  'copy',
  'forward',
  'debug',
  'websocket',
  'top',
  'workloads',
  'deletion',
  'changes',
  'references',
  'tokens',
  'finished',
  'node',
  'refusals',
  'outage',
  'crash',
] as const;
export type E2eNamespace = (typeof E2E_NAMESPACES)[number];

/** More than a real foreign node has, so that quota and foreign scheduler can be tested one by one. */
export const E2E_PEERING: PeeringOptions = {
  namespaces: E2E_NAMESPACES,
  quota: 'cpu=4,memory=4Gi,pods=60',
  resources: { cpu: '16', memory: '32Gi', pods: '200' },
};

/** `keep` keeps the lab after the tests and uses one that runs already: useful while writing tests. */
export const isKept = (): boolean => process.env['TRIBUTARY_E2E_LAB'] === 'keep';

/** Removes the labs that files of other folders have left. */
export async function onlyLab(name: string): Promise<void> {
  if (isKept()) return;
  for (const other of ownLabs()) if (other !== name) await Lab.down(other);
}

/**
 * For this process and those of its test files, until it ends: another run of these tests is waited for. All take them in
 * the same order.
 */
export async function holdE2eLabs(): Promise<void> {
  for (const name of ownLabs()) await holdLab(name, { wait: true, progress: console.error });
}

export async function downE2eLabs(): Promise<void> {
  if (isKept()) return;
  for (const name of ownLabs()) await Lab.down(name);
}

/** Nothing is done when it is up. */
export async function upE2eLab(): Promise<void> {
  if (await isUp()) return;
  await onlyLab(E2E_LAB);
  const image = await agentImage(console.error);
  const lab = await Lab.fresh({ name: E2E_LAB });
  try {
    // In the foreign cluster only pods of a test run this image, because it has a TLS client.
    await Promise.all(lab.clusters.map(async (cluster) => cluster.loadImage(image)));
    await peer(lab);
  } catch (error) {
    await lab.down();
    throw error;
  }
  for (const cluster of lab.clusters) cluster.api.close();
}

async function isUp(): Promise<boolean> {
  try {
    const lab = await Lab.open(E2E_LAB);
    for (const cluster of lab.clusters) cluster.api.close();
    return true;
  } catch {
    return false;
  }
}

async function peer(lab: Lab): Promise<void> {
  const bench = await Workbench.create(lab);
  writeFileSync(join(bench.directory, 'virtual-node.yaml'), virtualNodeYaml(lab, E2E_PEERING));
  const namespaces = E2E_NAMESPACES.map((name) => `kubectl create namespace ${name}`).join(' && ');
  const steps = peeringSteps(E2E_PEERING).flatMap(({ commands }) => commands);
  for (const command of [namespaces, ...steps]) {
    const { code, stdout, stderr } = await bench.run(command, { timeoutMs: 120_000 });
    if (code !== 0) throw new Error(`${command}: exit code ${code}: ${stdout}${stderr}`);
  }
}
