/** `make demo`: pods of one real cluster run on another, and kubectl does not notice. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { agentImage } from '../images-agent.ts';
import { Lab } from '../lab.ts';
import { peeringSteps, virtualNodeYaml, type PeeringOptions } from './by-hand.ts';
import { Mismatch, check, type Stage } from './stage.ts';
import { Workbench } from './workbench.ts';

const MEBIBYTE = 1024 * 1024;
const CP_BYTES = 20 * MEBIBYTE;
const POLL_MS = 250;

const PEERING: PeeringOptions = {
  namespaces: ['default'],
  quota: 'cpu=4,memory=4Gi,pods=50',
  resources: { cpu: '4', memory: '4Gi', pods: '50' },
};

export async function demonstratePods(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  await showPods(await prepare(name, stage, signal), stage);
}

async function prepare(name: string, stage: Stage, signal: AbortSignal): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  // The first build of the image takes minutes on one core, and the clusters take seconds, so both begin at once.
  const image = agentImage(progress);
  // Awaited below; a failure before that must not count as unhandled.
  image.catch(() => undefined);
  const lab = await stage.step('two clusters, real containers', async () =>
    Lab.fresh({ name, signal, progress }),
  );
  const bench = await Workbench.create(lab, { files: join(import.meta.dirname, 'pods'), signal });
  writeFileSync(join(bench.directory, 'virtual-node.yaml'), virtualNodeYaml(lab, PEERING));
  await stage.step('the image of Tributary', async () => {
    await lab.cluster('home').loadImage(await image, signal);
    progress('loaded into the home cluster');
  });
  for (const { title, commands } of peeringSteps(PEERING)) {
    await stage.step(title, async () => {
      for (const command of commands) await stage.show(bench, command, { timeoutMs: 90_000, lines: 6 });
    });
  }
  await stage.step('kubectl get nodes', async () =>
    stage.show(bench, 'kubectl get nodes -o wide', { expect: /^foreign +Ready /m }),
  );
  return bench;
}

/** Every kubectl command of a pod's life, from home, on pods that run in the foreign cluster. */
async function showPods(bench: Workbench, stage: Stage): Promise<void> {
  await stage.step('Deployment runs over there', async () => showDeployment(bench, stage));
  const pod = (await bench.run('kubectl get pod -l app=web -o jsonpath={.items[0].metadata.name}')).stdout;
  await showStreams(bench, stage, pod);
  await stage.step('ConfigMap changes live', async () => showConfigMap(bench, stage, pod));
  await stage.step('kubectl scale', async () => showScale(bench, stage));
  await stage.step('hostNetwork is refused, with the reason', async () => showRefusal(bench, stage));
  // Two metrics servers need two measurements each; the steps before have used that time.
  await stage.step('kubectl top', async () => showTop(bench, stage));
  await stage.step('kubectl rollout restart', async () => showRollout(bench, stage));
  await stage.step('kubectl delete', async () => showDelete(bench, stage));
}

async function showDeployment(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl apply -f web.yaml');
  await stage.show(bench, 'kubectl rollout status deployment/web --timeout=60s');
  const home = await stage.show(bench, 'kubectl get pods -o wide');
  check(matches(home.stdout, /^web-\S+ +1\/1 +Running .* foreign /gm) === 2, 'two pods run on node foreign');
  const foreign = await stage.show(bench, 'kubectl --context foreign -n home-default get pods -o wide');
  check(
    matches(foreign.stdout, /^web-\S+ +1\/1 +Running .* foreign-1 /gm) === 2,
    'two pods run over there, on its real node',
  );
}

async function showStreams(bench: Workbench, stage: Stage, pod: string): Promise<void> {
  await stage.step('kubectl logs -f', async () => {
    const logs = stage.begin(bench, `kubectl logs -f ${pod} --tail=2`);
    await logs.waitFor(/(tick .*\n){4}/);
    await logs.stop();
    stage.quote(logs.stdout);
  });
  await stage.step('kubectl exec -it', async () => {
    const terminal = { rows: 33, columns: 111 };
    // The terminal size comes over its own channel, a moment after the shell has started.
    const script = 'test -t 0 && until stty size | grep 33; do :; done; exit 3';
    const typed = `kubectl exec -it ${pod} -- sh -c '${script}'`;
    await stage.show(bench, typed, { terminal, code: 3, expect: /33 111/ });
  });
  await stage.step('kubectl port-forward', async () => {
    const forward = stage.begin(bench, `kubectl port-forward ${pod} :8080`);
    const [line, port = ''] = await forward.waitFor(/Forwarding from 127\.0\.0\.1:(\d+) -> 8080/);
    stage.quote(line);
    const url = `http://127.0.0.1:${port}/`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    const text = await answer.text();
    stage.say(`GET ${url}`);
    stage.quote(text);
    await forward.stop();
    check(text.trim() === `welcome from ${pod}`, `an answer of ${pod} itself through the forwarded port`);
  });
  await stage.step('kubectl cp, 20 MiB both ways', async () => {
    const at = (name: string): string => join(bench.directory, name);
    writeFileSync(at('there.bin'), randomBytes(CP_BYTES));
    await stage.show(bench, `kubectl cp there.bin ${pod}:/tmp/there.bin`);
    await stage.show(bench, `kubectl cp ${pod}:/tmp/there.bin back.bin`);
    const [there, back] = ['there.bin', 'back.bin'].map((name) => sha256(readFileSync(at(name))));
    stage.say(`there.bin ${there}`);
    stage.say(`back.bin  ${back}`);
    check(there === back, 'both files are identical');
  });
  await stage.step('kubectl debug', async () => {
    // Without a profile kubectl asks for SYS_PTRACE, which the provider's Pod Security refuses.
    const typed = `kubectl debug ${pod} -it --profile=baseline --image=lab.local/busybox:1 --target=web -- sh`;
    const terminal = { rows: 40, columns: 120 };
    const stdin = 'ps; hostname; exit\n';
    await stage.show(bench, typed, {
      terminal,
      stdin,
      lines: 20,
      expect: new RegExp(`httpd -p 8080[^]*${pod}`),
    });
  });
}

