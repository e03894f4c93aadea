import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Daemon } from '../../../lab/daemon.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { deploymentPath } from '../../support/e2e/api.ts';
import { endOutside, startOutside } from './support/agent.ts';
import { aDeployment, isReady, statusOf } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';
import { short } from '../../support/long.ts';
import { seeded, type Chance } from '../../support/seed.ts';

const NAMESPACE = 'crash';
const KILLS = short('kills of an agent during rollouts', { short: 3, long: 20 });
const REPLICAS = 10;
/** From before its first request until well into its work, so that kills hit it at any point. */
const LIFE_MS = { least: 300, most: 3_000 };

let world: World;
let agent: Daemon | undefined;

beforeAll(async () => {
  world = await World.open(NAMESPACE);
  await Promise.all([
    world.home.create(deploymentPath(NAMESPACE), aDeployment('steady', 5)),
    world.home.create(deploymentPath(NAMESPACE), aDeployment('rolling', REPLICAS)),
  ]);
  await untilRolledOut();
  agent = await startOutside(world);
});

afterAll(async () => {
  if (agent !== undefined) await endOutside(world, agent);
  await world.close();
});

async function untilRolledOut(): Promise<void> {
  for (const name of ['steady', 'rolling']) {
    const wait = ['rollout', 'status', `deployment/${name}`, '--timeout=150s'];
    await world.ask(wait, { timeoutMs: 160_000 });
  }
}

const homeUid = (remote: Pod): string => remote.metadata.labels?.['tributary.dev/home-uid'] ?? '';

/** Every remote pod ever seen, by its home pod. */
class Bodies {
  readonly #seen = new Map<string, Set<string>>();

  async look(): Promise<void> {
    for (const pod of await world.foreign.pods(world.tenant)) {
      const bodies = this.#seen.get(homeUid(pod)) ?? new Set();
      this.#seen.set(homeUid(pod), bodies.add(pod.metadata.uid));
    }
  }

  doubled(): string[] {
    return [...this.#seen].filter(([, bodies]) => bodies.size > 1).map(([uid]) => uid);
  }
}

async function rollWhileKilled(chance: Chance): Promise<void> {
  const running = new Map(
    (await world.foreign.pods(world.tenant)).map((pod) => [pod.metadata.uid, statusOf(pod)?.containerID]),
  );
  expect(running.size).toBe(REPLICAS + 5);
  const bodies = new Bodies();
  const lives: number[] = [];
  let isRolling = false;
  for (let kill = 0; kill < KILLS; kill++) {
    if (!isRolling) await world.ask(['rollout', 'restart', 'deployment/rolling']);
    const life = chance.between(LIFE_MS.least, LIFE_MS.most);
    lives.push(life);
    await sleep(life);
    await bodies.look();
    await agent?.restart();
    const { status } = (await world.home.get<{ status: Record<string, number> }>(
      deploymentPath(NAMESPACE, 'rolling'),
    )) ?? { status: {} };
    isRolling =
      status['updatedReplicas'] !== REPLICAS ||
      status['availableReplicas'] !== REPLICAS ||
      status['replicas'] !== REPLICAS;
  }
  console.info(`killed after ${lives.join(', ')} ms`);
  await untilRolledOut();
  const sides = async (): Promise<{ home: Pod[]; remote: Pod[] }> => ({
    home: await world.home.pods(NAMESPACE),
    remote: await world.foreign.pods(world.tenant),
  });
  const { home, remote } = await until(
    'as many pods over there as at home, all Ready',
    async () => {
      await bodies.look();
      const now = await sides();
      const all = [...now.home, ...now.remote];
      return all.length === 2 * (REPLICAS + 5) && all.every(isReady) && now;
    },
    {
      seconds: 60,
      seen: async () => (await sides()).home.map(({ metadata, status }) => [metadata.name, status?.phase]),
    },
  );
  // Exactly one remote pod for each home pod, now and at any time before.
  expect(remote.map(homeUid).sort()).toEqual(home.map(({ metadata }) => metadata.uid).sort());
  expect(bodies.doubled()).toEqual([]);
  // Nothing was restarted: containers that ran before and are still wanted are the same.
  expect(remote.map((pod) => statusOf(pod)?.restartCount)).toEqual(remote.map(() => 0));
  const survivors = remote.filter(({ metadata }) => running.has(metadata.uid));
  expect(survivors.length).toBeGreaterThanOrEqual(5);
  for (const pod of survivors) expect(statusOf(pod)?.containerID).toBe(running.get(pod.metadata.uid));
}

test(`${KILLS} times kill -9 during a rollout of ${REPLICAS} replicas`, async () => seeded(rollWhileKilled));
