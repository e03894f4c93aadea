/**
 * `make demo DEMO=network`: three clusters that all use the same addresses become one network. rome has two nodes;
 * milan and turin run its pods and know nothing of each other.
 */
import { agentImageName } from '../images-agent.ts';
import type { Node } from '../node.ts';
import { killIn } from '../node-processes.ts';
import { check, type Stage } from './stage.ts';
import { CITIES, installThree, PATIENCE_MS, peerThree, prepareThree, type City } from './three-clusters.ts';
import type { Workbench } from './workbench.ts';

export async function demonstrateNetwork(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  const bench = await prepareThree({ name, stage, signal, files: 'network', nodes: { rome: 2 } });
  await stage.step('Tributary in all three', async () => installThree(bench, stage));
  await stage.step('from policies to tunnels that are Ready', async () => showTunnels(bench, stage));
  await stage.step('one application in three clusters', async () => showPods(bench, stage));
  await stage.step('pod to pod by the address that kubectl shows, both ways', async () =>
    showAddresses(bench, stage),
  );
  await stage.step('one Service over three clusters, by its usual name', async () =>
    showService(bench, stage),
  );
  await stage.step('a stateful pod by its own name', async () => showStateful(bench, stage));
  await stage.step('milan and turin meet through rome, and nothing else does', async () =>
    showTransit(bench, stage),
  );
  await stage.step('the gateway is killed: packets go on', async () => showKill(bench, stage));
  await stage.step('unpeer and clean-up: the hosts are as before', async () => showEnd(bench, stage));
}

async function showTunnels(bench: Workbench, stage: Stage): Promise<void> {
  await peerThree(bench, stage, ' --namespaces shop');
  await stage.show(bench, 'kubectl --context milan get tunnels');
  const views =
    '{range .items[*]}{.spec.clusterName}{range .status.views[*]}{"  "}{.prefix} as {.as}{end}{"\\n"}{end}';
  await stage.show(bench, `kubectl get tunnels -o jsonpath='${views}'`, {
    expect: /10\.244\.0\.0\/16 as 100\./,
  });
}

async function showPods(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl apply -f app.yaml', { lines: 3 });
  await stage.show(bench, 'kubectl -n shop wait --for=condition=Ready pod --all --timeout=80s', {
    timeoutMs: PATIENCE_MS,
    lines: 3,
  });
  await stage.show(bench, 'kubectl -n shop get pods -o wide');
}

async function showAddresses(bench: Workbench, stage: Stage): Promise<void> {
  const pairs: readonly (readonly [string, string])[] = [
    ['rome-1', 'milan'],
    ['rome-2', 'milan'],
    ['rome-1', 'turin'],
    ['rome-2', 'turin'],
  ];
  for (const [from, place] of pairs) {
    const { name, address } = await webIn(bench, place);
    const ended = await fetch(
      bench,
      stage,
      { from: `cli-${from}`, host: `${address}:8080` },
      new RegExp(`^${name} answers`),
    );
    stage.say(`${place} saw ${from} as ${/answers (\S+)/.exec(ended)?.[1] ?? ''}`);
  }
}

async function showService(bench: Workbench, stage: Stage): Promise<void> {
  for (const from of ['rome-1', 'milan', 'turin']) {
    const seen = new Set<string>();
    const url = from === 'milan' ? 'web.shop.svc.cluster.local' : 'web.shop';
    const command = `kubectl -n shop exec cli-${from} -- sh -c 'for i in $(seq 30); do timeout 3 wget -qO- http://${url}/cgi-bin/who; done | cut -d- -f2 | sort | uniq -c'`;
    const { stdout } = await stage.until(bench, command, /milan[^]*rome[^]*turin/);
    for (const [, place] of stdout.matchAll(/\b(milan|rome|turin)\b/g)) seen.add(place ?? '');
    check(seen.size === 3, `all three answered ${from}`);
  }
}

async function showStateful(bench: Workbench, stage: Stage): Promise<void> {
  for (const from of ['rome-1', 'turin', 'milan']) {
    await fetch(
      bench,
      stage,
      { from: `cli-${from}`, host: 'db-0.db.shop.svc.cluster.local:8080' },
      /^db-0 answers/,
    );
  }
}

/** Pods that milan and turin run for themselves are not reached through rome. */
async function showTransit(bench: Workbench, stage: Stage): Promise<void> {
  for (const city of ['milan', 'turin']) {
    await stage.show(bench, `kubectl --context ${city} apply -f own.yaml`, { lines: 1 });
    await stage.show(bench, `kubectl --context ${city} wait --for=condition=Ready pod/own --timeout=60s`, {
      timeoutMs: PATIENCE_MS,
    });
  }
  const addressOf = async (city: City): Promise<string> =>
    (await bench.run(`kubectl --context ${city} get pod own -o jsonpath='{.status.podIP}'`)).stdout;
  const views = JSON.parse((await bench.run('kubectl --context milan get tunnels -o json')).stdout) as {
    items: { status: { views: { use: string; as: string }[] } }[];
  };
  const transit = views.items[0]?.status.views.find(({ use }) => use === 'Transit')?.as ?? '';
  stage.say(`milan sees turin through rome as ${transit}`);
  const own = hostPart(await addressOf('turin'), transit);
  await refused(bench, stage, 'cli-milan', `${own}:8080`);
  const web = (
    await bench.run(
      "kubectl --context turin -n shop get pod -l app=web -o jsonpath='{.items[0].status.podIP}'",
    )
  ).stdout;
  await fetch(bench, stage, { from: 'cli-milan', host: `${hostPart(web, transit)}:8080` }, /answers/);
  await stage.show(
    bench,
    `kubectl --context milan exec own -- timeout 2 wget -qO- http://${hostPart(web, transit)}:8080/cgi-bin/who`,
    { code: 143, timeoutMs: PATIENCE_MS },
  );
}

