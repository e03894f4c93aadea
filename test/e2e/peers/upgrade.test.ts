import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Program } from '../../../lab/demo/program.ts';
import { agentImage, agentImageName } from '../../../lab/images-agent.ts';
import { run } from '../../../lab/run.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { deploymentPath } from '../../support/e2e/api.ts';
import { isNodeReady, Peers } from '../../support/e2e/peers.ts';
import { aDeployment, isReady } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { previousCheckout } from '../../support/labs/previous.ts';
import { short } from '../../support/long.ts';

/**
 * The agent of running pods is replaced by another image, and nothing happens to the pods. Programs of different versions also
 * meet in test/integration/versions.test.ts.
 */

const NAMESPACE = 'upgrade';
const REPLICAS = 3;
const OTHER = 'lab.local/tributary:other';
const TODAY = 'lab.local/tributary:today';
const ROLLED_TO = short('the image that an upgrade rolls to', {
  short: 'the same program under another name',
  long: 'that of the previous commit',
});
/** Tells the same container from one that was started again. */
const COUNT =
  'trap "exit 0" TERM; n=0; while :; do n=$((n+1)); ' +
  // Whoever reads the file never finds it empty, nor behind the log.
  'echo $n >/tmp/next; mv /tmp/next /tmp/n; echo "tick $n"; sleep 1 & wait $!; done';

let peers: Peers;
let tenant = '';
/** Everything that has happened to remote pods. */
let watch: Program;

beforeAll(async () => {
  const archive = previousImage();
  archive.catch(() => undefined);
  peers = await Peers.open();
  await loadOther(await archive);
  await peers.peer(NAMESPACE);
  await peers.rome.create(
    deploymentPath(NAMESPACE),
    aDeployment('web', REPLICAS, COUNT, {
      spec: { nodeSelector: { 'tributary.dev/virtual-node': 'milan' } },
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    }),
  );
  await rolledOut();
  tenant = await peers.tenant(NAMESPACE);
  const columns = `-L tributary.dev/home-uid --no-headers`;
  watch = peers.start(
    `kubectl --context milan -n ${tenant} get pods --watch --output-watch-events ${columns}`,
    { timeoutMs: 600_000 },
  );
  await until('the watch has begun', async () => Promise.resolve(events('ADDED').length >= REPLICAS));
}, 600_000);

afterAll(async () => {
  await watch?.stop();
  await peers?.close();
}, 200_000);

/** The image of the previous commit; undefined if it is not wanted, or none can be built. */
async function previousImage(): Promise<string | undefined> {
  if (ROLLED_TO === 'the same program under another name') return undefined;
  const previous = await previousCheckout();
  if (typeof previous === 'string') {
    console.info(`rolled to the same program under another name: ${previous}`);
    return undefined;
  }
  try {
    const archive = await agentImage(console.error, previous.root);
    console.info(`rolled to ${previous.commit} and back`);
    return archive;
  } catch (error) {
    console.info(`rolled to the same program under another name: ${(error as Error).message}`);
    return undefined;
  } finally {
    previous.remove();
  }
}

/** All archives use the same image name, so the existing image is renamed for a moment. */
async function loadOther(archive: string | undefined): Promise<void> {
  for (const node of peers.lab.cluster('rome').nodes) {
    const images = async (...args: string[]): Promise<unknown> =>
      run(['ctr', '-a', node.containerdSocket, '-n', 'k8s.io', 'images', ...args]);
    await images('tag', '--force', agentImageName, TODAY);
    if (archive !== undefined) await node.loadImage(archive);
    await images('tag', '--force', agentImageName, OTHER);
    await images('tag', '--force', TODAY, agentImageName);
  }
}

async function rolledOut(): Promise<void> {
  await peers.ask(`kubectl -n ${NAMESPACE} rollout status deployment/web --timeout=100s`, {
    timeoutMs: 110_000,
  });
}

/** Names of remote pods, one for each such event so far. */
const events = (type: 'ADDED' | 'DELETED'): string[] =>
  [...watch.stdout.matchAll(new RegExp(`^${type} +(\\S+)`, 'gm'))].map(([, name = '']) => name);

