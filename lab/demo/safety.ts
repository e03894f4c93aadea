/** `make demo DEMO=safety`: what a guest cannot do, volumes that stay, an autoscaler, and a node that is emptied. */
import { check, type Stage } from './stage.ts';
import { installTwo, PATIENCE_MS, peerTwo, prepareTwo } from './two-clusters.ts';
import type { Workbench } from './workbench.ts';

const SHOP = 'kubectl -n shop';
const OVER_THERE = 'kubectl --context milan -n shop';
const NODES = "-o custom-columns='POD:.metadata.name,STATUS:.status.phase,NODE:.spec.nodeName'";
const REASONS =
  `-o jsonpath='{range .items[*]}{.metadata.name}{": "}` +
  `{.status.conditions[?(@.type=="tributary.dev/Offloaded")].message}{"\\n"}{end}'`;

export async function demonstrateSafety(name: string, stage: Stage, signal: AbortSignal): Promise<void> {
  const bench = await prepareTwo({ name, stage, signal }, 'safety');
  await stage.step('Tributary in both', async () => installTwo(bench, stage));
  await stage.step('peered, and a namespace whose pods run in milan', async () => peerTwo(bench, stage));
  await stage.step('hostile pods are refused, and home says why', async () => showHostile(bench, stage));
  await stage.step('a runtime class forced on guests', async () => showRuntime(bench, stage));
  await stage.step('a StatefulSet with a volume changes its node, and finds its data', async () =>
    showVolume(bench, stage),
  );
  await stage.step('an autoscaler up and down', async () => showAutoscaler(bench, stage));
  await stage.step('drained, with a PodDisruptionBudget', async () => showDrain(bench, stage));
  await stage.step('un-peered', async () => showEnd(bench, stage));
}

async function showHostile(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} apply -f hostile.yaml`);
  const all = /(^[-a-z]+: .*(forbidden|denied|violates|exceeded|may)[^\n]*\n?){7}/m;
  await stage.until(bench, `${SHOP} get pods ${REASONS}`, all, PATIENCE_MS);
  const { stdout } = await stage.show(bench, `${OVER_THERE} get pods -o name`);
  check(stdout.trim() === '', 'none of them is in milan');
  await stage.show(bench, `${SHOP} delete -f hostile.yaml --wait=false`, { lines: 2 });
}

async function showRuntime(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} run plain --image lab.local/busybox:1 -- sleep 3600`);
  await stage.show(bench, `${SHOP} wait --for=condition=Ready pod/plain --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
  });
  await stage.show(bench, `${OVER_THERE} get pod plain -o jsonpath='{.spec.runtimeClassName}'`, {
    expect: /^hardened$/,
  });
  await stage.show(bench, `${SHOP} exec plain -- env`, {
    expect: /^LAB_RUNTIME=hardened$/m,
  });
}

async function showVolume(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} apply -f ledger.yaml`);
  await stage.show(bench, `${SHOP} rollout status statefulset/ledger --timeout=100s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.show(bench, `${SHOP} get pvc,pv`, { expect: /Bound/ });
  const node = `${OVER_THERE} get pod ledger-0 -o jsonpath='{.spec.nodeName}'`;
  const first = (await stage.show(bench, node)).stdout;
  await stage.show(bench, `kubectl --context milan cordon ${first}`);
  await stage.show(bench, `${SHOP} delete pod ledger-0`, { timeoutMs: PATIENCE_MS });
  await stage.until(bench, node, new RegExp(`^(?!${first})milan-`), PATIENCE_MS);
  await stage.show(bench, `${SHOP} rollout status statefulset/ledger --timeout=100s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.until(
    bench,
    `${SHOP} exec ledger-0 -- cat /data/ledger`,
    /(started on[^\n]*\n){2}/,
    PATIENCE_MS,
  );
  await stage.show(bench, `kubectl --context milan uncordon ${first}`);
}

async function showAutoscaler(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} apply -f busy.yaml`);
  await stage.show(bench, `${SHOP} rollout status deployment/busy --timeout=100s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.show(bench, `${SHOP} exec deploy/busy -- touch /tmp/on`);
  await stage.until(bench, `${SHOP} get deployment busy`, /^busy +3\/3 /m, 2 * PATIENCE_MS);
  await stage.show(bench, `${SHOP} get hpa busy`);
  for (const at of ['--context rome', '--context milan']) {
    await stage.until(bench, `kubectl ${at} -n shop top pods -l app=busy`, /^busy-\S+ +\d+m /m, PATIENCE_MS);
  }
  // One of the three pods has the file.
  await stage.show(
    bench,
    `for pod in $(${SHOP} get pods -l app=busy -o name); do ${SHOP} exec $pod -- rm -f /tmp/on; done`,
  );
  await stage.until(bench, `${SHOP} get deployment busy`, /^busy +1\/1 /m, 2 * PATIENCE_MS);
}

async function showDrain(bench: Workbench, stage: Stage): Promise<void> {
  await stage.show(bench, `${SHOP} apply -f guarded.yaml`);
  await stage.show(bench, `${SHOP} rollout status deployment/guarded --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  // While they may only run in foreign clusters, no other node can take them; so home is permitted now.
  await stage.show(
    bench,
    `${SHOP} patch namespaceoffloading offloading --type merge -p '{"spec":{"podStrategy":"LocalAndRemote"}}'`,
  );
  await stage.show(bench, `${SHOP} rollout restart deployment/guarded`, { lines: 1 });
  await stage.show(bench, `${SHOP} rollout status deployment/guarded --timeout=60s`, {
    timeoutMs: PATIENCE_MS,
    lines: 1,
  });
  await stage.show(
    bench,
    'kubectl drain milan --ignore-daemonsets --delete-emptydir-data --force --timeout=100s',
    {
      timeoutMs: PATIENCE_MS,
      lines: 30,
    },
  );
  await stage.show(bench, `${SHOP} get pdb guarded`);
  const { stdout } = await stage.show(bench, `${SHOP} get pods -l app=guarded ${NODES}`);
  check(!/ milan$/m.test(stdout), 'none of the guarded pods is in milan');
  await stage.show(bench, 'kubectl uncordon milan');
}

async function showEnd(bench: Workbench, stage: Stage): Promise<void> {
  // Data in foreign volumes would be deleted with the peering.
  await stage.show(bench, 'tributary unpeer milan', { code: 1, expect: /shop\/data-ledger-0/ });
  await stage.show(bench, `${SHOP} delete statefulset ledger`);
  await stage.show(bench, `${SHOP} delete pvc data-ledger-0`);
  await stage.until(bench, 'kubectl get pv --no-headers', /^$/, PATIENCE_MS);
  await stage.show(bench, 'tributary unpeer milan', { timeoutMs: PATIENCE_MS });
  await stage.until(bench, 'kubectl get nodes', /^(?![^]*^milan )/m, PATIENCE_MS);
  await stage.until(
    bench,
    'kubectl --context milan get namespace shop --ignore-not-found',
    /^$/,
    PATIENCE_MS,
  );
}
