import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import type { LanAgentOptions } from '../support/network/lan-agent.ts';
import { type LanHost, LanLab, lanLabProblem } from '../support/network/lan-lab.ts';
import { isSeen, type LanAgent } from '../support/network/line-printer.ts';
import { type AnnouncedCluster, announcementPacket, loopPacket } from '../support/network/lan-packets.ts';

/** LAN discovery over real multicast, with an attacker on the segment. */

const ID = { milan: 'milan'.padEnd(26, 'a'), rome: 'rome'.padEnd(26, 'b') };
const milan: LanAgentOptions = {
  announcement: { clusterID: ID.milan, clusterName: 'Milan', port: 7443, protocols: [1, 2] },
};
const rome: LanAgentOptions = {
  announcement: { clusterID: ID.rome, clusterName: 'Rome', port: 7444, protocols: [1] },
};

/** A well-formed announcement of a cluster that does not exist. */
function bogus(number: number): AnnouncedCluster {
  const letters = String(number).replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)] ?? '');
  return { id: `x${letters}`.padEnd(26, '2'), label: `x${number}`, address: '10.99.0.66' };
}

const describeInLab = lanLabProblem() === undefined ? describe : describe.skip;

describeInLab('LAN discovery among strangers', () => {
  let lab: LanLab;
  let one: LanHost;
  let two: LanHost;

  beforeEach(async () => {
    lab = await LanLab.up();
    one = await lab.host('one');
    two = await lab.host('two');
  });
  afterEach(async () => lab.down());

  const sentinel: AnnouncedCluster = { id: 'sentinel'.padEnd(26, 'q'), address: '10.99.0.200' };

  /** Everything that was sent before has been handled. */
  const settled = async (agent: LanAgent): Promise<void> => {
    await two.send([announcementPacket(sentinel)]);
    await agent.until('the sentinel is seen', isSeen(sentinel.id));
  };

  test('what comes from off the link is refused, whether to the group or to us', async () => {
    const agent = await one.tributary(milan);
    await two.run(['ip', 'addr', 'add', '192.0.2.7/32', 'dev', 'eth0']);
    await one.run(['ip', 'route', 'add', '192.0.2.7', 'dev', 'eth0']);
    const packet = announcementPacket({ id: ID.rome, address: '10.99.0.66' });
    await two.send([packet], { from: '192.0.2.7' });
    await two.send([packet], { to: one.address() });
    await settled(agent);
    expect(agent.sees(ID.rome)).toBeUndefined();
    expect(agent.log).toContain('OffLink');
  });

  test('somebody who announces our ID does not become a candidate, nor take our name', async () => {
    const agent = await one.tributary(milan);
    const witness = await (await lab.host('witness')).tributary(rome);
    await witness.until('milan is seen', isSeen(ID.milan));
    await two.send([announcementPacket({ id: ID.milan, address: '10.99.0.66', label: 'impostor' })]);
    await settled(agent);
    expect(agent.sees(ID.milan)).toBeUndefined();
    // Others see one candidate, whose own endpoints stay first.
    await eventually('the impostor is a further endpoint', () => {
      return witness.sees(ID.milan)?.endpoints.includes('10.99.0.66:7443') === true;
    });
    expect(witness.sees(ID.milan)?.endpoints[0]).toBe(`${one.address()}:7443`);
  });

  test('malformed, circular, oversized and nonsensical packets do no harm', async () => {
    const agent = await one.tributary(milan);
    const whole = announcementPacket({ id: ID.rome, address: '10.99.0.66' });
    const broken = Array.from({ length: 20 }, (_, cut) => whole.subarray(0, cut * 6));
    const long = Buffer.concat([whole, Buffer.alloc(20_000)]);
    await two.send([
      ...broken,
      long,
      loopPacket(1),
      loopPacket(2),
      announcementPacket({ id: 'not an id', address: '10.99.0.66' }),
      announcementPacket({ id: ID.rome, address: '127.0.0.1' }),
      announcementPacket({ id: ID.rome, address: '10.99.0.66', port: 0 }),
      announcementPacket({ id: ID.rome, address: '10.99.0.66', txt: [`id=${ID.rome}`, 'v=0'] }),
    ]);
    await settled(agent);
    expect(agent.sees(ID.rome)).toBeUndefined();
    for (const why of ['TooLarge', 'TooShort', 'Malformed', 'not a ClusterID', 'no address', 'no port']) {
      expect(agent.log).toContain(why);
    }
  });

  test('a flood of 10,000 announcements costs no memory, and hides nobody', async () => {
    const agent = await one.tributary({ ...milan, level: 'warn' });
    const friend = await (await lab.host('friend')).tributary(rome);
    await agent.until('rome is seen', isSeen(ID.rome));
    const flood = (wave: number): Buffer[] =>
      Array.from({ length: 500 }, (_, packet) =>
        announcementPacket(...Array.from({ length: 10 }, (_, n) => bogus(wave * 5000 + packet * 10 + n))),
      );
    await two.send(flood(0));
    const before = agent.rssMib;
    await two.send(flood(1));
    await two.send(flood(2));
    expect(agent.rssMib - before).toBeLessThan(32);
    expect(agent.sees(ID.rome)).toBeDefined();
    expect(
      new Set(agent.lines.flatMap((line) => (line.event === 'seen' ? [line.id] : []))).size,
    ).toBeGreaterThan(1);
    // Not a line for each.
    expect(agent.log.split('\n').length).toBeLessThan(20);
    await friend.terminate();
    await eventually('rome is gone', () => agent.sees(ID.rome) === undefined);
  });
});
