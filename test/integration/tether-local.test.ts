import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { events, namespaces, pods } from '../../src/api/resources.ts';
import type { Pod, PodSpec } from '../../src/api/wire.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { awaited } from '../support/eventually.ts';
import { type City, PeeringLab, peeringLabProblem, until } from '../support/labs/peering-lab.ts';
import { short } from '../support/long.ts';
import { type Chance, seeded } from '../support/seed.ts';
import { TetherPair } from './support/tether-pair.ts';

/** Forwarded pods that run on the device while contact is lost, as whole processes over real API servers: never at two places. */

jest.setTimeout(400_000);
const SHOP = 'shop';
const FENCE = { lostAfterSeconds: 10, stopSeconds: 6, marginSeconds: 5 };
const HEALS = short('partitions that heal around the moment at which pods run at home', {
  short: 0,
  long: 12,
});

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`tethers that are lost are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('a tether whose forwarded pods run on the device while it is lost', () => {
  let lab: PeeringLab;
  /** The device. */
  let rome: City;
  /** The company. */
  let milan: City;
  let pair: TetherPair;
  let watch: TwoPlaces;

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    pair = await TetherPair.of(rome, milan);
    await pair.run();
    await pair.allow({ approval: 'Automatic', tethering: 'Allow' });
    await rome.client.create(namespaces, { metadata: { name: SHOP } });
    await pair.introduce();
    watch = new TwoPlaces(rome, milan);
    watch.start();
  });
  afterAll(async () => {
    await watch?.stop();
    if (milan !== undefined) await wall(milan, false);
    pair?.down();
    await lab?.down();
  });

  /** Drops all packets between the two clusters. */
  async function wall(city: City, isUp: boolean): Promise<void> {
    const rule = isUp ? `ip saddr ${rome.address} drop` : '';
    const chain = `chain input {\ntype filter hook input priority 0;\n${rule}\n}`;
    const stdin = `table inet wall\ndelete table inet wall\ntable inet wall {\n${chain}\n}\n`;
    await city.cluster.node().exec(['nft', '-f', '-'], { stdin });
  }

  /** What of the user runs, by the node at home. */
  const placed = async (name: string, node: string): Promise<Pod[]> =>
    (await pair.podsOf(rome, SHOP)).filter(
      ({ metadata, spec, status }) =>
        metadata.name.startsWith(name) && spec?.nodeName === node && status?.phase === 'Running',
    );
  /** Waits until one pod of that name runs on that node. If it does not come: which pods there are, and what was said of them. */
  const runs = async (name: string, place: string, node: string): Promise<void> => {
    const seen = async (): Promise<string> => {
      const [all, said] = await Promise.all([
        rome.client.list(pods, { namespace: SHOP }),
        rome.client.list(events, { namespace: SHOP }),
      ]);
      const list = all.items.map(
        ({ metadata, spec, status }) =>
          `${metadata.name} ${spec?.nodeName ?? 'without a node'} ${status?.phase} ${metadata.deletionTimestamp ?? ''}`,
      );
      const told = said.items
        .filter(({ involvedObject }) => involvedObject.name?.startsWith(name))
        .map(({ reason, message, count }) => `${reason} (${count ?? 1}): ${message}`);
      return [...list, ...told].join('\n');
    };
    await awaited(`${name} runs ${place}`, async () => (await placed(name, node)).length === 1, { seen });
  };
  const template = (app: string): { metadata: object; spec: PodSpec } => ({
    metadata: { labels: { app } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'example/none:1' }] },
  });
  const apply = async (kind: string, name: string, replicas: number): Promise<void> => {
    const spec = {
      replicas,
      serviceName: name,
      selector: { matchLabels: { app: name } },
      template: template(name),
    };
    const { serviceName: _unknown, ...deployment } = spec;
    await rome.cluster.api.apply({
      apiVersion: 'apps/v1',
      kind,
      metadata: { name, namespace: SHOP },
      spec: kind === 'Deployment' ? deployment : spec,
    });
  };

  test('both agree on when forwarded pods are stopped', async () => {
    const tether = { cluster: 'company', whenLost: 'RunLocally' as const, ...FENCE };
    await until('there is a mode', async () => pair.mode().catch(() => undefined));
    await pair.want(tether);
    await pair.inPhase('Tethered');
    const terms = { afterSeconds: FENCE.lostAfterSeconds, stopSeconds: FENCE.stopSeconds };
    await until('the company holds itself to it', async () => {
      const { status } = await pair.mode();
      return JSON.stringify(status?.tether?.fence) === JSON.stringify(terms);
    });
    const request = await milan.client.get(peeringRequests, { name: rome.id });
    expect(request.spec.fence).toEqual(terms);
  });

  test('what was forwarded is stopped there, and then runs here; what came back goes on', async () => {
    await until('the namespace goes to the company', async () =>
      rome.client.get(namespaceOffloadings, { namespace: SHOP, name: 'offloading' }).catch(() => undefined),
    );
    // The company's scheduler may place pods back; here it is told which.
    await pair.cordon('rome', true);
    await apply('Deployment', 'web', 1);
    await apply('StatefulSet', 'set', 1);
    await rome.client.create(pods, {
      metadata: { namespace: SHOP, name: 'lone' },
      spec: template('lone').spec,
    });
    for (const name of ['web', 'set', 'lone']) {
      await runs(name, 'at the company', 'milan');
    }
    const company = await pair.realNodeOf(milan);
    await pair.cordon('rome', false);
    await pair.cordon(company, true);
    await apply('Deployment', 'back', 1);
    const device = await pair.realNodeOf(rome);
    const bodies = async (): Promise<Pod[]> =>
      (await rome.client.list(pods, { labelSelector: LABEL_HOME_UID })).items;
    const [body] = await until('it is back', async () => {
      const found = await bodies();
      return found.length === 1 && found[0]?.status?.phase === 'Running' ? found : undefined;
    });
    await until('it is told at home', async () => (await placed('back', 'milan')).length === 1);
    await pair.cordon('rome', true);
    await pair.cordon(company, false);

    await wall(milan, true);
    await until('the company has stopped the others', async () => {
      const { items } = await milan.client.list(pods, { labelSelector: LABEL_HOME_UID });
      return items.every(({ spec }) => spec?.nodeName === 'rome');
    });
    // Written after the pods have been stopped.
    await until('the company says why', async () => {
      const { status } = await milan.client.get(peeringRequests, { name: rome.id });
      return status?.phase === 'Accepted' && status.reason === 'Fenced';
    });
    const lost = await pair.inPhase('Lost');
    expect(lost.status?.mode).toBe('Autonomous');
    for (const name of ['web', 'set', 'lone']) {
      await runs(name, 'on the device', device);
    }
    expect((await pair.mode()).status?.runsLocallySince).toBeDefined();
    expect((await placed('back', 'milan')).length).toBe(1);
    expect((await bodies()).map(({ metadata }) => metadata.uid)).toEqual([body?.metadata.uid]);
    expect(watch.atBoth()).toEqual([]);
  });

  test('contact brings the tether back, and nothing is started twice or lost', async () => {
    const device = await pair.realNodeOf(rome);
    await wall(milan, false);
    const back = await pair.inPhase('Tethered');
    expect(back.status?.runsLocallySince).toBeUndefined();
    await until('the company takes pods again', async () => {
      const { status } = await milan.client.get(peeringRequests, { name: rome.id });
      return status?.phase === 'Established';
    });
    // What runs here stays until it ends.
    for (const name of ['web', 'set', 'lone']) expect((await placed(name, device)).length).toBe(1);
    await apply('Deployment', 'web', 3);
    await until('new pods are forwarded again', async () => (await placed('web', 'milan')).length === 2);
    await until('nothing else is left over there', async () => {
      const home = new Set((await pair.podsOf(rome, SHOP)).map(({ metadata }) => metadata.uid));
      const { items } = await milan.client.list(pods, { labelSelector: LABEL_HOME_UID });
      return items.every(({ metadata }) => home.has(metadata.labels?.[LABEL_HOME_UID] ?? ''));
    });
    expect(watch.atBoth()).toEqual([]);
  });

  async function healAround(chance: Chance): Promise<void> {
    await rome.client.delete(pods, { namespace: SHOP, name: 'set-0' }, { gracePeriodSeconds: 0 });
    await runs('set', 'at the company', 'milan');
    await wall(milan, true);
    await until('it is stopped there', async () => {
      const { items } = await milan.client.list(pods, { labelSelector: LABEL_HOME_UID });
      return items.every(({ spec }) => spec?.nodeName === 'rome');
    });
    // From then until a while after the device begins to run it; whether it did is left to chance.
    const turns = chance.between(0, 1) === 0 ? 'stopped' : 'local';
    if (turns === 'local') {
      await until('pods come home', async () => (await pair.mode()).status?.runsLocallySince !== undefined);
    }
    await systemClock.sleep(chance.between(0, 500));
    await wall(milan, false);
    await pair.inPhase('Tethered');
    await until('everything runs, once', async () => {
      const all = (await pair.podsOf(rome, SHOP)).filter(({ status }) => status?.phase === 'Running');
      const count = (name: string): number =>
        all.filter(({ metadata }) => metadata.name.startsWith(name)).length;
      return count('web') === 3 && count('set') === 1 && count('back') === 1;
    });
    expect(watch.atBoth()).toEqual([]);
  }

  const testInLongLane = HEALS > 0 ? test : test.skip;
  testInLongLane('a partition that heals at the worst moment starts nothing twice', async () => {
    for (let round = 0; round < HEALS; round++) await seeded(healAround);
  });
});

/** Looks at both clusters as fast as it can: no pod of one name may run at the company and on the device's own nodes. */
class TwoPlaces {
  readonly #rome: City;
  readonly #milan: City;
  readonly #found = new Set<string>();
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(rome: City, milan: City) {
    this.#rome = rome;
    this.#milan = milan;
  }

  start(): void {
    this.#running = (async () => {
      while (!this.#isStopped) {
        await this.#look();
        await systemClock.sleep(50);
      }
    })();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Names of pods that were seen at both. */
  atBoth(): string[] {
    return [...this.#found];
  }

  /** The company first: what is seen there and then here was at both. */
  async #look(): Promise<void> {
    const there = await this.#milan.client.list(pods, { labelSelector: LABEL_HOME_UID });
    const here = await this.#rome.client.list(pods, { namespace: SHOP });
    const local = new Set(
      here.items
        .filter(({ spec, status }) => spec?.nodeName?.startsWith('rome') && status?.phase === 'Running')
        .map(({ metadata }) => metadata.name),
    );
    for (const { metadata, spec } of there.items) {
      if (spec?.nodeName !== 'rome' && local.has(metadata.name)) this.#found.add(metadata.name);
    }
  }
}
