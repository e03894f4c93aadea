/** A laptop of one node, behind a router that translates addresses, and a company of two nodes: only the laptop can dial. */
import { join } from 'node:path';

import { agentImage, agentImageName } from '../images-agent.ts';
import { Lab } from '../lab.ts';
import { segmentCidr } from '../network.ts';
import { type RouterState, setRouter } from '../router.ts';
import type { Stage } from './stage.ts';
import { Workbench } from './workbench.ts';

/** Both have the addresses that most clusters have. */
const SAME = { podCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16', metricsServer: false } as const;
const BEHIND = 1;
const CLUSTERS = [
  { name: 'laptop', segment: BEHIND, ...SAME },
  { name: 'company', nodes: 2, ...SAME },
] as const;
export const SITES = ['laptop', 'company'] as const;
export type Site = (typeof SITES)[number];

const NODE_PORT = 30_743;
export const PATIENCE_MS = 120_000;

export async function prepareDevice(
  { name, stage, signal }: { name: string; stage: Stage; signal: AbortSignal },
  files: string,
): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  const image = agentImage(progress);
  // Awaited below; a failure before that must not count as unhandled.
  image.catch(() => undefined);
  const lab = await stage.step('a laptop of one node behind NAT, a company of two', async () => {
    const up = await Lab.fresh({ name, clusters: CLUSTERS, signal, progress });
    await setContact(up, 'nat');
    progress('the router lets the laptop dial the company, and nobody the laptop');
    return up;
  });
  const bench = await Workbench.create(lab, { files: join(import.meta.dirname, files), signal });
  await stage.step('the image of Tributary', async () => {
    const archive = await image;
    await Promise.all(SITES.map(async (site) => lab.cluster(site).loadImage(archive, signal)));
    progress('loaded into laptop and company');
  });
  return bench;
}

/** What passes between the laptop and the nodes of the company. */
export async function setContact(lab: Lab, state: RouterState): Promise<void> {
  const inside = segmentCidr({ ...lab.spec.underlay, segment: BEHIND });
  const outside = `{ ${lab
    .cluster('company')
    .nodes.map(({ address }) => address)
    .join(', ')} }`;
  await setRouter(lab, { inside, outside }, state);
}

export const endpointOf = (bench: Workbench): string =>
  `${bench.lab.cluster('company').node().address}:${NODE_PORT}`;

/** The laptop gives no address of its own. */
export async function installBoth(bench: Workbench, stage: Stage): Promise<void> {
  const image = `--image ${agentImageName}`;
  const own: Readonly<Record<Site, { cluster: string; gateway: string }>> = {
    laptop: { cluster: '', gateway: ' --tunnel-endpoint none' },
    company: {
      cluster: ` --service NodePort --node-port ${NODE_PORT} --advertise ${endpointOf(bench)}`,
      gateway: '',
    },
  };
  for (const site of SITES) {
    for (const what of [
      'crds',
      `cluster ${image} --cluster-name ${site} --pod-cidr ${SAME.podCidr}${own[site].cluster}`,
      `gateway ${image}${own[site].gateway}`,
      `node ${image}`,
    ]) {
      const apply = `kubectl --context ${site} apply --server-side -f -`;
      await stage.show(bench, `tributary manifests ${what} | ${apply}`, { timeoutMs: PATIENCE_MS, lines: 1 });
    }
  }
  for (const site of SITES) {
    for (const what of [
      'tributary-system rollout status deployment/tributary-cluster',
      'tributary-network rollout status deployment/tributary-gateway',
      'tributary-network rollout status daemonset/tributary-node',
    ]) {
      await stage.show(bench, `kubectl --context ${site} -n ${what}`, { timeoutMs: PATIENCE_MS, lines: 1 });
    }
  }
}

/** What tunnels leave on a host: peers of WireGuard, routes and rules of ours; what a gateway has without any tunnel included. */
export async function tracesOf(bench: Workbench): Promise<string[]> {
  const look =
    "wg show all peers; ip -br link | grep -o '^tributary[^ @]*'; ip rule | grep 7480; ip route show table all | grep -E 'proto 11[67]'; nft -s list ruleset | grep -E '^table|^\\s+chain' | grep tributary_; true";
  const found: string[] = [];
  for (const node of bench.lab.clusters.flatMap(({ nodes }) => nodes)) {
    const lines = await node.exec(['sh', '-c', look]);
    for (const line of lines.split('\n').filter((text) => text.trim() !== ''))
      found.push(`${node.name}: ${line.trim()}`);
  }
  return found.toSorted();
}
