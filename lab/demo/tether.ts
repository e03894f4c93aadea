/**
 * `make demo DEMO=tether`: a laptop hands its node over to a company, which alone decides what runs there, until contact is lost
 * or the user of the laptop ends it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { difference, inventory } from '../inventory.ts';
import {
  endpointOf,
  installBoth,
  PATIENCE_MS,
  prepareDevice,
  setContact,
  type Site,
  SITES,
  tracesOf,
} from './device.ts';
import { check, type Stage } from './stage.ts';
import type { Workbench } from './workbench.ts';

const LAPTOP_NODE = 'laptop-1';
const COMPANY = 'kubectl --context company';
const MODE = 'kubectl get clustermodes';
const LOST_AFTER_SECONDS = 20;
const REFUSAL =
  /tethered\s+to\s+company,\s+which\s+decides[^]*a\s+DaemonSet\s+of\s+users\s+cannot\s+be\s+made[^]*tributary\s+untether/;
const PLACES =
  "-o custom-columns='NAMESPACE:.metadata.namespace,POD:.metadata.name,STATUS:.status.phase,IP:.status.podIP,NODE:.spec.nodeName'";

/** What there is at one moment. */
interface State {
  readonly objects: Readonly<Record<Site, readonly string[]>>;
  readonly traces: readonly string[];
}

/** What people have made for the tether themselves; it is theirs to remove. */
const MADE_BY_PEOPLE: Readonly<Record<Site, readonly RegExp[]>> = {
  laptop: [/^foreignclusters company$/, /^secrets tributary-system\/tributary-peer-token-company$/],
  company: [/^sharingpolicies devices$/, /^secrets tributary-system\/tributary-join-laptop$/],
};
/** Who has been seen on the network stays known for an hour. */
const SEEN = /^foreignclusters [a-z2-7]{26}$/;

export async function demonstrateTether(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  const bench = await prepareDevice({ name, stage, signal }, 'tether');
  await stage.step('Tributary in both', async () => installBoth(bench, stage));
  const before = await stage.step('before: what there is in both', async () => {
    await stage.show(bench, 'kubectl apply -f old.yaml');
    await stage.show(bench, 'kubectl wait --for=condition=Ready pod/old --timeout=60s');
    return look(bench, stage);
  });
  await stage.step('a token, and the laptop is tethered', async () => showTether(bench, stage));
  const places = await stage.step(
    'a Deployment of the laptop: the company places it, partly on the laptop',
    async () => showForwarded(bench, stage),
  );
  await stage.step('a Deployment of the company runs on the laptop', async () => showDevice(bench, stage));
  await stage.step('the user looks, execs, scales', async () => showUse(bench, stage, places));
  await stage.step('one Service, with packets between all places', async () =>
    showService(bench, stage, places),
  );
  await stage.step('a DaemonSet is refused', async () => showRefusal(bench, stage));
  await stage.step(`contact is cut: after ${LOST_AFTER_SECONDS} s the laptop decides`, async () =>
    showLoss(bench, stage, places),
  );
  await stage.step('contact is back: the company decides', async () => showReturn(bench, stage));
  await stage.step('untether: the laptop decides, and its pods come home', async () => showEnd(bench, stage));
  await stage.step('after: the lists of both are as before', async () => compare(bench, stage, before));
}

async function showTether(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, MODE, { expect: /^cluster +Autonomous +Autonomous /m });
  await stage.show(bench, `${COMPANY} apply -f sharing.yaml`);
  const { clusterID } = JSON.parse((await bench.run('tributary id --context company -o json')).stdout) as {
    clusterID: string;
  };
  const yaml = join(bench.directory, 'company.yaml');
  const values = { CLUSTER_ID: clusterID, ENDPOINT: endpointOf(bench) };
  const text = Object.entries(values).reduce(
    (all, [key, value]) => all.replaceAll(key, value),
    readFileSync(yaml, 'utf8'),
  );
  writeFileSync(yaml, text);
  await stage.show(bench, 'kubectl apply -f company.yaml');
  const token = 'tributary token create --context company --name laptop';
  await stage.show(
    bench,
    `${token} | tributary tether company --token - --lost-after ${LOST_AFTER_SECONDS}s`,
    { timeoutMs: PATIENCE_MS, expect: /^Tethered in /m },
  );
  await stage.show(bench, MODE, { expect: /^cluster +Tethered +Tethered +company /m });
  await stage.until(bench, `${COMPANY} get nodes`, /^laptop +Ready /m, PATIENCE_MS);
  await stage.until(bench, 'kubectl get nodes', /^company +Ready /m, PATIENCE_MS);
  for (const site of SITES) {
    await stage.until(bench, `kubectl --context ${site} get tunnels`, /^\S+ +\S+ +True /m, PATIENCE_MS);
  }
}

