/**
 * `make demo DEMO=install`: the way of somebody new, twice. First Helm installs, then `tributary install`; each time two
 * clusters peer, a web shop runs over both, and at the end nothing is left in API servers and hosts. A third time the other
 * cluster dies while the shop runs.
 */
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { binaries } from '../binaries.ts';
import { agentImage, agentImageName } from '../images-agent.ts';
import { shopImages } from '../images-shop.ts';
import { difference, inventory } from '../inventory.ts';
import { Lab } from '../lab.ts';
import type { Node } from '../node.ts';
import { check, type Stage } from './stage.ts';
import { Workbench } from './workbench.ts';

const CITIES = ['rome', 'milan'] as const;
type Way = 'helm' | 'tributary';

const PEER = 'tributary peer --context rome --to-context milan';
const PATIENCE_MS = 180_000;
const NODE_PORT = 30_743;
/** What the webhook and the scheduler knew of pods, asked when they are not where they should be. */
const PLACING = [
  `kubectl --context rome -n shop get pods -o custom-columns='NAME:.metadata.name,NODE:.spec.nodeName,TOLERATIONS:.spec.tolerations[*].key,AFFINITY:.spec.affinity'`,
  'kubectl --context rome -n shop get namespaceoffloadings -o yaml',
  'kubectl --context rome get nodes,virtualnodes -o yaml',
  `kubectl --context rome get --raw /metrics | grep -E 'admission_webhook_(fail_open|admission_duration_seconds_(sum|count))' | grep tributary`,
];
const repository = join(import.meta.dirname, '..', '..');

/** What is in both clusters: names of objects, and of what is in the kernels of their nodes. */
type State = readonly string[];

export async function demonstrateInstall(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  const bench = await prepare(name, stage, signal);
  const before = await stateOf(bench);
  stage.say(`${before.length} objects, links, rules, routes and chains before`);
  for (const way of ['helm', 'tributary'] as const) {
    await stage.step(`${way}: install in rome and milan`, async () => install(bench, stage, way));
    await stage.step(`${way}: peer`, async () => stage.show(bench, PEER, { timeoutMs: PATIENCE_MS }));
    await stage.step(`${way}: offload a namespace, and a web shop in it`, async () => showShop(bench, stage));
    await stage.step(`${way}: status and doctor`, async () => showState(bench, stage));
    await stage.step(`${way}: dashboard`, async () => showPage(bench, stage));
    await stage.step(`${way}: unoffload, unpeer`, async () => showEnd(bench, stage));
    await stage.step(`${way}: uninstall`, async () => uninstall(bench, stage, way));
    await stage.step(`${way}: nothing is left`, async () => compare(bench, stage, before));
  }
  await stage.step('milan dies while the shop runs there', async () => {
    await install(bench, stage, 'tributary');
    await stage.show(bench, PEER, { timeoutMs: PATIENCE_MS });
    await showShop(bench, stage);
    await bench.lab.cluster('milan').stop();
  });
  await stage.step('rome uninstalls without it', async () => {
    const uninstall = 'tributary uninstall --yes --context rome --drain-timeout 10s --peer-timeout 5s';
    await stage.show(bench, uninstall, { timeoutMs: PATIENCE_MS, lines: 40 });
    await stage.show(bench, 'kubectl --context rome delete -k .', { timeoutMs: PATIENCE_MS, lines: 20 });
  });
  await stage.step('nothing is left in rome', async () =>
    compare(
      bench,
      stage,
      before.filter((line) => line.startsWith('rome')),
    ),
  );
}

async function prepare(name: string, stage: Stage, signal: AbortSignal): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  const archives = (async () => [await agentImage(progress), ...(await shopImages(progress))])();
  // Awaited below; a failure before that must not count as unhandled.
  archives.catch(() => undefined);
  const clusters = [{ name: 'rome' }, { name: 'milan', nodes: 2 }];
  const lab = await stage.step('two fresh clusters', async () =>
    Lab.fresh({ name, clusters, signal, progress }),
  );
  const bench = await Workbench.create(lab, { files: join(import.meta.dirname, 'install'), signal });
  for (const folder of ['deploy/chart', 'examples/web-shop'])
    cpSync(join(repository, folder), join(bench.directory, folder), { recursive: true });
  const { helm } = await binaries(progress, ['helm']);
  symlinkSync(helm, join(bench.directory, 'bin', 'helm'));
  await stage.step('the images', async () => {
    for (const archive of await archives)
      await Promise.all(CITIES.map(async (city) => lab.cluster(city).loadImage(archive, signal)));
  });
  // What is aggregated cannot be listed before it answers.
  for (const city of CITIES) {
    const wait = `kubectl --context ${city} wait apiservices --all --for=condition=Available --timeout=150s`;
    await stage.show(bench, wait, { timeoutMs: PATIENCE_MS, lines: 1 });
  }
  return bench;
}

async function install(bench: Workbench, stage: Stage, way: Way): Promise<void> {
  for (const city of CITIES) {
    const { address } = bench.lab.cluster(city).node();
    const command: Readonly<Record<Way, string>> = {
      // Helm finds nothing out by itself.
      helm: [
        `helm --kube-context ${city} install tributary deploy/chart --namespace kube-system --wait --timeout 3m`,
        `--set image=${agentImageName} --set clusterName=${city} --set dashboard=true`,
        `--set peeringService=NodePort --set peeringNodePort=${NODE_PORT} --set 'advertise={${address}:${NODE_PORT}}'`,
      ].join(' '),
      tributary: `tributary install --context ${city} --cluster-name ${city} --image ${agentImageName} --dashboard true --yes`,
    };
    await stage.show(bench, command[way], { timeoutMs: PATIENCE_MS, lines: 40 });
  }
}

