import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CONDITION_STATUS_CUT } from '../../src/api/names.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { pods } from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import type { Pod, PodCondition } from '../../src/api/wire.ts';
import { hasCode } from '../../src/lib/errors.ts';
import { eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { LendingWorld } from '../support/peering/lending-world.ts';

/** What other sides make this cluster write, on real API servers: as they count it, and as its watch shows it. */

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
});
afterAll(async () => lab?.down());

/** How often anybody has written that at home, as the API server counts. */
async function written(what: RegExp): Promise<number> {
  const { body } = await lab.homeCluster.api.call('GET', '/metrics');
  const lines = body
    .split('\n')
    .filter((line) => line.startsWith('apiserver_request_total{') && what.test(line))
    .filter((line) => /verb="(POST|PUT|PATCH)"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('strangers that never stop changing what they want', () => {
  const WRITES = /resource="peeringrequests"/;
  const STRANGERS = 10;
  const ROUNDS = 60;
  const wish = (round: number): string[] =>
    Array.from({ length: 64 }, (_none, n) => `${'n'.repeat(50)}-${n}-${round}`).toSorted();
  let world: LendingWorld;

  beforeAll(async () => {
    world = new LendingWorld(lab.home);
    await world.start();
    await world.policy({ approval: 'Manual' });
  });
  afterAll(async () => {
    for (const { metadata } of (await lab.home.list(peeringRequests)).items) {
      await lab.home.delete(peeringRequests, { name: metadata.name });
    }
    await lab.home.delete(sharingPolicies, { name: 'everybody' });
    await world.stop();
  });

  test('cost a trickle of small objects, and nobody else waits for them', async () => {
    const before = await written(WRITES);
    const strangers = Array.from({ length: STRANGERS }, () => world.peer());
    for (let round = 0; round < ROUNDS; round++) {
      for (const stranger of strangers) await stranger.ask({ namespaces: wish(round) });
      // As long as a link needs for the next message.
      await lab.home.list(peeringRequests);
    }
    const [first] = strangers;
    await eventually(
      'one of them is shown',
      async () => (await first?.object())?.status?.phase === 'Pending',
    );
    const { items } = await lab.home.list(peeringRequests);
    for (const item of items) {
      expect(JSON.stringify(item).length).toBeLessThan(4096);
      expect(item.spec.namespaces.length + (item.spec.moreNamespaces ?? 0)).toBe(64);
    }
    const count = (await written(WRITES)) - before;
    console.info(`${STRANGERS} strangers, ${ROUNDS} wishes each: ${count} writes`);
    expect(count).toBeLessThan(STRANGERS * 16);

    const honest = world.peer();
    await honest.ask();
    await honest.ask({ namespaces: ['shop', 'web'] });
    await eventually('what a stranger wants now is shown', async () => {
      const shown = await honest.object().catch((error: unknown) => {
        if (!hasCode(error, 'NotFound')) throw error;
      });
      return shown?.spec.namespaces.join() === 'shop,web';
    });
    const known = world.peer();
    await world.policy({ peers: { clusterIDs: [known.id] }, precedence: 10 }, 'a-known-one');
    await known.ask({ namespaces: wish(0) });
    await known.offered();
    expect((await known.object()).spec.namespaces).toEqual(wish(0));
    await lab.home.delete(sharingPolicies, { name: 'a-known-one' });

    const approval = { spec: { approval: 'Approved' } };
    await lab.home.patch(peeringRequests, { name: first?.id ?? '' }, { type: 'merge', body: approval });
    await first?.offered();
    const { spec } = (await first?.object()) ?? {};
    expect(spec?.namespaces).toEqual(wish(ROUNDS - 1));
    expect(spec).not.toHaveProperty('moreNamespaces');
  });
});

describe('a provider that reports a megabyte of status, another one each time', () => {
  const main = { name: 'main', image: 'web:1' };
  const home = { name: 'web', namespace: 'shop' };
  const at = { name: 'web', namespace: 'tenant' };
  const WRITES = /resource="pods".*subresource="status"/;
  const ROUNDS = 30;
  const words = (round: number): PodCondition[] =>
    Array.from({ length: 32 }, (_none, n) => ({
      type: `Claim${n}`,
      status: 'True',
      reason: 'Hostile\u001b[2J',
      message: `${round} \u202e${'x'.repeat(32_000)}`,
    }));

  test('fills neither the pod nor etcd at home, and its last word is shown, cut, as it says', async () => {
    await lab.start();
    await lab.ready();
    await lab.home.create(pods, { metadata: home, spec: { nodeName: NODE, containers: [main] } });
    const there = async (): Promise<Pod | undefined> =>
      lab.foreign.get(pods, at).catch((error: unknown) => {
        if (!hasCode(error, 'NotFound')) throw error;
        return undefined;
      });
    await eventually('the pod runs', async () => (await there())?.status?.phase === 'Running');
    await eventually(
      'home shows it',
      async () => (await lab.home.get(pods, home)).status?.phase === 'Running',
    );
    const before = await written(WRITES);
    const stop = new AbortController();
    let bytes = 0;
    const watching = (async (): Promise<void> => {
      const { resourceVersion } = await lab.home.list(pods, { namespace: 'shop' });
      const events = lab.home.watch(pods, {
        namespace: 'shop',
        resourceVersion,
        signal: stop.signal,
      });
      for await (const event of events) {
        if (event.type !== 'BOOKMARK') bytes += JSON.stringify(event.object).length;
      }
    })().catch(() => undefined);
    for (let round = 0; round < ROUNDS; round++) {
      const status = { ...(await there())?.status, message: `round ${round}`, conditions: words(round) };
      await lab.foreign.patch(pods, at, { type: 'merge', body: { status } }, { subresource: 'status' });
    }
    await eventually(
      'the last word is shown',
      async () => {
        const shown = (await lab.home.get(pods, home)).status?.conditions ?? [];
        return shown.find(({ type }) => type === 'Claim0')?.message?.startsWith(`${ROUNDS - 1} `) === true;
      },
      120_000,
    );
    stop.abort(new Error('enough'));
    await watching;
    const count = (await written(WRITES)) - before;
    console.info(`${ROUNDS} statuses of 1 MB: ${count} writes, ${Math.round(bytes / 1024)} KiB`);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(ROUNDS * 32 * 1024);
    const shown = await lab.home.get(pods, home);
    expect(JSON.stringify(shown.status).length).toBeLessThan(48 * 1024);
    const conditions = shown.status?.conditions ?? [];
    expect(conditions.find(({ type }) => type === CONDITION_STATUS_CUT)).toMatchObject({ status: 'True' });
    const claim = conditions.find(({ type }) => type === 'Claim0');
    expect(claim?.reason).toBe('Hostile [2J');
    expect(claim?.message).toMatch(/^\d+ {2}x+ \[cut here\]$/u);
  });

  test('and a pod that flaps without end is shown further and further apart, and as it is in the end', async () => {
    const before = await written(WRITES);
    const flaps = 150;
    for (let round = 0; round < flaps; round++) {
      const status = { message: `round ${round}`, conditions: null };
      await lab.foreign.patch(pods, at, { type: 'merge', body: { status } }, { subresource: 'status' });
    }
    const isLast = async (): Promise<boolean> =>
      (await lab.home.get(pods, home)).status?.message === `round ${flaps - 1}`;
    await eventually('the last word is shown', isLast, 120_000);
    const count = (await written(WRITES)) - before;
    console.info(`${flaps} changes of a status: ${count} writes`);
    expect(count).toBeLessThan(60);
  });
});
