import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { LanAgentOptions } from '../support/lan-agent.ts';
import { eventually } from '../support/eventually.ts';
import { type LanHost, LanLab, lanLabProblem } from '../support/lan-lab.ts';

/** LAN discovery over real multicast, and against avahi. */

const TIMEOUT_MS = 60_000;
/** Graceful ends must be seen within it (RFC 6762, 10.1: one second, and the way). */
const GOODBYE_MS = 2000;
const ID = { milan: 'milan'.padEnd(26, 'a'), rome: 'rome'.padEnd(26, 'b') };
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
  }, TIMEOUT_MS);
  afterEach(async () => lab.down(), TIMEOUT_MS);

  const whenGone = async (
    agent: { sees: (id: string) => unknown },
    id: string,
    withinMs?: number,
  ): Promise<void> => eventually(`${id} is gone`, () => agent.sees(id) === undefined, withinMs);

  test(
    'two clusters find each other over IPv4 and IPv6, and part with a goodbye',
    async () => {
      const [a, b] = await Promise.all([one.tributary(milan), two.tributary(rome)]);
      await a.until('rome is seen', ({ event }) => event === 'seen');
      const seen = await b.until('milan is seen', ({ event }) => event === 'seen');
      expect(seen).toMatchObject({ id: ID.milan, name: 'Milan', protocols: [1, 2] });
      expect(b.sees(ID.milan)?.endpoints).toEqual([
        `${one.address()}:7443`,
        `[${one.address6()}]:7443`,
        expect.stringMatching(/^\[fe80::[0-9a-f:]+%eth0\]:7443$/),
      ]);
      await b.terminate();
      await whenGone(a, ID.rome, GOODBYE_MS);
    },
    TIMEOUT_MS,
  );

  test(
    'a cluster that crashes is gone when its TTL has passed, and not before',
    async () => {
      const a = await one.tributary(milan);
      const b = await two.tributary({ ...rome, ttlSeconds: 4 });
      await a.until('rome is seen', ({ event }) => event === 'seen');
      // It lives on while it is asked for in time.
      await new Promise((resolve) => setTimeout(resolve, 6000));
      expect(a.sees(ID.rome)).toBeDefined();
      expect(a.lines.filter(({ event }) => event === 'gone')).toEqual([]);
      await b.kill();
      await whenGone(a, ID.rome, 5500);
    },
    TIMEOUT_MS,
  );

  describe('with avahi', () => {
    test(
      'avahi resolves our announcement, and forgets it at our goodbye',
      async () => {
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
        await agent.terminate();
        await eventually('avahi has forgotten it', async () => (await found()) === 0, GOODBYE_MS + 500);
      },
      TIMEOUT_MS,
    );

    test(
      'avahi forgets a cluster that crashed when its TTL has passed',
      async () => {
        const avahi = await two.avahi('two');
        const agent = await one.tributary({ ...milan, ttlSeconds: 3 });
        await eventually('avahi resolves it', async () => (await avahi.browse()).length > 0);
        await agent.kill();
        await eventually('avahi has forgotten it', async () => (await avahi.browse()).length === 0, 10_000);
      },
      TIMEOUT_MS,
    );

    test(
      'what avahi publishes is found, with its TXT, and gone at its goodbye',
      async () => {
        const avahi = await two.avahi('two');
        const agent = await one.tributary(milan);
        const stop = await avahi.publish('Some Cluster', 7444, ROME_TXT);
        await agent.until('rome is seen', ({ event }) => event === 'seen');
        await eventually('both families', () => (agent.sees(ID.rome)?.endpoints.length ?? 0) >= 2);
        expect(agent.sees(ID.rome)).toMatchObject({ name: 'Rome', protocols: [1] });
        expect(agent.sees(ID.rome)?.endpoints).toContain(`${two.address()}:7444`);
        expect(agent.sees(ID.rome)?.endpoints).toContain(`[${two.address6()}]:7444`);
        await stop();
        await whenGone(agent, ID.rome, GOODBYE_MS);
      },
      TIMEOUT_MS,
    );

    test(
      'what avahi had published before we came is found at once',
      async () => {
        const avahi = await two.avahi('two');
        await avahi.publish('rome', 7444, ROME_TXT);
        const agent = await one.tributary(milan);
        await agent.until('rome is seen', ({ event }) => event === 'seen', 2000);
      },
      TIMEOUT_MS,
    );

    test(
      'a name that avahi holds is left to it; both are seen',
      async () => {
        const avahi = await two.avahi('two');
        await avahi.publish('milan-milanaaa', 7444, ROME_TXT);
        const agent = await one.tributary(milan);
        await agent.until('rome is seen', ({ event }) => event === 'seen');
        await eventually('another name', async () => {
          agent.tell('label');
          return agent.lines.some((line) => line.event === 'label' && line.label === 'milan-milanaaa-2');
        });
        await eventually('avahi sees both', async () => {
          const names = new Set((await avahi.browse()).map(({ name }) => name));
          return names.has('milan-milanaaa') && names.has('milan-milanaaa-2');
        });
        expect(agent.log).toContain('our mDNS name is taken');
      },
      TIMEOUT_MS,
    );

    test(
      'a name that we hold is defended against avahi',
      async () => {
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
      },
      TIMEOUT_MS,
    );

    test(
      'avahi on the same host is no hindrance, and what shares our address is not us',
      async () => {
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
      },
      TIMEOUT_MS,
    );
  });
});
