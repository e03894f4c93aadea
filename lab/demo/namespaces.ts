/**
 * `make demo DEMO=namespaces`: one namespace stretches over three clusters. The applications in it are ordinary ones:
 * nothing in their manifests speaks of other clusters.
 */
import { shopImages } from '../images-shop.ts';
import { check, type Stage } from './stage.ts';
import { CITIES, installThree, PATIENCE_MS, peerThree, prepareThree } from './three-clusters.ts';
import type { Workbench } from './workbench.ts';

const SHOP = 'kubectl -n shop';
const NODES =
  "-o custom-columns='POD:.metadata.name,STATUS:.status.phase,NODE:.spec.nodeName,ADDRESS:.status.podIP'";

export async function demonstrateNamespaces(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  const bench = await prepareThree({
    name,
    stage,
    signal,
    files: 'namespaces',
    nodes: { milan: 2 },
    images: shopImages,
  });
  await stage.step('Tributary in all three', async () => {
    // The kind of a custom resource, and rights for it; only this demo uses it.
    for (const city of CITIES) {
      await stage.show(bench, `kubectl --context ${city} apply -f timetable-kind.yaml`, { lines: 1 });
    }
    await installThree(bench, stage);
  });
  await stage.step('peered, with no namespace named', async () => peerThree(bench, stage));
  await stage.step('one object stretches the namespace', async () => showOffloading(bench, stage));
  await stage.step('nginx, webdis and Redis over three clusters, as they are', async () =>
    showShop(bench, stage),
  );
  await stage.step('the API moves while it is used', async () => showMove(bench, stage));
  await stage.step('Job, CronJob, DaemonSet, bare pod, StatefulSet', async () => showWork(bench, stage));
  await stage.step('a pod too large for each node of a cluster does not go there', async () =>
    showSizes(bench, stage),
  );
  await stage.step('a changed ConfigMap inside, a Secret that stays home', async () =>
    showObjects(bench, stage),
  );
  await stage.step('a custom resource, by configuration alone', async () => showCustom(bench, stage));
  await stage.step('the webhook is away: nobody is held up', async () => showOutage(bench, stage));
  await stage.step('taken back: pods come home, nothing stays behind', async () => showEnd(bench, stage));
}

async function showOffloading(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, 'kubectl create namespace shop');
  await stage.show(bench, 'kubectl apply -f offloading.yaml');
  await stage.until(
    bench,
    `${SHOP} get namespaceoffloadings`,
    /^offloading +LocalAndRemote +True /m,
    PATIENCE_MS,
  );
  const clusters =
    '{range .status.clusters[*]}{.clusterName}{"  "}{.virtualNodes[*]}{"  "}{.remoteNamespace}{"  "}{.phase}{"\\n"}{end}';
  await stage.show(bench, `${SHOP} get nso offloading -o jsonpath='${clusters}'`, { expect: /shop +Ready/ });
  for (const city of ['milan', 'turin']) {
    await stage.show(bench, `kubectl --context ${city} get namespace shop`, { expect: /Active/ });
  }
}

async function showShop(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} apply -f shop.yaml`);
  for (const what of ['deployment/front', 'deployment/api', 'statefulset/redis']) {
    await stage.show(bench, `${SHOP} rollout status ${what} --timeout=80s`, {
      timeoutMs: PATIENCE_MS,
      lines: 1,
    });
  }
  const { stdout } = await stage.show(bench, `${SHOP} get pods ${NODES}`);
  for (const place of ['rome-1', 'milan', 'turin']) {
    check(new RegExp(`^front-\\S+ +Running +${place} `, 'm').test(stdout), `a front runs on ${place}`);
  }
  await stage.show(bench, `${SHOP} run client --image lab.local/busybox:1 --labels client=yes -- sleep 3600`);
  await stage.show(bench, `${SHOP} wait --for=condition=Ready pod/client --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.until(bench, inClient('timeout 3 wget -qO- http://front/'), /welcome/, 20_000);
  await stage.until(bench, inClient(`timeout 3 wget -qO- http://front/api/INCR/visits`), /"INCR":1/, 20_000);
  const many =
    'for i in $(seq 30); do timeout 3 wget -qO- http://front/where; timeout 3 wget -qO- http://front/api/INCR/visits >/dev/null; done | sort | uniq -c';
  const fronts = await stage.until(bench, inClient(many), /(front-\S+\n[^]*){3}/, 60_000);
  check((fronts.stdout.match(/front-/g) ?? []).length === 3, 'all three fronts answered');
  await stage.show(bench, inClient('timeout 3 wget -qO- http://front/api/GET/visits'), {
    expect: /"GET":"\d+"/,
  });
}

