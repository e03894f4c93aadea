import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { nodes } from '../../src/api/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { KubeObject } from '../../lab/kube-api.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { webDeployment } from '../support/labs/web.ts';
import { eventually } from '../support/eventually.ts';
import { short } from '../support/long.ts';
import { seeded, type Chance } from '../support/seed.ts';

/**
 * The agent as a process between two real API servers: it is killed, gets false answers, and gets credentials that do
 * not work.
 */

/** Less than a test may take, so that it says what it has waited for. */
const WAIT_MS = 120_000;
const REPLICAS = 20;
const KILLS = short('kills of an agent during two rollouts', { short: 3, long: 40 });
const LONGEST_LIFE_MS = 3_000;

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
});
afterAll(async () => lab?.down());

const deployment = (image: string): KubeObject => webDeployment(image, REPLICAS);

/**
 * What is not yet true of this: every home pod runs the image and is Ready, each has exactly one remote pod, and
 * there are no others.
 */
async function unfinished(image: string): Promise<string[]> {
  const [here, there] = [await lab.pods('home'), await lab.pods('foreign')];
  const wrong = here.flatMap(({ metadata, spec, status }) => {
    const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
    const bodies = there.filter((body) => body.metadata.labels?.[LABEL_HOME_UID] === metadata.uid).length;
    const found = {
      image: spec?.containers[0]?.image,
      isReady: isReady ?? false,
      isEnding: metadata.deletionTimestamp !== undefined,
      bodies,
    };
    const isRight = found.image === image && found.isReady && !found.isEnding && bodies === 1;
    return isRight
      ? []
      : [`${metadata.name}: ${JSON.stringify({ ...found, phase: status?.phase, message: status?.message })}`];
  });
  if (here.length !== REPLICAS) wrong.push(`${here.length} pods at home`);
  if (there.length !== REPLICAS) wrong.push(`${there.length} pods over there`);
  return wrong;
}

async function rolledOut(image: string): Promise<void> {
  let wrong: string[] = [];
  try {
    await eventually('rolled out', async () => {
      wrong = await unfinished(image);
      return wrong.length === 0;
    });
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${wrong.join('\n')}`, { cause: error });
  }
}

/** Remote pods by UID, with what would show a restart. */
const bodies = async (): Promise<string[]> =>
  (await lab.pods('foreign'))
    .map(({ metadata, status }) => {
      const [container] = status?.containerStatuses ?? [];
      return `${metadata.labels?.[LABEL_HOME_UID]} ${metadata.uid} ${container?.restartCount}`;
    })
    .toSorted();

async function rollOutWhileKilled(chance: Chance): Promise<void> {
  let kills = 0;
  const seen = new Map<string, Set<string>>();
  const watch = async (): Promise<void> => {
    for (const { metadata } of await lab.pods('foreign')) {
      const owner = metadata.labels?.[LABEL_HOME_UID] ?? '';
      seen.set(owner, (seen.get(owner) ?? new Set()).add(metadata.uid));
    }
  };
  const killer = (async (): Promise<void> => {
    while (kills < KILLS) {
      await lab.start();
      await systemClock.sleep(chance.between(300, LONGEST_LIFE_MS));
      await lab.kill();
      kills++;
      await watch();
    }
    await lab.start();
  })();
  await lab.homeCluster.api.apply(deployment('web:1'));
  await eventually(
    'some pods run',
    async () => {
      await watch();
      return kills >= KILLS / 4 && (await lab.pods('foreign')).length > 0;
    },
    WAIT_MS,
  );
  await lab.homeCluster.api.apply(deployment('web:2'));
  await killer;
  await rolledOut('web:2');
  expect(kills).toBe(KILLS);
  await watch();
  // There is never a second remote pod, not even after the first has ended.
  expect([...seen.values()].filter((uids) => uids.size > 1)).toEqual([]);
  const before = await bodies();
  await lab.kill();
  await lab.start();
  await lab.ready();
  expect(await bodies()).toEqual(before);
}

test(`killed ${KILLS} times at random during two rollouts of ${REPLICAS}: one body each, and none restarted`, async () =>
  seeded(rollOutWhileKilled));

test.each([1, 2, 3])(
  'started cold while the foreign API server fails and then lists nothing: nothing is deleted (%i)',
  async () => {
    await rolledOut('web:2');
    const before = await bodies();
    const here = (await lab.pods('home')).map(({ metadata }) => metadata.uid).toSorted();
    await lab.kill();
    // A live read contradicts the empty list, so the pods are listed once more.
    const wanted = { pods: 4, configmaps: 3, secrets: 3 };
    const lists: Record<string, number> = {};
    const deletions: string[] = [];
    lab.proxy.judge(({ method, path, resource, isList }) => {
      if (method === 'DELETE') deletions.push(path);
      const isProbe = /[?&]limit=1(&|$)/u.test(path);
      if (!isList || isProbe || !(resource in wanted)) return undefined;
      const count = (lists[resource] = (lists[resource] ?? 0) + 1);
      if (count <= 2) return { kind: 'status', code: 500 };
      return count === 3 ? { kind: 'empty' } : undefined;
    });
    await lab.start();
    await eventually(
      'lied to',
      () => Object.entries(wanted).every(([resource, count]) => (lists[resource] ?? 0) >= count),
      WAIT_MS,
    );
    await lab.ready();
    await rolledOut('web:2');
    expect(deletions).toEqual([]);
    expect(await bodies()).toEqual(before);
    expect((await lab.pods('home')).map(({ metadata }) => metadata.uid).toSorted()).toEqual(here);
    lab.proxy.calm();
  },
);

test.each([
  [
    'a kubeconfig that is none',
    (text: string) => text.slice(40, 300),
    'CredentialsValid',
    'KubeconfigInvalid',
  ],
  [
    'a credential that is refused',
    (text: string) => text.replace(/token: .*/u, 'token: expired'),
    'CredentialsValid',
    'CredentialsRejected',
  ],
  [
    'a server that is not there',
    (text: string) => text.replace(/server: .*/u, 'server: https://127.0.0.1:1'),
    'ForeignClusterReachable',
    'ForeignClusterUnreachable',
  ],
])('%s: said by the VirtualNode and its Node, and nothing is lost', async (_what, spoil, type, reason) => {
  const before = await bodies();
  await lab.use(spoil(lab.kubeconfig));
  await eventually(reason, async () => (await lab.condition(type))?.reason === reason, WAIT_MS);
  expect(await lab.condition(type)).toMatchObject({ status: 'False' });
  expect(await lab.condition('Ready')).toMatchObject({ status: 'False', reason });
  // The Node is another object, with writes of its own.
  await eventually('the Node says so, too', async () => {
    const { status } = await lab.home.get(nodes, { name: NODE });
    const ready = status?.conditions?.find((it) => it.type === 'Ready');
    return ready?.status === 'False' && ready.reason === reason;
  });
  expect(JSON.stringify(await lab.condition(type))).not.toContain('token');
  await lab.use(lab.kubeconfig);
  await lab.ready();
  expect(await bodies()).toEqual(before);
});
