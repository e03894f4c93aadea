import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';

import type { Program } from '../../../lab/demo/program.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { deploymentPath } from '../../support/e2e/api.ts';
import { short } from '../../support/long.ts';
import { Peers } from '../../support/e2e/peers.ts';
import { aDeployment, isReady, SLEEP } from '../../support/e2e/pods.ts';
import { during, until } from '../../support/e2e/until.ts';

/** Drains of the virtual node: like any other node, with a budget, with a dead peer, and while the peering ends. */
const NAMESPACE = 'drained';
const DRAIN = 'kubectl drain milan --ignore-daemonsets --force';

let peers: Peers;

beforeAll(async () => {
  peers = await Peers.open();
}, 400_000);

beforeEach(async () => {
  await peers.setNetwork('open');
  await peers.unpeer();
  await peers.peer(NAMESPACE, { sharing: { sharePercent: 100 } });
}, 300_000);

afterAll(async () => peers?.close(), 300_000);

const pods = async (): Promise<Pod[]> => peers.rome.pods(NAMESPACE, 'app=guarded');
const placesOf = async (): Promise<string[]> =>
  (await pods())
    .filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined)
    .map(({ spec }) => spec?.nodeName ?? '')
    .toSorted();
const seen = async (): Promise<unknown> =>
  (await pods()).map(({ metadata, spec, status }) => [
    metadata.name,
    metadata.deletionTimestamp,
    spec?.nodeName,
    status?.phase,
  ]);

/** Two pods in milan; the budget requires this number of them. */
async function guarded(minAvailable: number, { isBound }: { isBound: boolean }): Promise<void> {
  const spec = {
    nodeSelector: isBound ? { 'tributary.dev/virtual-node': 'milan' } : {},
    terminationGracePeriodSeconds: 1,
  };
  // A preference is not enough, because the scheduler weighs it against spreading.
  await peers.ask('kubectl cordon rome-1');
  try {
    await peers.rome.create(deploymentPath(NAMESPACE), aDeployment('guarded', 2, SLEEP, { spec }));
    await peers.rome.create(`/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'guarded' },
      spec: { minAvailable, selector: { matchLabels: { app: 'guarded' } } },
    });
    await until('both run in milan', async () => (await placesOf()).join() === 'milan,milan', {
      seconds: 90,
      seen,
    });
  } finally {
    await peers.ask('kubectl uncordon rome-1');
  }
}

const unpeerByForce = async (): Promise<string> =>
  peers.ask(`tributary unpeer ${peers.id.milan} --force --timeout 60s`, { timeoutMs: 90_000 });

async function expectGone(drain: Program): Promise<void> {
  await until('no virtual node is left', async () => (await peers.nodes()).length === 0, { seconds: 60 });
  await until(
    'no pod is left on it',
    async () => (await pods()).every(({ spec }) => spec?.nodeName === undefined),
    { seconds: 60, seen },
  );
  await drain.ended;
}

test('a drain leaves as many as the budget says, and ends', async () => {
  await guarded(1, { isBound: false });
  const drain = peers.start(`${DRAIN} --timeout=100s`, { timeoutMs: 120_000 });
  let fewest = 2;
  let isEnded = false;
  const ended = drain.ended.finally(() => (isEnded = true));
  await until(
    'the drain ends',
    async () => {
      fewest = Math.min(fewest, (await placesOf()).length);
      return isEnded;
    },
    { seconds: 110, seen },
  );
  expect(await ended).toMatchObject({ code: 0 });
  expect(fewest).toBeGreaterThanOrEqual(1);
  await until('both run at home', async () => (await placesOf()).join() === 'rome-1,rome-1', {
    seconds: 60,
    seen,
  });
});

test('un-peering by force in the middle of a drain that a budget holds up', async () => {
  await guarded(2, { isBound: true });
  const drain = peers.start(`${DRAIN} --timeout=100s`, { timeoutMs: 120_000 });
  await during(3, async () => expect((await placesOf()).length).toBe(2));
  await unpeerByForce();
  await expectGone(drain);
});

// test/integration/drain.test.ts has a dead peer and a dead agent in every run.
if (short('un-peerings in the middle of a drain', { short: 1, long: 2 }) > 1) {
  test('un-peering in the middle of a drain whose peer is dead', async () => {
    await guarded(1, { isBound: true });
    await peers.setNetwork('cut');
    const drain = peers.start(`${DRAIN} --timeout=100s`, { timeoutMs: 120_000 });
    await until(
      'a pod waits for a peer that does not answer',
      async () => (await pods()).some(({ metadata }) => metadata.deletionTimestamp !== undefined),
      { seen },
    );
    await unpeerByForce();
    await expectGone(drain);
  });
}
