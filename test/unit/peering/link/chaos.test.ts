import 'reflect-metadata';
import { expect, test } from '@jest/globals';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { eventually } from '../../../support/eventually.ts';
import { patientClock } from '../../../support/patient-clock.ts';
import { PeeringNode } from '../../../support/peering/peering-node.ts';
import { seeded, type Chance } from '../../../support/seed.ts';
import { startTcpProxy } from '../../../support/network/tcp-proxy.ts';
import type { TcpProxy } from '../../../support/network/tcp-proxy.ts';

/**
 * All times are short, so that what a link may take to end is far less than what this test waits. The hello is one of
 * them: a path that falls silent after the upgrade and before the hello leaves a connection that no heartbeat watches
 * yet. It ends when the hello is overdue, and then 2 s later, as no answer comes to its close either. With the
 * default of 10 s for the hello that is later than this test waits.
 */
const times = {
  helloMs: 500,
  heartbeatMs: 40,
  heartbeatMisses: 3,
  baseMs: 20,
  capMs: 200,
  stableMs: 300,
  connectMs: 500,
};

/** A cluster that is killed and restarted behind an address that stays. */
class Life {
  readonly identity = Identity.generate();
  node: PeeringNode;
  proxy: TcpProxy | undefined;
  word = '';

  constructor() {
    this.node = this.#next();
  }

  #next(port = 0): PeeringNode {
    return new PeeringNode({
      identity: this.identity,
      registry: { times, clock: patientClock },
      endpoint: { port, arrivals: { proofMs: 500 }, clock: patientClock },
    });
  }

  async start(): Promise<this> {
    await this.node.start();
    this.proxy ??= await startTcpProxy(this.node.endpoint.port ?? 0);
    return this;
  }

  async restart(): Promise<void> {
    const port = this.node.endpoint.port ?? 0;
    await this.node.stop();
    this.node = this.#next(port);
    await this.start();
  }

  wants(other: Life): void {
    const endpoints = [`127.0.0.1:${other.proxy?.port ?? 0}`];
    this.node.registry.setTargets([{ name: 't', clusterID: other.identity.clusterID, endpoints }]);
  }

  says(other: Life, word: string): void {
    this.word = word;
    this.node.say(other.node, { request: { clusterName: word, namespaces: [] } });
  }
}

/** Waits for 10 s of the clock that the clusters go by. */
async function patiently(what: string, condition: () => boolean): Promise<void> {
  let isLate = false;
  const cancel = patientClock.after(10_000, () => (isLate = true));
  const isThere = (): boolean => {
    if (isLate) throw new Error(`not within 10000 ms: ${what}`);
    return condition();
  };
  await eventually(what, isThere, Infinity).finally(cancel);
}

async function liveThrough(chance: Chance): Promise<void> {
  const [one, two] = await Promise.all([new Life().start(), new Life().start()]);
  const both = [one, two] as const;
  const story: string[] = [];
  const events: Record<string, (a: Life, b: Life) => void | Promise<void>> = {
    'kills and restarts': async (a, b) => {
      await a.restart();
      a.wants(b);
      a.says(b, a.word);
    },
    'is cut off': (a) => a.proxy?.cut(),
    'falls silent': (a) => a.proxy?.silence(),
    'is reachable again': (a) => a.proxy?.restore(),
    'wants no link': (a) => a.node.registry.setTargets([]),
    'wants a link': (a, b) => a.wants(b),
    'says something': (a, b) => a.says(b, `word-${chance.below(1e9)}`),
    'renews its certificate': async (a) => a.node.renew(),
    waits: async () => patientClock.sleep(chance.below(150)),
  };
  const names = Object.keys(events);
  try {
    for (let round = 0; round < 12; round++) {
      for (let step = 0; step < 12; step++) {
        const name = names[chance.below(names.length)] ?? 'waits';
        const [a, b] = chance.below(2) === 0 ? both : ([two, one] as const);
        story.push(`${a === one ? 'one' : 'two'} ${name}`);
        await events[name]?.(a, b);
      }
      for (const [a, b] of [both, [two, one] as const]) {
        a.proxy?.restore();
        a.wants(b);
        a.says(b, `last-${round}`);
      }
      story.push(`--- round ${round}`);
      await patiently('both have heard the last word', () => {
        const heard = both.every(
          (life, index) =>
            life.node.lastHeard(both[1 - index]?.node as PeeringNode).request?.clusterName ===
            `last-${round}`,
        );
        const [a, b] = [one.node.registry.view(two.node.id), two.node.registry.view(one.node.id)];
        return heard && a !== undefined && b !== undefined && a.dialledBy !== b.dialledBy;
      });
      await patiently(
        'one connection is left',
        () => one.node.endpoint.connections + two.node.endpoint.connections === 1,
      );
      await expect(one.node.registry.call(two.node.id, 'credential', {})).resolves.toBeDefined();
      await expect(two.node.registry.call(one.node.id, 'credential', {})).resolves.toBeDefined();
    }
  } catch (error) {
    throw new Error(`after:\n${story.slice(-30).join('\n')}`, { cause: error });
  } finally {
    await Promise.all(both.map(async ({ node, proxy }) => Promise.all([node.stop(), proxy?.close()])));
  }
}

test('whatever happens to two clusters and their network, they end with one link and the last words', async () => {
  await seeded(liveThrough);
}, 300_000);
