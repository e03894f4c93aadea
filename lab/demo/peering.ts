/** `make demo DEMO=peering`: clusters that do not know each other find each other, agree, and lend. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { binaries } from '../binaries.ts';
import { agentImage, agentImageName } from '../images-agent.ts';
import { Lab } from '../lab.ts';
import { PeerProcess } from '../peer-process.ts';
import { check, type Stage } from './stage.ts';
import { Workbench } from './workbench.ts';

/** rome and milan share a LAN and run containers; turin and genoa, elsewhere, pretend to. */
const CLUSTERS = [
  { name: 'rome' },
  { name: 'milan' },
  { name: 'turin', workload: 'kwok', segment: 1 },
  { name: 'genoa', workload: 'kwok', segment: 1 },
] as const;

const NODE_PORT = 30_743;
const DNS_PORT = 53;
const PATIENCE_MS = 60_000;

export async function demonstratePeering(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  const bench = await prepare(name, stage, signal);
  await stage.step('Tributary in rome and milan', async () => install(bench, stage));
  await showLan(bench, stage);
  await stage.step('a Deployment runs in milan', async () => showPods(bench, stage));
  await stage.step('a device that only milan has', async () => showDevice(bench, stage));
  await stage.step('a smaller share is seen at once', async () => showShare(bench, stage));
  await showProcesses(bench, stage);
  await stage.step('unpeer: nothing is left on either side', async () => showEnd(bench, stage));
}

async function prepare(name: string, stage: Stage, signal: AbortSignal): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  const image = agentImage(progress);
  // Awaited below; a failure before that must not count as unhandled.
  image.catch(() => undefined);
  const lab = await stage.step('four clusters on two networks', async () =>
    Lab.fresh({ name, clusters: CLUSTERS, signal, progress }),
  );
  const bench = await Workbench.create(lab, { files: join(import.meta.dirname, 'peering'), signal });
  await stage.step('the image of Tributary', async () => {
    const archive = await image;
    await Promise.all(['rome', 'milan'].map(async (city) => lab.cluster(city).loadImage(archive, signal)));
    progress('loaded into rome and milan');
  });
  return bench;
}

/** Nothing here names another cluster. */
async function install(bench: Workbench, stage: Stage): Promise<void> {
  for (const city of ['rome', 'milan']) {
    const { address } = bench.lab.cluster(city).node();
    const options = [
      `--image ${agentImageName}`,
      `--cluster-name ${city}`,
      `--service NodePort --node-port ${NODE_PORT} --advertise ${address}:${NODE_PORT}`,
      `--home-api-server ${address}:6443`,
    ].join(' ');
    const apply = `kubectl --context ${city} apply --server-side -f -`;
    for (const what of ['crds', `cluster ${options}`, `gateway --image ${agentImageName}`]) {
      await stage.show(bench, `tributary manifests ${what} | ${apply}`, { lines: 2 });
    }
  }
  for (const city of ['rome', 'milan']) {
    for (const role of ['system deployment/tributary-cluster', 'network deployment/tributary-gateway']) {
      await stage.show(
        bench,
        `kubectl --context ${city} -n tributary-${role.replace(' ', ' rollout status ')}`,
        {
          timeoutMs: 90_000,
          lines: 1,
        },
      );
    }
  }
}

async function showLan(bench: Workbench, stage: Stage): Promise<void> {
  await stage.step('they see each other by mDNS', async () => {
    for (const city of ['rome', 'milan']) {
      await stage.until(bench, `kubectl --context ${city} get foreignclusters`, / LAN /);
    }
  });
  await stage.show(bench, 'kubectl --context milan apply -f sharing.yaml');
  await stage.step('from a policy to a Ready node, agent pod included', async () => {
    await stage.show(bench, 'kubectl apply -f acceptance.yaml');
    await stage.until(bench, 'kubectl get nodes', /^milan +Ready /m);
    await stage.show(bench, 'kubectl get foreignclusters');
    await stage.show(bench, 'kubectl --context milan get peeringrequests');
  });
}

async function showPods(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl apply -f web.yaml');
  await stage.show(bench, 'kubectl rollout status deployment/web --timeout=60s', { lines: 1 });
  await stage.show(bench, 'kubectl get pods -o wide', { expect: /^web-\S+ +1\/1 +Running .* milan /m });
  await stage.show(bench, 'kubectl logs deployment/web --tail=2', { expect: /tick/ });
}

/** On a real node a plug-in reports a device to the kubelet; here the demo writes it into the Node. */
async function showDevice(bench: Workbench, stage: Stage): Promise<void> {
  const patch = '[{"op":"add","path":"/status/capacity/example.org~1gpu","value":"4"}]';
  await stage.show(
    bench,
    `kubectl --context milan patch node milan-1 --subresource status --type json -p '${patch}'`,
  );
  await stage.until(
    bench,
    `kubectl get node milan -o jsonpath='{.status.allocatable}'`,
    /"example.org\/gpu":"2"/,
  );
  await stage.show(bench, 'kubectl apply -f gpu-pod.yaml');
  await stage.show(bench, 'kubectl wait --for=condition=Ready pod/gpu --timeout=30s');
  await stage.show(bench, 'kubectl delete pod gpu', { lines: 1 });
}