const inClient = (command: string): string => `${SHOP} exec client -- sh -c '${command}'`;

/** A small drain: cordon and delete; Kubernetes does the rest. A loop of requests counts how many failed meanwhile. */
async function showMove(bench: Workbench, stage: Stage): Promise<void> {
  const placesOf = async (): Promise<string[]> => {
    const { stdout } = await bench.run(
      `${SHOP} get pods -l app=api -o jsonpath='{range .items[*]}{.spec.nodeName}{"\\n"}{end}'`,
    );
    return stdout.trim().split('\n');
  };
  const from = (await placesOf()).find((place) => place !== 'rome-1') ?? 'rome-1';
  const visits =
    'ok=0; bad=0; for i in $(seq 60); do if timeout 3 wget -qO- http://front/api/INCR/visits | grep -q INCR; then ok=$((ok+1)); else bad=$((bad+1)); fi; sleep 0.2; done; echo $ok answered, $bad failed';
  const running = stage.begin(bench, inClient(visits), { timeoutMs: PATIENCE_MS });
  await stage.show(bench, `kubectl cordon ${from}`);
  await stage.show(
    bench,
    `${SHOP} delete pods -l app=api --field-selector spec.nodeName=${from} --wait=false`,
  );
  await stage.show(bench, `${SHOP} rollout status deployment/api --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  const { stdout } = await running.ended;
  stage.quote(stdout);
  await stage.show(bench, `${SHOP} get pods -l app=api ${NODES}`);
  check(!(await placesOf()).includes(from), `no api on ${from}`);
  const failed = Number(/(\d+) failed/.exec(stdout)?.[1] ?? 'NaN');
  check(failed <= 6, `at most a tenth of the visits failed: ${failed}`);
  await stage.show(bench, `kubectl uncordon ${from}`);
}

async function showWork(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} apply -f work.yaml`);
  await stage.show(bench, `${SHOP} wait --for=condition=Complete job/sum --timeout=80s`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.show(bench, `${SHOP} logs -l job=sum --prefix`, { expect: /part 0[^]*part|part[^]*part 0/ });
  await stage.show(bench, `${SHOP} rollout status daemonset/watchman --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.show(bench, `${SHOP} rollout status statefulset/crew --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.show(bench, `${SHOP} wait --for=condition=Ready pod/bare --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
  });
  const { stdout } = await stage.show(bench, `${SHOP} get pods ${NODES}`, { lines: 24 });
  check(/^watchman-\S+ +Running +rome-1 /m.test(stdout), 'the DaemonSet stays home');
  check(!/^watchman-\S+ +\S+ +(milan|turin) /m.test(stdout), 'and nowhere else');
  check(/^bare +Running +(milan|turin) /m.test(stdout), 'the bare pod runs abroad');
  for (const number of [0, 1, 2]) {
    await stage.until(
      bench,
      inClient(`timeout 3 wget -qO- http://crew-${number}.crew:8080/`),
      new RegExp(`^crew-${number}$`, 'm'),
      20_000,
    );
  }
  await stage.show(bench, `${SHOP} create job tock --from=cronjob/tick`);
  await stage.show(bench, `${SHOP} wait --for=condition=Complete job/tock --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.until(
    bench,
    `${SHOP} get cronjob tick -o jsonpath='{.status.lastSuccessfulTime}'`,
    /T/,
    PATIENCE_MS,
  );
}

/**
 * Several small nodes are not one large node: milan has two dongles, one on each node, and rome has two on one node. So the pod never goes
 * to milan.
 */
async function showSizes(bench: Workbench, stage: Stage): Promise<void> {
  const patch = (count: number): string =>
    `--subresource status --type json -p '[{"op":"add","path":"/status/capacity/example.com~1dongle","value":"${count}"}]'`;
  await stage.show(bench, `kubectl patch node rome-1 ${patch(2)}`);
  for (const node of ['milan-1', 'milan-2']) {
    await stage.show(bench, `kubectl --context milan patch node ${node} ${patch(1)}`);
  }
  await stage.until(
    bench,
    "kubectl get node milan -o jsonpath='{.status.allocatable.example\\.com/dongle}'",
    /2/,
  );
  await stage.show(bench, `${SHOP} apply -f dongle.yaml`);
  await stage.until(bench, `${SHOP} get pods -l app=dongle ${NODES}`, /Running +rome-1 /, PATIENCE_MS);
  const mark = String.raw`-o jsonpath='{.items[0].metadata.annotations.tributary\.dev/too-large-for}'`;
  await stage.show(bench, `${SHOP} get pods -l app=dongle ${mark}`, { expect: /milan/ });
  await stage.show(bench, `${SHOP} delete -f dongle.yaml --wait=false`);
}

async function showObjects(bench: Workbench, stage: Stage): Promise<void> {
  const abroad = (
    await bench.run(
      `${SHOP} get pods -l app=front -o jsonpath='{range .items[?(@.spec.nodeName!="rome-1")]}{.metadata.name}{"\\n"}{end}'`,
    )
  ).stdout.split('\n')[0];
  const patch = '{"data":{"index.txt":"closed on Sundays\\n"}}';
  await stage.show(bench, `${SHOP} patch configmap front --type merge -p '${patch}'`);
  // A kubelet brings a changed ConfigMap into its containers within about a minute.
  await stage.until(bench, `${SHOP} exec ${abroad} -- cat /front/index.txt`, /Sundays/, 120_000);
  for (const city of ['milan', 'turin']) {
    const { stdout } = await stage.show(bench, `kubectl --context ${city} -n shop get secrets -o name`);
    check(!stdout.includes('ledger'), `the Secret that no pod names is not in ${city}`);
  }
}

async function showCustom(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} apply -f timetable.yaml`);
  for (const city of ['milan', 'turin']) {
    const look = `kubectl --context ${city} -n shop get timetable week -o jsonpath='{.spec}'`;
    const { stdout } = await stage.until(bench, look, /closed on Sundays/, PATIENCE_MS);
    check(!stdout.includes('accounting'), 'the dropped field stays home');
  }
}

async function showOutage(bench: Workbench, stage: Stage): Promise<void> {
  const cluster = 'kubectl -n tributary-system';
  await stage.show(bench, `${cluster} scale deployment tributary-cluster --replicas 0`);
  await stage.show(
    bench,
    `${cluster} wait --for=delete pod -l app.kubernetes.io/instance=tributary-cluster --timeout=60s`,
    {
      timeoutMs: PATIENCE_MS,
    },
  );
  await stage.show(bench, 'kubectl run elsewhere --image lab.local/busybox:1 -- sleep 3600');
  await stage.show(bench, `${SHOP} run here --image lab.local/busybox:1 -- sleep 3600`);
  await stage.show(bench, `kubectl wait --for=condition=Ready pod/elsewhere --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.until(bench, `${SHOP} get pod here ${NODES}`, /Running +rome-1 /, PATIENCE_MS);
  await stage.show(bench, inClient('timeout 3 wget -qO- http://front/api/GET/visits'), { expect: /GET/ });
  await stage.show(bench, `${cluster} scale deployment tributary-cluster --replicas 1`);
  await stage.show(bench, `${cluster} rollout status deployment/tributary-cluster`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
}

async function showEnd(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} delete namespaceoffloading offloading`, { timeoutMs: PATIENCE_MS * 2 });
  for (const what of ['deployment/api', 'statefulset/redis']) {
    await stage.show(bench, `${SHOP} rollout status ${what} --timeout=80s`, {
      timeoutMs: PATIENCE_MS,
      lines: 1,
    });
  }
  await stage.until(bench, `${SHOP} get pod bare ${NODES}`, /Running +rome-1 /, PATIENCE_MS);
  const { stdout } = await stage.show(bench, `${SHOP} get pods ${NODES}`, { lines: 24 });
  check(!/ (milan|turin) /.test(stdout), 'no pod is abroad');
  for (const city of ['milan', 'turin']) {
    await stage.until(
      bench,
      `kubectl --context ${city} get namespace shop --ignore-not-found`,
      /^$/,
      PATIENCE_MS,
    );
  }
}
