/**
 * The etcd of home, or that of the provider, is put back to a backup in the middle of a rollout. Home lost: pods that it no longer
 * knows run on over there. Provider lost: pods that home knows run there no longer.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { type EtcdSnapshot, takeSnapshot } from '../../lab/etcd-snapshot.ts';
import type { KubeObject } from '../../lab/kube-api.ts';
import {
  ANNOTATION_FOREIGN_RENEWALS,
  HOME_LEASE,
  LABEL_HOME_UID,
  LABEL_VIRTUAL_NODE,
  TAINT_VIRTUAL_NODE,
} from '../../src/api/names.ts';
import { leases, pods, secrets } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import type { Pod } from '../../src/api/wire.ts';
import { mountedTokens } from '../../src/provider/forge/tokens.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { parseHolder, parseMark } from '../../src/provider/restored/marks.ts';
import { eventually } from '../support/eventually.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { short } from '../support/long.ts';

const WAIT_MS = 120_000;
const REPLICAS = 6;
const KEEP_SECONDS = 15;
const LOOK_MS = 200;
const NODE_LEASE = { namespace: 'kube-node-lease', name: NODE };
const FOREIGN_LEASE = { namespace: 'tenant', name: HOME_LEASE };
const AGENT = { options: { 'restored-keep-seconds': KEEP_SECONDS } };

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  // As short as the provider's policy permits: it is renewed every three seconds.
  await lab.foreign.create(leases, { metadata: FOREIGN_LEASE, spec: { leaseDurationSeconds: 10 } });
  await lab.start(AGENT);
  // Pods get tokens for the API server of home: such a way is known.
  const body = { spec: { homeApiServer: { host: '192.0.2.9', port: 6443 } } };
  await lab.home.patch(virtualNodes, { name: NODE }, { type: 'merge', body });
  await lab.ready();
});
afterAll(async () => lab?.down());

const template = (app: string, image: string): object => ({
  metadata: { labels: { app } },
  spec: {
    nodeSelector: { [LABEL_VIRTUAL_NODE]: NODE },
    tolerations: [{ key: TAINT_VIRTUAL_NODE, operator: 'Exists' }],
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image }],
  },
});

const deployment = (image: string): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    replicas: REPLICAS,
    selector: { matchLabels: { app: 'web' } },
    minReadySeconds: 1,
    strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: template('web', image),
  },
});

const DATABASE: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'db', namespace: 'shop' },
  spec: {
    replicas: 1,
    serviceName: 'db',
    selector: { matchLabels: { app: 'db' } },
    template: template('db', 'db:1'),
  },
};

const imageOf = ({ spec }: Pod): string => spec?.containers[0]?.image ?? '';
const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
const isEnding = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
const homeUid = ({ metadata }: Pod): string => metadata.labels?.[LABEL_HOME_UID] ?? '';
/** What would show that a body was started anew. */
const life = ({ metadata, status }: Pod): string =>
  `${metadata.name} ${metadata.uid} ${status?.containerStatuses?.[0]?.restartCount}`;

/** What is not yet true of this: there are the wanted pods, each Ready, with exactly one body, and no other bodies. */
async function unfinished(image: string): Promise<string[]> {
  const [all, there] = [await lab.pods('home'), await lab.pods('foreign')];
  // As evicted pods do, those that have failed stay until somebody removes them.
  const here = all.filter(({ status }) => status?.reason !== 'RemotePodLost');
  const wrong = here.flatMap((pod) => {
    const bodies = there.filter((body) => homeUid(body) === pod.metadata.uid).length;
    const isRight = ['db:1', image].includes(imageOf(pod)) && isReady(pod) && !isEnding(pod) && bodies === 1;
    const { phase, reason } = pod.status ?? {};
    return isRight ? [] : [`${pod.metadata.name}: ${imageOf(pod)} ${phase} ${reason}, ${bodies} bodies`];
  });
  const owners = new Set(here.map(({ metadata }) => metadata.uid));
  for (const { metadata, status } of there.filter((body) => !owners.has(homeUid(body)))) {
    const { deletionTimestamp = 'not being deleted', deletionGracePeriodSeconds: grace } = metadata;
    wrong.push(
      `${metadata.name} over there has no home pod: ${status?.phase}, ${deletionTimestamp} ${grace}`,
    );
  }
  if (here.length !== REPLICAS + 1) wrong.push(`${here.length} pods at home`);
  if (there.length !== REPLICAS + 1) wrong.push(`${there.length} pods over there`);
  return wrong;
}