async function showShop(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl --context rome apply -k .', { lines: 20 });
  await stage.show(bench, 'tributary offload shop --context rome', { timeoutMs: PATIENCE_MS });
  await stage.show(
    bench,
    'kubectl --context rome -n shop rollout status deployment/store deployment/api deployment/front --timeout=150s',
    { timeoutMs: PATIENCE_MS, lines: 3 },
  );
  const { stdout } = await stage.show(bench, 'kubectl --context rome -n shop get pods -o wide');
  const without = ['rome-1', 'milan'].filter(
    (place) => !new RegExp(`^front-\\S+ .* ${place} `, 'm').test(stdout),
  );
  // What placed them is gone with the clusters.
  if (without.length > 0) for (const question of PLACING) await stage.show(bench, question, { lines: 200 });
  check(without.length === 0, `a front runs on ${without.join(', ')}`);
  await showCustomer(bench, stage);
}

/** All that a customer's request goes through: the front in either cluster, the API in either, the store at home. */
async function showCustomer(bench: Workbench, stage: Stage): Promise<void> {
  const inShop = 'kubectl --context rome -n shop';
  await stage.show(
    bench,
    `${inShop} run client --image lab.local/busybox:1 -- sh -c 'trap exit TERM; sleep 3600 & wait'`,
  );
  await stage.show(bench, `${inShop} wait --for=condition=Ready pod/client --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.until(bench, `${inShop} exec client -- timeout 3 wget -qO- http://front/visits`, /"INCR":"?\d/);
  const seen = new Set<string>();
  const pods = JSON.parse((await bench.run(`${inShop} get pods -l app=front -o json`)).stdout) as {
    items: { metadata: { name: string }; spec: { nodeName: string } }[];
  };
  const { stdout } = await stage.show(
    bench,
    `${inShop} exec client -- sh -c 'for i in $(seq 20); do timeout 3 wget -qO- http://front/where; done'`,
    { timeoutMs: PATIENCE_MS, lines: 4 },
  );
  for (const { metadata, spec } of pods.items) if (stdout.includes(metadata.name)) seen.add(spec.nodeName);
  check(seen.size > 1, `fronts of both clusters answer, not only of ${[...seen].join(', ')}`);
}

async function showState(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'tributary status --context rome', { lines: 40 });
  await stage.show(bench, 'tributary doctor --context rome', { timeoutMs: PATIENCE_MS, lines: 60 });
}

/** The page as a browser gets it; test/integration/dashboard.test.ts uses it in a real one. */
async function showPage(bench: Workbench, stage: Stage): Promise<void> {
  const program = stage.begin(bench, 'tributary dashboard --context rome');
  try {
    const [address = ''] = await program.waitFor(/http:\/\/127\.0\.0\.1:\d+/);
    const answer = await fetch(address);
    check(answer.ok && /<title>/.test(await answer.text()), `the page is at ${address}`);
    stage.quote(program.stdout);
  } finally {
    await program.stop();
  }
}

async function showEnd(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'tributary unoffload shop --context rome', { timeoutMs: PATIENCE_MS });
  await stage.show(bench, 'kubectl --context rome delete -k .', { timeoutMs: PATIENCE_MS, lines: 20 });
  await stage.show(bench, 'tributary unpeer milan --context rome', { timeoutMs: PATIENCE_MS });
}

async function uninstall(bench: Workbench, stage: Stage, way: Way): Promise<void> {
  for (const city of CITIES) {
    const commands: Readonly<Record<Way, readonly string[]>> = {
      helm: [`helm --kube-context ${city} uninstall tributary --namespace kube-system --wait --timeout 3m`],
      tributary: [`tributary uninstall --yes --context ${city}`],
    };
    for (const command of commands[way])
      await stage.show(bench, command, { timeoutMs: PATIENCE_MS, lines: 40 });
  }
}

async function stateOf(bench: Workbench, cities: readonly string[] = CITIES): Promise<State> {
  const clusters = bench.lab.clusters.filter(({ name }) => cities.includes(name));
  const parts = await Promise.all([
    ...clusters.map(async ({ name, api }) => (await inventory(api)).map((line) => `${name}: ${line}`)),
    ...clusters.flatMap(({ nodes }) => nodes).map(hostStateOf),
  ]);
  return parts.flat();
}

/** Links (tunnels too), rules, routes, chains of nftables, settings of the kernel. Those of a pod go with the pod. */
async function hostStateOf(node: Node): Promise<string[]> {
  const look = [
    "ip -o link | awk -F': ' '{ print \"link\", $2 }' | sed 's/@.*//'",
    "ip rule | sed 's/^/rule /'",
    "ip route show table all | sed 's/^/route /'",
    // kube-proxy empties the chains of a Service that is gone, and deletes them when it has something else to write.
    'nft -s list ruleset | awk \'/^table/ { t = $2 " " $3 } /^\\tchain/ && t != "ip kube-proxy" { print "chain", t, $2 }\'',
    'for f in /proc/sys/net/ipv4/conf/*/rp_filter /proc/sys/net/ipv4/ip_forward; do echo "$f $(cat $f)"; done',
  ].join('; ');
  const lines = (await node.exec(['sh', '-c', look])).split('\n').map((line) => line.trim());
  return [...new Set(lines)]
    .filter((line) => line !== '' && !/veth/.test(line))
    .map((line) => `${node.name}: ${line}`);
}

async function compare(bench: Workbench, stage: Stage, before: State): Promise<void> {
  // A dead cluster is not asked.
  const cities = CITIES.filter((city) => before.some((line) => line.startsWith(city)));
  await stage.same(
    `all ${before.length} are as they were`,
    async () => difference(before, await stateOf(bench, cities)),
    60_000,
  );
}