/** Names of the pods of `web`: one that runs at the company, and one that the company has placed on the laptop. */
interface Web {
  readonly away: string;
  readonly back: string;
}

async function showForwarded(bench: Workbench, stage: Stage): Promise<Web> {
  await stage.until(bench, 'kubectl get namespaceoffloadings', /^offloading +Remote /m, PATIENCE_MS);
  await stage.show(bench, 'kubectl apply -f web.yaml');
  await stage.show(bench, 'kubectl rollout status deployment/web --timeout=100s', {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  const { stdout } = await stage.show(bench, `${COMPANY} get pods -A -l app=web ${PLACES}`);
  const onNode = (node: RegExp): string => {
    const line = stdout.split('\n').find((text) => node.test(text));
    check(line !== undefined, `a pod of web is on ${node.source}`);
    return line.split(/ +/)[1] ?? '';
  };
  const found = { away: onNode(/ company-\d$/), back: onNode(/ laptop$/) };
  await stage.show(bench, `kubectl get pods -A -l app=web -o wide`, {
    expect: new RegExp(`^(?!default )\\S+ +${found.back} .* ${LAPTOP_NODE} `, 'm'),
  });
  const own = await stage.show(bench, 'kubectl get pods -l app=web -o wide', { expect: / company / });
  check(!own.stdout.includes(LAPTOP_NODE), 'to its user, each pod of web is on the node of the company');
  return found;
}

async function showDevice(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${COMPANY} apply -f field.yaml`);
  await stage.until(bench, `${COMPANY} -n field get namespaceoffloadings`, / True /, PATIENCE_MS);
  await stage.show(bench, `${COMPANY} apply -f sensor.yaml`);
  await stage.show(bench, `${COMPANY} -n field rollout status deployment/sensor --timeout=100s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.show(bench, `${COMPANY} -n field get pods -o wide`, {
    expect: /^sensor-\S+ +1\/1 +Running .* laptop /m,
  });
  await stage.show(bench, `kubectl get pods -A -l app=sensor ${PLACES}`, {
    expect: new RegExp(`sensor-\\S+ +Running .* ${LAPTOP_NODE}$`, 'm'),
  });
  await stage.show(bench, `${COMPANY} -n field logs deployment/sensor`, { expect: /measuring/ });
}

async function showUse(bench: Workbench, stage: Stage, { away, back }: Web): Promise<void> {
  for (const pod of [away, back]) {
    await stage.show(bench, `kubectl logs ${pod}`, { expect: new RegExp(`${pod} serves`) });
    await stage.show(bench, `kubectl exec ${pod} -- hostname`, { expect: new RegExp(`^${pod}$`, 'm') });
  }
  await stage.show(bench, 'kubectl scale deployment web --replicas=4');
  await stage.until(bench, 'kubectl get deployment web', /^web +4\/4 /m, PATIENCE_MS);
  await stage.show(bench, 'kubectl get pods -o wide');
}

const ASKS = "sh -c 'for i in $(seq 20); do timeout 1 wget -qO- http://web; done | sort | uniq -c'";

/** From a pod at the company, from one that came back, and from one that never left the laptop. */
async function showService(bench: Workbench, stage: Stage, { away, back }: Web): Promise<void> {
  await stage.show(bench, 'kubectl get endpointslices -l kubernetes.io/service-name=web');
  // A pod that came back does not reach itself by its own Service: to kube-proxy it is on another node.
  for (const [from, ...to] of [
    ['old', away, back],
    [away, back],
    [back, away],
  ] as const) {
    const all = new RegExp(to.map((pod) => `(?=[^]*${pod})`).join(''));
    await stage.until(bench, `kubectl exec ${from} -- ${ASKS}`, all);
  }
  for (const [from, to] of [
    ['old', away],
    ['old', back],
    [away, back],
    [back, away],
  ] as const) {
    const address = (await bench.run(`kubectl get pod ${to} -o jsonpath='{.status.podIP}'`)).stdout;
    // At the company, that pod of the laptop has the address that the company shows.
    const where = from === away ? await addressAtCompany(bench, to) : address;
    await stage.show(bench, `kubectl exec ${from} -- timeout 3 wget -qO- http://${where}:8080`, {
      expect: new RegExp(to),
    });
  }
}

async function addressAtCompany(bench: Workbench, pod: string): Promise<string> {
  const { stdout } = await bench.run(
    `${COMPANY} get pods -A --field-selector metadata.name=${pod} -o jsonpath='{.items[0].status.podIP}'`,
  );
  return stdout;
}

async function showRefusal(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl apply -f daemon.yaml 2>&1 | fold -s -w 150', { expect: REFUSAL });
  await stage.show(bench, 'kubectl get daemonset watchman', { code: 1, expect: /not found/ });
}

async function showLoss(bench: Workbench, stage: Stage, { away, back }: Web): Promise<void> {
  await setContact(bench.lab, 'cut');
  stage.say('the router drops all packets between them');
  await stage.until(bench, MODE, /^cluster +Autonomous +Lost +company /m, PATIENCE_MS);
  await stage.show(bench, 'kubectl apply -f alone.yaml');
  await stage.show(bench, 'kubectl rollout status deployment/alone --timeout=60s', {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.show(bench, 'kubectl get pods -o wide', {
    expect: new RegExp(`^alone-\\S+ +1/1 +Running .* ${LAPTOP_NODE} `, 'm'),
  });
  // What was placed back runs on the laptop, and is served there; the others are out of reach.
  await stage.until(bench, `kubectl exec old -- ${ASKS}`, new RegExp(`^(?![^]*${away})[^]*${back}`));
}

async function showReturn(bench: Workbench, stage: Stage): Promise<void> {
  await setContact(bench.lab, 'nat');
  stage.say('the router lets the laptop dial again');
  await stage.until(bench, MODE, /^cluster +Tethered +Tethered +company /m, PATIENCE_MS);
  await stage.until(bench, 'kubectl get nodes', /^company +Ready /m, PATIENCE_MS);
  await stage.until(bench, 'kubectl get deployment web', /^web +4\/4 /m, PATIENCE_MS);
}

async function showEnd(bench: Workbench, stage: Stage): Promise<void> {
  // Pods of the company are to leave with the end of the tether, and not a day later.
  await stage.show(bench, 'tributary untether --delete-guests', {
    timeoutMs: PATIENCE_MS,
    expect: /decides again what runs on its nodes[^]*^Ended/m,
  });
  await stage.show(bench, MODE, { expect: /^cluster +Autonomous +Autonomous /m });
  await stage.show(bench, 'kubectl rollout status deployment/web --timeout=100s', {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  const { stdout } = await stage.show(bench, `kubectl get pods -l app=web ${PLACES}`);
  const running = stdout.split('\n').filter((line) => / Running .* laptop-1$/.test(line));
  check(running.length === 4, 'all pods of web are at home');
  await stage.show(bench, `${COMPANY} -n field get pods ${PLACES}`);
}

async function look(bench: Workbench, stage: Stage): Promise<State> {
  const state = await stateOf(bench);
  const { laptop, company } = state.objects;
  stage.say(
    `${laptop.length} objects in laptop, ${company.length} in company, ${state.traces.length} traces of tunnels`,
  );
  return state;
}

async function stateOf(bench: Workbench): Promise<State> {
  const [laptop, company, traces] = await Promise.all([
    ...SITES.map(async (site) => inventory(bench.lab.cluster(site).api)),
    tracesOf(bench),
  ]);
  return { objects: { laptop: laptop ?? [], company: company ?? [] }, traces: traces ?? [] };
}

/** What people have made while tethered they remove themselves. */
async function compare(bench: Workbench, stage: Stage, before: State): Promise<void> {
  await stage.show(bench, 'kubectl delete -f web.yaml -f alone.yaml', { timeoutMs: PATIENCE_MS });
  await stage.show(bench, `${COMPANY} delete -f sensor.yaml -f field.yaml`, { timeoutMs: PATIENCE_MS });
  await stage.same(
    'equal, except for what people have made themselves',
    async () => {
      const now = await stateOf(bench);
      return [
        ...SITES.flatMap((site) =>
          difference(before.objects[site], now.objects[site], [...MADE_BY_PEOPLE[site], SEEN]).map(
            (line) => `${site}: ${line}`,
          ),
        ),
        ...difference(before.traces, now.traces),
      ];
    },
    PATIENCE_MS,
  );
}