async function rolledOut(image: string): Promise<void> {
  let wrong: string[] = [];
  try {
    const isDone = async (): Promise<boolean> => (wrong = await unfinished(image)).length === 0;
    await eventually(`${image} is rolled out`, isDone, WAIT_MS);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${wrong.join('\n')}`, { cause: error });
  }
}

/** Of which home pods the tokens are that the body of `db-0` mounts. */
async function boundTo(): Promise<(string | undefined)[]> {
  const body = (await lab.pods('foreign')).find((pod) => imageOf(pod) === 'db:1');
  const mounted = body && mountedTokens(body);
  if (mounted === undefined) return [];
  const { data = {} } = await lab.foreign.get(secrets, { namespace: 'tenant', name: mounted.secret });
  return [...mounted.keys].map((key) => {
    const jwt = Buffer.from(data[key] ?? '', 'base64').toString();
    const payload = Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString();
    const claims = JSON.parse(payload || '{}') as { 'kubernetes.io'?: { pod?: { uid?: string } } };
    return claims['kubernetes.io']?.pod?.uid;
  });
}

const hasItsTokens = async (): Promise<void> =>
  eventually('the tokens of db-0 are bound to the home pod that has its body', async () => {
    const owner = (await lab.pods('home')).find((pod) => imageOf(pod) === 'db:1' && isReady(pod));
    const bound = await boundTo();
    return bound.length > 0 && bound.every((uid) => uid === owner?.metadata.uid);
  });

interface Counts {
  home: number;
  foreign: number;
}

/** How often the two Leases were renewed, as each of them notes of the other: what survives a restart of the agent. */
async function noted(): Promise<Counts> {
  const home = await lab.home.get(leases, NODE_LEASE);
  const foreign = await lab.foreign.get(leases, FOREIGN_LEASE);
  return {
    home: parseHolder(foreign.spec?.holderIdentity)?.count ?? 0,
    foreign: parseMark(home.metadata.annotations?.[ANNOTATION_FOREIGN_RENEWALS])?.count ?? 0,
  };
}

/** Only what was written after a backup can be missed after its restore. */
const renewedSince = async (before: Counts): Promise<void> =>
  eventually('the Leases are renewed since the backup', async () => {
    const now = await noted();
    // One more, since the backup may know of a renewal that the other side had not noted yet.
    return now.home > before.home + 1 && now.foreign > before.foreign + 1;
  });

/** Rolls `to` out, with a backup in the middle; the rest of the rollout is what will be lost. */
async function rollOutWithBackup(side: 'home' | 'foreign', from: string, to: string): Promise<EtcdSnapshot> {
  const cluster = side === 'home' ? lab.homeCluster : lab.foreignCluster;
  await lab.homeCluster.api.apply(DATABASE, deployment(from));
  await rolledOut(from);
  await lab.homeCluster.api.apply(deployment(to));
  await eventually('the rollout is half done', async () => {
    const ready = (await lab.pods('home')).filter(isReady);
    return (
      ready.filter((pod) => imageOf(pod) === to).length >= 2 && ready.some((pod) => imageOf(pod) === from)
    );
  });
  const before = await noted();
  const snapshot = takeSnapshot(cluster);
  await rolledOut(to);
  // Of the same name, under another UID.
  const database = (await lab.pods('home')).find((pod) => imageOf(pod) === 'db:1');
  await lab.home.delete(pods, database?.metadata ?? { name: 'db-0', namespace: 'shop' }, {});
  await eventually('another db-0', async () => {
    const found = (await lab.pods('home')).find((pod) => imageOf(pod) === 'db:1');
    return found !== undefined && found.metadata.uid !== database?.metadata.uid;
  });
  await rolledOut(to);
  await hasItsTokens();
  await renewedSince(before);
  return snapshot;
}

/** Looks until `end`, and returns the least number of bodies that ran at once. */
async function leastBodies(image: string, end: Promise<void>): Promise<number> {
  let least = Infinity;
  const state = { isOver: false };
  const over = end.finally(() => (state.isOver = true));
  over.catch(() => undefined);
  while (!state.isOver) {
    const there = await lab.pods('foreign').catch(() => undefined);
    const running = there?.filter((pod) => imageOf(pod) === image && isReady(pod) && !isEnding(pod)).length;
    least = Math.min(least, running ?? Infinity);
    await systemClock.sleep(LOOK_MS);
  }
  await over;
  return least;
}

async function restored(snapshot: EtcdSnapshot, isRunning: boolean): Promise<void> {
  if (!isRunning) await lab.kill();
  await snapshot.restore();
  snapshot.drop();
  if (!isRunning) await lab.start(AGENT);
}

const told = async (reason: string): Promise<void> =>
  eventually(
    `condition Restored says ${reason}`,
    async () => (await lab.condition('Restored').catch(() => undefined))?.reason === reason,
    WAIT_MS,
  );

const ALL = [
  ['through', true, 1],
  ['killed before and started after it', false, 3],
] as const;
const CASES = ALL.slice(
  0,
  short('restores during a rollout, of each cluster', { short: 1, long: ALL.length }),
);

test.each(CASES)(
  'home restored, with an agent that is %s: what runs goes on until others run',
  async (_how, isRunning, version) => {
    const [from, to] = [`web:${version}`, `web:${version + 1}`];
    const snapshot = await rollOutWithBackup('home', from, to);
    const before = await lab.pods('foreign');
    const work = (async (): Promise<void> => {
      await restored(snapshot, isRunning);
      const here = await lab.pods('home');
      await told('HomeRestored');
      expect((await lab.condition('Restored'))?.message).toContain('are kept until');
      await rolledOut(to);
      const now = new Set((await lab.pods('foreign')).map(life));
      // Known to the restored state, or of a name that it knows.
      const known = before.filter((body) =>
        here.some(({ metadata }) => metadata.uid === homeUid(body) || metadata.name === body.metadata.name),
      );
      expect(known.length).toBeGreaterThanOrEqual(3);
      expect(known.map(life).filter((one) => !now.has(one))).toEqual([]);
      await hasItsTokens();
      await eventually(
        'nothing is kept any more',
        async () => (await lab.condition('Restored')) === undefined,
        WAIT_MS,
      );
      expect(await unfinished(to)).toEqual([]);
    })();
    expect(await leastBodies(to, work)).toBeGreaterThanOrEqual(REPLICAS);
  },
);

test.each(CASES)(
  'the provider restored, with an agent that is %s: what it has lost is made anew, what came back goes',
  async (_how, isRunning, version) => {
    const [from, to] = [`web:${version + 10}`, `web:${version + 11}`];
    const snapshot = await rollOutWithBackup('foreign', from, to);
    const before = await lab.pods('foreign');
    await restored(snapshot, isRunning);
    const there = new Set((await lab.pods('foreign')).map(({ metadata }) => metadata.uid));
    await told('ForeignClusterRestored');
    await rolledOut(to);
    const now = new Set((await lab.pods('foreign')).map(life));
    const left = before.filter((body) => imageOf(body) === to && there.has(body.metadata.uid)).map(life);
    expect(left.length).toBeGreaterThanOrEqual(2);
    expect(left.filter((one) => !now.has(one))).toEqual([]);
  },
);