/** What is different when anything was started again. */
interface Life {
  name: string;
  uid: string;
  startTime: unknown;
  containers: unknown;
}
const livesOf = (pods: readonly Pod[]): Life[] =>
  pods
    .map(({ metadata, status }) => ({
      name: metadata.name,
      uid: metadata.uid,
      startTime: status?.startTime,
      containers: status?.containerStatuses?.map(({ containerID, restartCount, state }) => [
        containerID,
        restartCount,
        state?.running?.startedAt,
      ]),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));

const lives = async (): Promise<{ home: Life[]; remote: Life[] }> => ({
  home: livesOf(await peers.rome.pods(NAMESPACE, 'app=web')),
  remote: livesOf(await peers.milan.pods(tenant, 'app=web')),
});

const agents = async (): Promise<Pod[]> => peers.rome.pods('tributary-agents');

/** Applies the manifests of that image and waits until its agent works. Returns the seconds in which no agent was Ready. */
async function upgrade(image: string): Promise<string> {
  const before = new Set((await agents()).map(({ metadata }) => metadata.uid));
  const began = performance.now();
  await peers.upgrade('rome', image);
  await until(
    `the agent is that of ${image}`,
    async () => {
      const pods = await agents();
      return pods.length === 1 && pods.every((pod) => isReady(pod) && isNew(pod));
    },
    { seconds: 120, seen: agents },
  );
  await peers.untilNodes('are Ready', (nodes) => nodes.length > 0 && nodes.every(isNodeReady), 60);
  return ((performance.now() - began) / 1000).toFixed(1);

  function isNew({ metadata, spec }: Pod): boolean {
    return !before.has(metadata.uid) && spec?.containers[0]?.image === image;
  }
}

/** For each pod, the number to which its log has counted. The log must begin with 1 and have no gap. */
async function counted(): Promise<number[]> {
  const pods = await peers.rome.pods(NAMESPACE, 'app=web');
  return Promise.all(
    pods.map(async ({ metadata: { name } }) => {
      const log = await peers.ask(`kubectl -n ${NAMESPACE} logs ${name}`);
      const ticks = [...log.matchAll(/^tick (\d+)$/gm)].map(([, tick]) => Number(tick));
      expect(ticks).toEqual(ticks.map((_, index) => index + 1));
      const told = Number(await peers.ask(`kubectl -n ${NAMESPACE} exec ${name} -- cat /tmp/n`));
      expect(told).toBeGreaterThanOrEqual(ticks.length);
      return ticks.length;
    }),
  );
}

test('pods run on while their agent is replaced', async () => {
  const [before, ticks] = [await lives(), await counted()];
  expect(before.home).toHaveLength(REPLICAS);
  const took = await upgrade(OTHER);
  expect(await lives()).toEqual(before);
  const later = await counted();
  expect(later.every((count, index) => count > (ticks[index] ?? 0))).toBe(true);
  expect([events('ADDED').length, events('DELETED')]).toEqual([REPLICAS, []]);
  console.info(`upgraded in ${took} s; counted on from ${ticks.join(', ')} to ${later.join(', ')}`);
});

test('also in the middle of a rollout, which then ends as it should', async () => {
  const old = (await peers.rome.pods(NAMESPACE, 'app=web')).map(({ metadata }) => metadata.name);
  const pace = async (minReadySeconds: number): Promise<unknown> =>
    peers.rome.patch(deploymentPath(NAMESPACE, 'web'), { spec: { minReadySeconds } });
  // Three times that is longer than the upgrade takes, on a busy machine, too.
  await pace(40);
  await peers.ask(`kubectl -n ${NAMESPACE} set env deployment/web COLOUR=green`);
  await until('the first new pod is there', async () =>
    Promise.resolve(events('ADDED').length > REPLICAS && events('ADDED').length < 2 * REPLICAS),
  );
  const took = await upgrade(agentImageName);
  const gone = events('DELETED').length;
  expect(gone).toBeLessThan(REPLICAS);
  await pace(0);
  await rolledOut();
  await until('the old pods are gone', async () => {
    const { home, remote } = await lives();
    return Math.max(home.length, remote.length) === REPLICAS && events('DELETED').length >= REPLICAS;
  });
  const now = await lives();
  const pods = await peers.rome.pods(NAMESPACE, 'app=web');
  // Each home pod, old and new, has had exactly one remote pod.
  expect(events('ADDED').toSorted()).toEqual(
    [...old, ...pods.map(({ metadata }) => metadata.name)].toSorted(),
  );
  expect(events('DELETED').toSorted()).toEqual(old.toSorted());
  const containersOf = (side: Life[]): unknown => side.map(({ containers }) => containers);
  expect(containersOf(now.remote)).toEqual(containersOf(now.home));
  for (const { status } of pods) {
    expect(status?.containerStatuses?.map(({ restartCount }) => restartCount)).toEqual([0]);
  }
  await counted();
  console.info(`upgraded in ${took} s while ${gone} of ${REPLICAS} old pods had gone`);
});