/** Pings go on while the gateway's program is killed; if the tunnel's own program is killed, it is back at once. */
async function showKill(bench: Workbench, stage: Stage): Promise<void> {
  const gateway = await gatewayNode(bench);
  const { address } = await webIn(bench, 'milan');
  const ping = 'kubectl -n shop exec cli-rome-2 -- ping -c 50 -i 0.2';
  const running = stage.begin(bench, `${ping} ${address}`);
  const killed = killIn(gateway.netns, /main\.js run gateway/);
  check(killed === 1, `there was one gateway on ${gateway.name}`);
  stage.say(`kill -9 of the gateway on ${gateway.name}`);
  const { stdout } = await running.ended;
  stage.quote(stdout.split('\n').slice(-3).join('\n'));
  check(/ 0% packet loss/.test(stdout), 'no ping was lost');
  await stage.show(bench, 'kubectl -n tributary-network rollout status deployment/tributary-gateway', {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  check(killIn(gateway.netns, /^wireguard-go -f/) > 0, `there was one wireguard-go on ${gateway.name}`);
  stage.say(`kill -9 of wireguard-go on ${gateway.name}`);
  const began = performance.now();
  await fetch(bench, stage, { from: 'cli-rome-2', host: `${address}:8080` }, /answers/);
  stage.say(`back after ${((performance.now() - began) / 1000).toFixed(1)} s`);
}

async function gatewayNode(bench: Workbench): Promise<Node> {
  const holder = 'kubectl -n tributary-system get lease tributary-gateway -o jsonpath={.spec.holderIdentity}';
  const { stdout } = await bench.run(holder);
  return bench.lab.cluster('rome').node(stdout.trim());
}

/** Links, tables of nftables, protocols of routes and the table of the return path; kube-proxy's rules bear names of Services. */
const OURS = /\d: tributary|tributary_(gateway|node)|proto 11[67]|lookup 7480|^interface: /m;

/** Nothing of ours is left on any host, nor in kubectl. */
async function showEnd(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl delete namespace shop', { timeoutMs: PATIENCE_MS });
  for (const city of ['milan', 'turin']) {
    await stage.show(bench, `tributary unpeer ${city}`, { timeoutMs: PATIENCE_MS, lines: 3 });
  }
  await stage.until(bench, 'kubectl get tunnels 2>&1', /No resources/, PATIENCE_MS);
  const what = `gateway --image ${agentImageName}`;
  for (const city of CITIES) {
    const context = `kubectl --context ${city}`;
    for (const role of [what, `node --image ${agentImageName}`]) {
      await stage.show(
        bench,
        `tributary manifests ${role} | ${context} delete --ignore-not-found --wait -f -`,
        {
          timeoutMs: PATIENCE_MS,
          lines: 1,
        },
      );
    }
    await stage.show(
      bench,
      `tributary manifests clean-up --image ${agentImageName} | ${context} apply --server-side -f -`,
      {
        lines: 3,
      },
    );
  }
  for (const node of bench.lab.clusters.flatMap(({ nodes }) => nodes)) {
    const look = 'ip -d link; ip rule; ip route show table all; nft list ruleset; wg show';
    const clean = async (): Promise<boolean> => !OURS.test(await node.exec(['sh', '-c', look]));
    await stage.wait(`${node.name}: nothing of ours in links, rules, routes, nftables, wg`, clean);
  }
}

/** The pod of `web` in that place, as rome sees it. */
async function webIn(bench: Workbench, place: string): Promise<{ name: string; address: string }> {
  const { stdout } = await bench.run(
    `kubectl -n shop get pod -l app=web,place=${place} -o jsonpath='{.items[0].metadata.name} {.items[0].status.podIP}'`,
  );
  const [name = '', address = ''] = stdout.split(' ');
  check(address !== '', `web-${place} has an address`);
  return { name, address };
}

async function fetch(
  bench: Workbench,
  stage: Stage,
  { from, host }: { from: string; host: string },
  expect: RegExp,
): Promise<string> {
  const command = `kubectl -n shop exec ${from} -- timeout 3 wget -qO- http://${host}/cgi-bin/who`;
  return (await stage.until(bench, command, expect, 20_000)).stdout;
}

async function refused(bench: Workbench, stage: Stage, from: string, host: string): Promise<void> {
  await stage.show(bench, `kubectl -n shop exec ${from} -- timeout 2 wget -qO- http://${host}/`, {
    code: 143,
    timeoutMs: PATIENCE_MS,
  });
}

/** The address in `prefix` (a /16) that stands for `address`. */
const hostPart = (address: string, prefix: string): string =>
  [...prefix.split('.').slice(0, 2), ...address.split('.').slice(2)].join('.');
