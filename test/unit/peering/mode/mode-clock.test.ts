import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  CLUSTER_MODE,
  clusterModes,
  type ClusterModeStatus,
  type TetherSpec,
} from '../../../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import type { PeeringRequest } from '../../../../src/api/peering-request.ts';
import { sharingPolicies } from '../../../../src/api/sharing-policy.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { Listeners } from '../../../../src/lib/listeners.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { ModeKeeper } from '../../../../src/peering/mode/mode.ts';
import { TETHER_POLICY } from '../../../../src/peering/mode/sharing-policy.ts';
import type { LinkView } from '../../../../src/peering/ports.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeCollection } from '../../../support/fake-api/fake-collection.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** The mode of a device whose wall clock jumps, as after sleep. */

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
const tether: TetherSpec = { cluster: 'company', lostAfterSeconds: 60 };

let clock: FakeClock;
let api: FakeApi;
let isLinked: boolean;
let links: Listeners<[{ clusterID?: string }]>;
let program: Lifecycle;
let phases: string[];

async function started(): Promise<Lifecycle> {
  const client = api.client();
  const caches = new Caches({ client, clock, log: silentLogger });
  const agreed = { report: () => ({ phase: 'Established' as const }), onChange: () => () => undefined };
  const collection = caches.of(foreignClusters);
  const sharing = caches.of(sharingPolicies);
  const keeper = new ModeKeeper({
    client,
    caches,
    clock,
    log: silentLogger,
    events: { event: (_about, _type, phase) => void phases.push(phase) },
    own: 'device',
    isBringingBack: () => false,
    hasForwarded: () => false,
    intent: () => ({ wanted: false }),
    clusters: collection,
    sharing,
    virtualNodes: new FakeCollection<VirtualNode>(),
    links: () => ({
      view: (clusterID) => ({ clusterID, connected: isLinked }) as LinkView,
      onChange: (listener) => links.add(listener),
      call: async () => Promise.reject(new Error('nobody answers')),
    }),
    outgoing: () => agreed,
    incoming: () => ({ ...agreed, requests: (): PeeringRequest[] => [], request: () => undefined }),
  });
  const made = new Lifecycle([collection, sharing, keeper.cache(), ...keeper.actors()], {
    clock,
    log: silentLogger,
    stopDeadlineMs: SECOND_MS,
  });
  await clock.during('start', made.start(new AbortController().signal));
  return made;
}

const status = async (): Promise<ClusterModeStatus> =>
  (await api.client().get(clusterModes, { name: CLUSTER_MODE })).status ?? {};
const setLink = (to: boolean): void => {
  isLinked = to;
  links.tell({ clusterID: 'company' });
};
const inPhase = async (phase: string): Promise<void> =>
  clock.until(phase, async () => (await status()).phase === phase);

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock, types: [clusterModes, foreignClusters, sharingPolicies] });
  links = new Listeners();
  phases = [];
  isLinked = true;
  const client = api.client();
  await client.create(foreignClusters, {
    metadata: { name: 'company' },
    status: { clusterID: 'company' },
  });
  await client.create(clusterModes, { metadata: { name: CLUSTER_MODE }, spec: { tether } });
  program = await started();
  await inPhase('Tethered');
  phases = [];
});
afterEach(async () => {
  await clock.during('stop', program.stop());
  await api.stop();
});

test.each([8, -8])('a wall clock set by %d hours while there is a link changes nothing', async (hours) => {
  clock.jump(hours * HOUR_MS);
  await clock.advance(2 * 60 * SECOND_MS);
  setLink(false);
  await clock.advance(59 * SECOND_MS);
  setLink(true);
  await clock.advance(SECOND_MS);
  expect(await status()).toMatchObject({ mode: 'Tethered', phase: 'Tethered' });
  expect(phases).toEqual([]);
});

test.each([8, -8])('one set by %d hours without a link leaves the time that was agreed on', async (hours) => {
  setLink(false);
  await clock.advance(30 * SECOND_MS);
  clock.jump(hours * HOUR_MS);
  // Anything that makes it look.
  links.tell({});
  await clock.advance(29 * SECOND_MS);
  expect((await status()).mode).toBe('Tethered');
  expect(phases).toEqual([]);
  await clock.advance(2 * SECOND_MS);
  expect(await status()).toMatchObject({ mode: 'Autonomous', phase: 'Lost' });
  clock.jump(-hours * HOUR_MS);
  setLink(true);
  await inPhase('Tethered');
  expect(phases).toEqual(['Lost', 'Tethered']);
  // A loss of before does not count for the next one.
  setLink(false);
  await clock.advance(59 * SECOND_MS);
  expect((await status()).mode).toBe('Tethered');
});

test('a program that starts anew counts what passed before by the wall clock', async () => {
  setLink(false);
  await clock.advance(SECOND_MS);
  await clock.during('stop', program.stop());
  clock.jump(40 * SECOND_MS);
  program = await started();
  await clock.advance(15 * SECOND_MS);
  expect((await status()).mode).toBe('Tethered');
  await clock.advance(10 * SECOND_MS);
  expect(await status()).toMatchObject({ mode: 'Autonomous', phase: 'Lost' });
});

const hasPolicy = async (): Promise<boolean> =>
  (await api.client().list(sharingPolicies)).items.some(({ metadata }) => metadata.name === TETHER_POLICY);
const untether = async (): Promise<unknown> =>
  api
    .client()
    .patch(clusterModes, { name: CLUSTER_MODE }, { type: 'merge', body: { spec: { tether: null } } });

test('a program that starts anew lets the other cluster in until it has had its time to dial', async () => {
  await untether();
  await inPhase('Ending');
  await clock.during('stop', program.stop());
  isLinked = false;
  program = await started();
  await clock.advance(10 * SECOND_MS);
  expect(await hasPolicy()).toBe(true);
  setLink(true);
  await clock.advance(60 * SECOND_MS);
  expect(await hasPolicy()).toBe(true);
  setLink(false);
  await clock.advance(31 * SECOND_MS);
  expect(await hasPolicy()).toBe(false);
});

test('one that was silent before the tether is ended is not let in any longer', async () => {
  setLink(false);
  await clock.advance(61 * SECOND_MS);
  await untether();
  await inPhase('Ending');
  await clock.advance(SECOND_MS);
  expect(await hasPolicy()).toBe(false);
});
