import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { KubeObject } from '../../lab/kube-api.ts';
import { type SecondApiServer, startSecondApiServer } from '../../lab/second-api-server.ts';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { pods } from '../../src/api/resources.ts';
import type { Pod } from '../../src/api/wire.ts';
import { awaited } from '../support/eventually.ts';
import { AgentLab } from '../support/labs/agent-lab.ts';
import { onNode, webDeployment } from '../support/labs/web.ts';
import { short } from '../support/long.ts';
import { noted } from './support/noted-ways.ts';
import { TcpSwitch } from './support/tcp-switch.ts';

/** A home with two API servers on one etcd, of which one was stopped: its watch cache is behind when the agent comes to it. */

const REPLICAS = 8;
const ROUNDS = short('turns to an API server that is behind', { short: 0, long: 6 });
const describeInLongLane = ROUNDS > 0 ? describe : describe.skip;

describeInLongLane('two API servers of home', () => {
  let lab: AgentLab;
  let second: SecondApiServer;
  let balancer: TcpSwitch;
  let folder: string;
  let kubeconfig: string;
  /** What was written over there. */
  const abroad: string[] = [];
  /** Bodies that were ever seen, by home pod. */
  const seen = new Map<string, Set<string>>();
  /** How often the agent came to a cache that was behind. */
  let behind = 0;

  beforeAll(async () => {
    lab = await AgentLab.up();
    lab.proxy.judge((asked) => noted(abroad, asked));
    second = await startSecondApiServer(lab.spec, lab.homeCluster);
    balancer = await TcpSwitch.start(lab.homeCluster.server);
    folder = mkdtempSync(join(tmpdir(), 'tributary-servers-'));
    kubeconfig = join(folder, 'kubeconfig');
    const direct = readFileSync(lab.homeCluster.kubeconfig, 'utf8');
    writeFileSync(kubeconfig, direct.replace(lab.homeCluster.server, balancer.url), { mode: 0o600 });
    await lab.start({ kubeconfig });
    await lab.ready();
    await apply('web:0');
    await rolledOut('web:0');
  });

  afterAll(async () => {
    second?.api.close();
    await second?.daemon.kill();
    await lab?.down();
    await balancer?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  const apply = async (image: string): Promise<void> => lab.homeCluster.api.apply(deployment(image));

  /** Each home pod runs the image and has one body. */
  async function rolledOut(image: string): Promise<void> {
    const look = async (): Promise<object> => {
      const [here, there] = [await lab.pods('home'), await lab.pods('foreign')];
      for (const { metadata } of there) {
        const owner = metadata.labels?.[LABEL_HOME_UID] ?? '';
        seen.set(owner, (seen.get(owner) ?? new Set()).add(metadata.uid));
      }
      const right = here.filter(
        ({ spec, status }) =>
          spec?.containers[0]?.image === image &&
          status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
      );
      return { here: here.length, there: there.length, right: right.length };
    };
    const wanted = JSON.stringify({ here: REPLICAS, there: REPLICAS, right: REPLICAS });
    const isThere = async (): Promise<boolean> => JSON.stringify(await look()) === wanted;
    await awaited(`${image} is rolled out`, isThere, { seen: look });
    expect([...seen.values()].filter((uids) => uids.size > 1)).toEqual([]);
  }

  /** All that may not change by a turn. */
  const state = async (): Promise<{ home: [string, unknown][]; foreign: unknown[] }> => ({
    home: (await lab.pods('home')).map(({ metadata, status }) => [metadata.uid, status]),
    foreign: (await lab.pods('foreign')).map(({ metadata }) => [metadata.uid, metadata.resourceVersion]),
  });

  /** The second one is stopped while everything changes, and the agent comes to it in the moment in which it wakes. */
  async function turnedBehind(image: string, restart: boolean): Promise<void> {
    second.daemon.stop();
    await apply(image);
    await rolledOut(image);
    if (restart) await lab.kill();
    const before = await state();
    const { length } = abroad;
    second.daemon.cont();
    balancer.turn(second.server);
    const cached = await second.api.get<Listed>('/api/v1/namespaces/shop/pods?resourceVersion=0');
    const missed = before.home.filter(([uid]) => cached?.items.every(({ metadata }) => metadata.uid !== uid));
    console.info(`${missed.length} of ${REPLICAS} pods are unknown to the one that wakes`);
    behind += Number(missed.length > 0);
    if (restart) await lab.start({ kubeconfig });
    // By its answer to something new is known that the agent has listed and watches.
    await lab.home.create(pods, probe(image));
    await awaited('the agent carries what is new', async () =>
      (await lab.pods('foreign')).some(({ metadata }) => metadata.name === 'probe'),
    );
    const isOfProbe = (write: string): boolean => /\/pods(\/probe|\?|$)|configmaps|secrets/u.test(write);
    expect(abroad.slice(length).filter((write) => !isOfProbe(write))).toEqual([]);
    await lab.home.delete(pods, { namespace: 'shop', name: 'probe' });
    await awaited('it is gone', async () => (await lab.pods('home')).length === REPLICAS);
    expect(await state()).toEqual(before);
  }

  test('an agent that comes to one that is behind kills nothing, goes on watching, and puts nothing back', async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      await turnedBehind(`web:${round}`, round % 2 === 0);
      // Through the second one, which has what it missed; then back to the first.
      await apply(`web:${round}-on`);
      await rolledOut(`web:${round}-on`);
      balancer.turn(lab.homeCluster.server);
    }
    expect(behind).toBeGreaterThan(0);
  });
});

interface Listed {
  items: { metadata: { uid: string } }[];
}

const probe = (image: string): Pick<Pod, 'spec'> & { metadata: { name: string; namespace: string } } => ({
  metadata: { name: 'probe', namespace: 'shop' },
  spec: { ...onNode, containers: [{ name: 'main', image }] },
});

const deployment = (image: string): KubeObject => webDeployment(image, REPLICAS);
