import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { announcementData } from '../../src/api/own-announcement.ts';
import type { LanAgentLine, LanAgentOptions } from '../support/network/lan-agent.ts';
import { eventually } from '../support/eventually.ts';
import { type LanHost, LanLab, lanLabProblem } from '../support/network/lan-lab.ts';
import { isSeen, type LanAgent } from '../support/network/line-printer.ts';

/** LAN discovery over real multicast, and against avahi. */

/** A cluster that sends no goodbye is known for this time, which is longer than all waits of these tests. */
const TTL_MS = 120_000;
const ID = { milan: 'milan'.padEnd(26, 'a'), rome: 'rome'.padEnd(26, 'b'), turin: 'turin'.padEnd(26, 'c') };
const milan: LanAgentOptions = {
  announcement: { clusterID: ID.milan, clusterName: 'Milan', port: 7443, protocols: [1, 2] },
};
const rome: LanAgentOptions = {
  announcement: { clusterID: ID.rome, clusterName: 'Rome', port: 7444, protocols: [1] },
};
const ROME_TXT = [`id=${ID.rome}`, 'name=Rome', 'v=1', 'unknown=1'];

const problem = lanLabProblem();
if (problem !== undefined) process.stderr.write(`LAN discovery is not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('LAN discovery', () => {
  let lab: LanLab;
  let one: LanHost;
  let two: LanHost;

  beforeEach(async () => {
    lab = await LanLab.up(2);
    one = await lab.host('one');
    two = await lab.host('two');
  });
  afterEach(async () => lab.down());

  /** How many milliseconds after `since` (of the epoch) it was gone. */
  const goneAfter = async (agent: LanAgent, id: string, since: number): Promise<number> => {
    const isGone = (line: LanAgentLine): boolean =>
      line.event === 'gone' && line.id === id && line.at >= since;
    const line = await agent.until(`${id} is gone`, isGone);
    return 'at' in line ? line.at - since : NaN;
  };

  test('two clusters find each other over IPv4 and IPv6, and part with a goodbye', async () => {
    const [a, b] = await Promise.all([one.tributary(milan), two.tributary(rome)]);
    await a.until('rome is seen', isSeen(ID.rome));
    const seen = await b.until('milan is seen', isSeen(ID.milan));
    expect(seen).toMatchObject({ id: ID.milan, name: 'Milan', protocols: [1, 2] });
    expect(b.sees(ID.milan)?.endpoints).toEqual([`${one.address()}:7443`, `[${one.address6()}]:7443`]);
    const since = Date.now();
    await b.terminate();
    expect(await goneAfter(a, ID.rome, since)).toBeLessThan(TTL_MS);
  });

  test('a cluster that crashes is gone when its TTL has passed, and not before', async () => {
    const a = await one.tributary(milan);
    const b = await two.tributary({ ...rome, ttlSeconds: 15 });
    const { at } = (await a.until('rome is seen', isSeen(ID.rome))) as { at: number };
    // It stays while it is asked for in time: a busy machine needs some of its last fifth.
    await eventually('the TTL of what it said first has passed', () => Date.now() > at + 18_000);
    expect(a.lines.filter(({ event }) => event === 'gone')).toEqual([]);
    const since = Date.now();
    await b.kill();
    expect(await goneAfter(a, ID.rome, since)).toBeLessThan(TTL_MS);
  });

  test('gateways learn from a ConfigMap what to announce, and write what they see into ForeignClusters', async () => {
    const say = ({
      announcement,
      ...more
    }: LanAgentOptions & { endpoints?: string }): Record<string, string> => ({
      ...announcementData({
        ...announcement,
        endpoints: more.endpoints === undefined ? [] : [more.endpoints],
      }),
    });
    const [a, b] = await Promise.all([
      one.gateway({ data: say(milan) }),
      two.gateway({ options: { 'lan-ttl': '9' } }),
    ]);
    // A cluster that does not know its own ID sends nothing, and treats no announcement as another cluster.
    b.tell(JSON.stringify(say(rome)));
    const sees = async (gateway: typeof a, name: string, endpoint: string): Promise<unknown> =>
      gateway.until(
        `${name} at ${endpoint}`,
        (line) =>
          line.event === 'foreigncluster' && line.name === name && line.sighting?.endpoints[0] === endpoint,
      );
    await sees(a, ID.rome, `${two.address()}:7444`);
    expect(await sees(b, ID.milan, `${one.address()}:7443`)).toMatchObject({
      sighting: { clusterName: 'Milan', protocols: [1, 2] },
    });
    b.tell(JSON.stringify(say({ ...rome, endpoints: '203.0.113.7:443' })));
    await sees(a, ID.rome, '203.0.113.7:443');
    await b.terminate();
    await a.until(
      'rome is not seen any more',
      (line) => line.event === 'foreigncluster' && line.name === ID.rome && line.sighting === undefined,
    );
    expect(b.lines.at(-1)).toMatchObject({ event: 'stopped' });
  });

  describe('with several interfaces', () => {
    test('each segment is told the addresses on it; a cluster on two segments is one candidate', async () => {
      const both = await lab.host('both', [0, 1]);
      const far = await lab.host('far', [1]);
      const [near, other, middle] = await Promise.all([
        one.tributary(rome),
        far.tributary({ announcement: { ...rome.announcement, clusterID: ID.turin } }),
        both.tributary(milan),
      ]);
      await near.until('milan is seen on one segment', isSeen(ID.milan));
      await other.until('milan is seen on the other', isSeen(ID.milan));
      await middle.until('rome is seen', isSeen(ID.rome));
      await middle.until('turin is seen', isSeen(ID.turin));
      expect(near.sees(ID.milan)?.endpoints).toEqual([
        `${both.address(0)}:7443`,
        `[${both.address6(0)}]:7443`,
      ]);
      expect(other.sees(ID.milan)?.endpoints).toEqual([
        `${both.address(1)}:7443`,
        `[${both.address6(1)}]:7443`,
      ]);
      // A cluster on one segment is heard on that segment only.
      expect(near.sees(ID.turin)).toBeUndefined();
      expect(middle.log).not.toContain('refused');
      expect(other.sees(ID.rome)).toBeUndefined();
    });

    test('an interface that comes later is spoken on, and one that goes takes its clusters with it', async () => {
      const far = await lab.host('far', [1]);
      const [a, b] = await Promise.all([one.tributary(milan), far.tributary(rome)]);
      await lab.connect(one, 1);
      await a.until('rome is seen', isSeen(ID.rome));
      await b.until('milan is seen', isSeen(ID.milan));
      expect(b.sees(ID.milan)?.endpoints).toContain(`${one.address(1)}:7443`);
      await one.run(['ip', 'link', 'set', 'eth1', 'down']);
      await goneAfter(a, ID.rome, 0);
    });

    test('another address is announced, and the old one taken back', async () => {
      const [a, b] = await Promise.all([one.tributary(milan), two.tributary(rome)]);
      await a.until('rome is seen', isSeen(ID.rome));
      await two.run(['ip', 'addr', 'del', `${two.address()}/24`, 'dev', 'eth0']);
      await two.run(['ip', 'addr', 'add', '10.99.0.77/24', 'dev', 'eth0']);
      await eventually('the new address alone', () => {
        const { endpoints = [] } = a.sees(ID.rome) ?? {};
        return endpoints.includes('10.99.0.77:7444') && !endpoints.includes(`${two.address()}:7444`);
      });
      expect(b.log).not.toContain('taken');
    });

    test('an address that is not of this host is announced where one is given', async () => {
      const a = await one.tributary(milan);
      await two.tributary({ ...rome, hosts: ['203.0.113.7'] });
      await a.until('rome is seen', isSeen(ID.rome));
      expect(a.sees(ID.rome)?.endpoints).toEqual(['203.0.113.7:7444']);
    });
  });

  describe('with avahi', () => {
    test('avahi resolves our announcement, and forgets it at our goodbye', async () => {
      const avahi = await two.avahi('two');
      const agent = await one.tributary(milan);
      const found = async (): Promise<number> => (await avahi.browse()).length;
      await eventually('avahi resolves it', async () => (await found()) >= 2);
      const services = await avahi.browse();
      for (const family of ['IPv4', 'IPv6']) {
        expect(services.find((service) => service.family === family)).toMatchObject({
          interface: 'eth0',
          name: 'milan-milanaaa',
          host: 'milan-milanaaa.local',
          port: 7443,
        });
      }
      expect(services[0]?.txt.toSorted()).toEqual([`id=${ID.milan}`, 'name=Milan', 'v=1,2']);
      const addresses = services.map(({ address }) => address);
      expect(addresses).toContain(one.address());
      expect(await avahi.resolve(6, 'milan-milanaaa.local')).toMatch(/^(fd99:1::1|fe80:.*)$/);
      const watched = avahi.watch();
      await eventually('both families', () => watched.filter(({ sign }) => sign === '+').length >= 2);
      const since = Date.now();
      await agent.terminate();
      const gone = (): typeof watched => watched.filter(({ sign }) => sign === '-');
      await eventually('avahi has forgotten both', () => gone().length >= 2);
      for (const { at } of gone()) expect(at - since).toBeLessThan(TTL_MS);
    });

    test('avahi forgets a cluster that crashed when its TTL has passed', async () => {
      const avahi = await two.avahi('two');
      const agent = await one.tributary({ ...milan, ttlSeconds: 3 });
      await eventually('avahi resolves it', async () => (await avahi.browse()).length > 0);
      await agent.kill();
      await eventually('avahi has forgotten it', async () => (await avahi.browse()).length === 0);
    });

    test('what avahi publishes is found, with its TXT, and gone at its goodbye', async () => {
      const avahi = await two.avahi('two');
      const agent = await one.tributary(milan);
      const stop = await avahi.publish('Some Cluster', 7444, ROME_TXT);
      await agent.until('rome is seen', isSeen(ID.rome));
      await eventually('both families', () => (agent.sees(ID.rome)?.endpoints.length ?? 0) >= 2);
      expect(agent.sees(ID.rome)).toMatchObject({ name: 'Rome', protocols: [1] });
      expect(agent.sees(ID.rome)?.endpoints).toContain(`${two.address()}:7444`);
      expect(agent.sees(ID.rome)?.endpoints).toContain(`[${two.address6()}]:7444`);
      const since = Date.now();
      await stop();
      expect(await goneAfter(agent, ID.rome, since)).toBeLessThan(TTL_MS);
    });

    test('what avahi had published before we came is found at once', async () => {
      const avahi = await two.avahi('two');
      await avahi.publish('rome', 7444, ROME_TXT);
      const agent = await one.tributary(milan);
      await agent.until('rome is seen', isSeen(ID.rome));
    });

    test('a name that avahi holds is left to it; both are seen', async () => {
      const avahi = await two.avahi('two');
      await avahi.publish('milan-milanaaa', 7444, ROME_TXT);
      const agent = await one.tributary(milan);
      await agent.until('rome is seen', isSeen(ID.rome));
      await eventually('another name', async () => {
        agent.tell('label');
        return agent.lines.some((line) => line.event === 'label' && line.label === 'milan-milanaaa-2');
      });
      await eventually('avahi sees both', async () => {
        const names = new Set((await avahi.browse()).map(({ name }) => name));
        return names.has('milan-milanaaa') && names.has('milan-milanaaa-2');
      });
      expect(agent.log).toContain('our mDNS name is taken');
    });

    test('a name that we hold is defended against avahi', async () => {
      const avahi = await two.avahi('two');
      const agent = await one.tributary(milan);
      await eventually('avahi resolves ours', async () => (await avahi.browse()).length > 0);
      await avahi.publish('milan-milanaaa', 7444, ROME_TXT);
      const ports = async (): Promise<string[]> =>
        [...new Set((await avahi.browse()).map(({ name, port }) => `${name} ${port}`))].toSorted();
      await eventually('avahi takes another', async () => (await ports()).length === 2);
      expect(await ports()).toEqual(['milan-milanaaa #2 7444', 'milan-milanaaa 7443']);
      agent.tell('label');
      const { label } = (await agent.until('our name', ({ event }) => event === 'label')) as {
        label: string;
      };
      expect(label).toBe('milan-milanaaa');
    });

    test('avahi on the same host is no hindrance, and what shares our address is not us', async () => {
      const avahi = await one.avahi('one');
      const agent = await one.tributary(milan);
      await avahi.publish('rome', 7444, ROME_TXT);
      await eventually(
        'rome is seen at our address',
        () => agent.sees(ID.rome)?.endpoints.includes(`${one.address()}:7444`) === true,
      );
      await eventually('avahi sees both', async () => {
        const names = new Set((await avahi.browse()).map(({ name }) => name));
        return names.has('milan-milanaaa') && names.has('rome');
      });
      agent.tell('label');
      const { label } = (await agent.until('our name', ({ event }) => event === 'label')) as {
        label: string;
      };
      expect(label).toBe('milan-milanaaa');
    });
  });
});