async function showConfigMap(bench: Workbench, stage: Stage, pod: string): Promise<void> {
  await stage.show(bench, `kubectl exec ${pod} -- cat /config/greeting`, { expect: /hello/ });
  await stage.show(bench, `kubectl patch configmap web -p '{"data":{"greeting":"good evening"}}'`);
  // The foreign kubelet updates this when it next syncs the pod, and a new annotation triggers that.
  await bench.run(`kubectl annotate pod ${pod} read=again`);
  await until('the container sees the new value', 60_000, async () => {
    const { stdout } = await bench.run(`kubectl exec ${pod} -- cat /config/greeting`);
    return stdout.includes('good evening');
  });
  await stage.show(bench, `kubectl exec ${pod} -- cat /config/greeting`, { expect: /good evening/ });
}

async function showTop(bench: Workbench, stage: Stage): Promise<void> {
  await until('metrics of node and pods', 60_000, async () => {
    const [node, pods] = await Promise.all(
      ['kubectl top node foreign', 'kubectl top pod -l app=web'].map(async (command) => bench.run(command)),
    );
    return node?.code === 0 && pods?.code === 0 && matches(pods.stdout, /^web-/gm) === 2;
  });
  await stage.show(bench, 'kubectl top node', { expect: /^foreign +\d+m/m });
  await stage.show(bench, 'kubectl top pod -l app=web', { expect: /^web-\S+ +\d+m +\d+Mi/m });
}

async function showScale(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl scale deployment/web --replicas=5');
  await stage.show(bench, 'kubectl rollout status deployment/web --timeout=60s', { lines: 2 });
  await stage.show(bench, 'kubectl scale deployment/web --replicas=2');
  await until('two pods are left at home and over there', 40_000, async () => {
    const counts = await Promise.all([countPods(bench, ''), countPods(bench, FOREIGN)]);
    return counts.every((count) => count === 2);
  });
  await stage.show(bench, 'kubectl get deployment web', { expect: /2\/2/ });
}

async function showRollout(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl rollout restart deployment/web');
  await stage.show(bench, 'kubectl rollout status deployment/web --timeout=90s', { lines: 3 });
  await stage.show(bench, 'kubectl get pods -l app=web', { expect: /Running/ });
}

async function showRefusal(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl apply -f host-network.yaml');
  await until('the refusal is an event', 30_000, async () =>
    (await bench.run('kubectl describe pod greedy')).stdout.includes('Forbidden'),
  );
  const { stdout } = await bench.run('kubectl describe pod greedy');
  stage.say('$ kubectl describe pod greedy');
  stage.quote(stdout.slice(stdout.indexOf('Events:')));
  check(/violates PodSecurity "baseline:latest".*hostNetwork=true/.test(stdout), "the provider's own reason");
  await stage.show(bench, 'kubectl delete pod greedy --timeout=20s');
}

async function showDelete(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl delete -f web.yaml --timeout=30s');
  await until('no pod is left', 40_000, async () => {
    const counts = await Promise.all([countPods(bench, ''), countPods(bench, FOREIGN)]);
    return counts.every((count) => count === 0);
  });
  await stage.show(bench, 'kubectl get pods', { expect: /No resources found/ });
  await stage.show(bench, 'kubectl --context foreign -n home-default get pods', {
    expect: /No resources found/,
  });
}

const FOREIGN = '--context foreign -n home-default';

async function countPods(bench: Workbench, where: string): Promise<number> {
  const { code, stdout, stderr } = await bench.run(`kubectl ${where} get pods -o name`);
  if (code !== 0) throw new Mismatch(stderr.trim());
  return matches(stdout, /^pod\//gm);
}

const matches = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

const sha256 = (data: Buffer): string => createHash('sha256').update(data).digest('hex');

async function until(what: string, timeoutMs: number, condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Mismatch(`not within ${timeoutMs / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