async function showShare(bench: Workbench, stage: Stage): Promise<void> {
  const pods = `kubectl get pods -l app=web -o jsonpath='{.items[*].status.containerStatuses[*].containerID}'`;
  const before = (await bench.run(pods)).stdout;
  const cpu = `kubectl get node milan -o jsonpath='{.status.allocatable.cpu}'`;
  const half = (await stage.show(bench, cpu)).stdout;
  const began = performance.now();
  await stage.show(
    bench,
    `kubectl --context milan patch sharingpolicy half --type merge -p '{"spec":{"sharePercent":20}}'`,
  );
  await stage.until(bench, cpu, new RegExp(`^(?!${half}$)`));
  stage.say(`seen after ${((performance.now() - began) / 1000).toFixed(2)} s, two calls of kubectl included`);
  check((await bench.run(pods)).stdout === before, 'no container was touched');
}

/** Clusters with pretended containers run Tributary as one process each. */
async function showProcesses(bench: Workbench, stage: Stage): Promise<void> {
  const [turin, genoa] = [bench.lab.cluster('turin'), bench.lab.cluster('genoa')];
  await Promise.all([turin, genoa].map(async (cluster) => PeerProcess.prepare(cluster)));
  await stage.step('turin and genoa, one process each: from start to a Ready node', async () => {
    await stage.show(bench, 'kubectl --context turin apply -f sharing.yaml');
    await stage.show(bench, 'kubectl --context genoa apply -f acceptance.yaml');
    PeerProcess.start(turin);
    const process = PeerProcess.start(genoa);
    await stage.until(bench, 'kubectl --context genoa get nodes', /^turin +Ready /m);
    stage.say(timesOf(process.log));
  });
  await stage.step('rome finds turin by DNS', async () => showDns(bench, stage));
  await stage.step('rome is let into genoa by a token', async () => {
    await stage.show(bench, 'kubectl --context genoa apply -f token-only.yaml');
    const token = 'tributary token create --context genoa --ttl 10m';
    const endpoint = `${genoa.node().address}:7443`;
    await stage.show(
      bench,
      `${token} | tributary peer ${endpoint} --name genoa --namespaces default --token -`,
      {
        timeoutMs: PATIENCE_MS,
      },
    );
    await stage.until(bench, 'kubectl get nodes', /^genoa +Ready /m);
    await stage.show(bench, 'kubectl get foreignclusters');
  });
}

async function showDns(bench: Workbench, stage: Stage): Promise<void> {
  const turin = bench.lab.cluster('turin').node();
  const { clusterID } = JSON.parse((await bench.run('tributary id --context turin -o json')).stdout) as {
    clusterID: string;
  };
  const values = { NAME_SERVER: turin.address, TURIN_ADDRESS: turin.address, TURIN_ID: clusterID };
  const zone = join(bench.directory, 'zone.txt');
  writeFileSync(
    zone,
    Object.entries(values).reduce(
      (text, [key, value]) => text.replaceAll(key, value),
      readFileSync(zone, 'utf8'),
    ),
  );
  const corefile = join(bench.directory, 'Corefile');
  writeFileSync(corefile, `clusters.example.org:${DNS_PORT} {\n  file ${zone}\n}\n`);
  const { coredns } = await binaries(undefined, ['coredns']);
  turin.spawn('dns', [coredns, '-conf', corefile]);
  const yaml = join(bench.directory, 'search-domain.yaml');
  writeFileSync(yaml, readFileSync(yaml, 'utf8').replace('DNS_SERVER', turin.address));
  await stage.show(bench, 'kubectl apply -f search-domain.yaml');
  await stage.until(bench, 'kubectl get nodes', /^turin +Ready /m);
  await stage.show(bench, 'kubectl get searchdomains');
}

async function showEnd(bench: Workbench, stage: Stage): Promise<void> {
  const labels = ['tributary.dev/provider', 'tributary.dev/peer'];
  await stage.show(bench, 'tributary unpeer milan', { timeoutMs: 90_000 });
  await stage.until(
    bench,
    'kubectl --context milan get peeringrequests,namespaces -l tributary.dev/peer',
    /^$/,
  );
  const kinds = 'advertisements,virtualnodes,nodes,secrets,deployments,rolebindings,serviceaccounts';
  const id = (await bench.run('tributary id --context milan -o json')).stdout;
  const { clusterID } = JSON.parse(id) as { clusterID: string };
  const left = await stage.show(bench, `kubectl get ${kinds} -A -l ${labels[0]}=${clusterID}`);
  check(left.stdout === '', 'nothing made for milan is left in rome');
  await stage.show(bench, 'kubectl get foreignclusters,nodes');
}

/** Durations, taken from the program's own log. */
function timesOf(log: string): string {
  const lines = log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { time: string; message: string });
  const at = (message: string): number => {
    const line = lines.find((entry) => entry.message === message);
    return line === undefined ? Number.NaN : Date.parse(line.time);
  };
  const seconds = (from: string, to: string): string => ((at(to) - at(from)) / 1000).toFixed(2);
  const first = 'ops server listens';
  return (
    `genoa's log: ${seconds(first, 'agent started')} s from its first line to a running agent, ` +
    `${seconds('speaking mDNS', 'agent started')} s from the start of discovery`
  );
}
