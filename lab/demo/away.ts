/**
 * `make demo DEMO=away [AWAY=600]`: the home cluster loses its power, all of it, for ten minutes, and meanwhile the node
 * loses it that runs its pods over there.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { check, type Stage } from './stage.ts';
import { installTwo, PATIENCE_MS, peerTwo, prepareTwo } from './two-clusters.ts';
import type { Workbench } from './workbench.ts';

const SHOP = 'kubectl -n shop';
const OVER_THERE = 'kubectl --context milan -n shop';
const PLACES =
  "-o custom-columns='POD:.metadata.name,STATUS:.status.phase,NODE:.spec.nodeName,BORN:.metadata.creationTimestamp'";
const DEFAULT_AWAY = 600;
/** 150 numbers. */
const SUM = /the sum is 11325/;

export async function demonstrateAway(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  // oxlint-disable-next-line node/no-process-env -- `make demo AWAY=...`
  const awayMs = Number(process.env['AWAY'] || DEFAULT_AWAY) * 1000;
  const bench = await prepareTwo({ name, stage, signal }, 'away');
  await stage.step('Tributary in both', async () => installTwo(bench, stage));
  await stage.step('peered, and a namespace whose pods run in milan', async () => peerTwo(bench, stage));
  const lost = await stage.step('a Deployment, a StatefulSet with a volume, a Job', async () =>
    showWork(bench, stage),
  );
  const before = await facts(bench);
  const began = performance.now();
  await stage.step('rome loses its power; then the node of milan that runs the pods', async () => {
    await bench.lab.cluster('rome').stop();
    stage.say('rome is off: API server, etcd, node, everything');
    await stage.until(bench, `kubectl --context milan get peeringrequests`, / True +False /, PATIENCE_MS);
    await bench.lab.cluster('milan').node(lost).kill();
    stage.say(`${lost} is off`);
  });
  await stage.step('its pods come back on the other node, the Job ends', async () =>
    showGuardian(bench, stage, lost),
  );
  await stage.step(`rome stays away for ${awayMs / 1000} s in all`, async () => {
    const leftMs = awayMs - (performance.now() - began);
    if (leftMs > 0) await sleep(leftMs, undefined, { signal });
    await stage.show(bench, `${OVER_THERE} get pods ${PLACES}`);
  });
  await stage.step('rome is back, and adopts what it finds', async () => showReturn(bench, stage, before));
}

/** UIDs of the pods at home; they must be the same afterwards. */
async function facts(bench: Workbench): Promise<string> {
  const { stdout } = await bench.run(
    `${SHOP} get pods -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.uid}{"\\n"}{end}'`,
  );
  return stdout;
}

/** Returns the node that runs the StatefulSet's pod and the Deployment's, but not the Job's. */
async function showWork(bench: Workbench, stage: Stage): Promise<string> {
  // The Job runs alone on the first node, everything else on the other one.
  await stage.show(bench, 'kubectl --context milan cordon milan-2');
  await stage.show(bench, `${SHOP} apply -f work.yaml -l part=job`, { lines: 3 });
  await stage.until(
    bench,
    `${OVER_THERE} get pods -l job-name=sum ${PLACES}`,
    /Running +milan-1 /,
    PATIENCE_MS,
  );
  await stage.show(bench, 'kubectl --context milan uncordon milan-2');
  await stage.show(bench, 'kubectl --context milan cordon milan-1');
  await stage.show(bench, `${SHOP} apply -f work.yaml -l part=service`, { lines: 4 });
  for (const what of ['deployment/web', 'statefulset/ledger']) {
    await stage.show(bench, `${SHOP} rollout status ${what} --timeout=100s`, {
      timeoutMs: PATIENCE_MS,
      lines: 1,
    });
  }
  await stage.show(bench, 'kubectl --context milan uncordon milan-1');
  await stage.show(bench, `${SHOP} get pods`);
  await stage.show(bench, `${OVER_THERE} get pods ${PLACES}`);
  return 'milan-2';
}

async function showGuardian(bench: Workbench, stage: Stage, lost: string): Promise<void> {
  await stage.until(
    bench,
    `kubectl --context milan get nodes`,
    new RegExp(`^${lost} +NotReady`, 'm'),
    PATIENCE_MS,
  );
  // A pod of a StatefulSet must not run twice, so somebody has to say that the machine is off. The other pods need
  // nobody.
  await stage.show(
    bench,
    `kubectl --context milan taint node ${lost} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`,
  );
  const running =
    /^ledger-0 +Running +milan-1 [^]*^web-\S+ +Running +milan-1 [^]*^web-\S+ +Running +milan-1 /m;
  await stage.until(bench, `${OVER_THERE} get pods ${PLACES}`, running, 8 * 60_000);
  await stage.until(bench, `${OVER_THERE} get pods -l job-name=sum ${PLACES}`, /Succeeded/, 8 * 60_000);
  await stage.show(bench, 'kubectl --context milan get peeringrequests');
}

async function showReturn(bench: Workbench, stage: Stage, before: string): Promise<void> {
  await bench.lab.cluster('rome').start();
  stage.say('rome is on again');
  await stage.until(bench, 'kubectl get nodes', /^milan +Ready /m, 2 * PATIENCE_MS);
  await stage.until(bench, `${SHOP} get job sum`, /^sum +Complete +1\/1 /m, PATIENCE_MS);
  await stage.show(bench, `${SHOP} logs job/sum`, { expect: SUM });
  const running = /^ledger-0 +1\/1 +Running[^]*^web-\S+ +1\/1 +Running[^]*^web-\S+ +1\/1 +Running/m;
  await stage.until(bench, `${SHOP} get pods`, running, PATIENCE_MS);
  check((await facts(bench)) === before, 'the pods at home are the same ones as before');
  const { stdout } = await stage.show(bench, `${OVER_THERE} get pods ${PLACES}`);
  check((stdout.match(/^(web|ledger|sum)-/gm) ?? []).length === 4, 'one body each, and no other');
  const lines = await stage.show(bench, `${SHOP} exec ledger-0 -- cat /data/ledger`);
  check((lines.stdout.match(/started on/g) ?? []).length === 2, 'started twice: here, and after the loss');
  await stage.until(
    bench,
    'kubectl --context milan -n tributary-peers get secrets -o name',
    /^$/,
    PATIENCE_MS,
  );
}
