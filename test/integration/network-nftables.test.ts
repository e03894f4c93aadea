/** The nftables driver against the kernel, in a network namespace of its own. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';

import type { TableConfig } from '../../src/network/host/host-config.ts';
import { Netns, netnsProblem } from '../support/network/in-netns.ts';
import { peersTable, tableConfig } from '../support/network/table-configs.ts';
import { fc } from '../support/property.ts';

const MODULE = 'network/host/nftables/table.ts';
const RUNS = 60;
const ROUNDS = 7;

const problem = netnsProblem();
if (problem !== undefined) process.stderr.write(`nftables is not tested: ${problem}\n`);
const describeAsRoot = problem === undefined ? describe : describe.skip;

const SMALL: TableConfig = {
  sets: [
    {
      name: 'pods',
      type: 'ipv4_addr',
      interval: true,
      elements: [{ key: '10.1.0.0/16' }, { key: '10.2.3.4' }],
    },
    {
      name: 'from',
      type: 'ipv4_addr',
      value: 'verdict',
      interval: true,
      elements: [{ key: '10.9.0.0/16', value: 'jump peer' }],
    },
  ],
  chains: [
    {
      name: 'in',
      hook: { type: 'filter', hook: 'input', priority: 0 },
      rules: [
        'ip saddr vmap @from',
        'ip saddr @pods accept',
        'ip daddr 127.0.0.9 counter drop comment "refused"',
      ],
    },
    { name: 'peer', rules: ['counter drop'] },
  ],
};

describeAsRoot('the nftables driver', () => {
  let netns: Netns;
  const set = async (config: TableConfig, name = 'ours'): Promise<number> =>
    netns.call(MODULE, 'setTable', name, config);
  const remove = async (name = 'ours'): Promise<void> => netns.call(MODULE, 'removeTable', name);
  const list = async (name = 'ours'): Promise<string> =>
    netns.run(['nft', '-s', 'list', 'table', 'inet', name]);
  const nft = async (script: string): Promise<string> => netns.run(['nft', '-f', '-'], script);

  /** Somebody else's transaction, after which the driver must read the table again. */
  const touch = async (): Promise<string> => nft('add table inet theirs\nadd chain inet theirs their_chain');

  beforeAll(async () => {
    netns = await Netns.up(`nft${process.pid}`);
  });
  beforeEach(async () => {
    await nft('flush ruleset');
  });
  afterAll(async () => netns.down());

  it('writes a table once, and nothing the second time', async () => {
    expect(await set(SMALL)).toBe(8);
    expect(await set(SMALL)).toBe(0);
    await touch();
    expect(await set(SMALL)).toBe(0);
    expect(await list()).toContain('ip saddr @pods accept');
  });

  it('takes an empty config for no table, and a table that is not there for removed', async () => {
    await set(SMALL);
    expect(await set({ chains: [], sets: [] })).toBe(1);
    expect(await set({ chains: [], sets: [] })).toBe(0);
    await remove();
    expect(await netns.run(['nft', 'list', 'ruleset'])).toBe('');
  });

  it('leaves the tables of others alone', async () => {
    await nft(
      'add table inet theirs\nadd chain inet theirs c\nadd rule inet theirs c accept\nadd table ip ours',
    );
    const before = await netns.run(['nft', 'list', 'ruleset']);
    await set(SMALL);
    await remove();
    expect(await netns.run(['nft', 'list', 'ruleset'])).toBe(before);
  });

  describe('after a change by hand', () => {
    const changes: readonly [what: string, script: string, changed: number][] = [
      ['a removed rule', 'flush chain inet ours peer', 1],
      ['an added rule', 'add rule inet ours peer accept', 1],
      ['a rule in front', 'insert rule inet ours in accept comment "mine"', 1],
      ['a removed element', 'delete element inet ours pods { 10.2.3.4 }', 1],
      ['an added element', 'add element inet ours pods { 10.7.0.0/16 }', 1],
      ['an added element with a comment', 'add element inet ours pods { 10.7.0.0/16 comment "mine" }', 1],
      [
        'a narrowed element',
        'delete element inet ours pods { 10.1.0.0/16 }\nadd element inet ours pods { 10.1.0.0/17 }',
        2,
      ],
      [
        'another verdict',
        'delete element inet ours from { 10.9.0.0/16 }\nadd element inet ours from { 10.9.0.0/16 : accept }',
        1,
      ],
      ['an added chain', 'add chain inet ours mine\nadd rule inet ours mine jump peer', 1],
      ['an added chain in use', 'add chain inet ours mine\nadd rule inet ours in jump mine', 2],
      [
        'an added map',
        'add map inet ours mine { type ipv4_addr : verdict; }\nadd element inet ours mine { 10.0.0.1 : jump peer }',
        1,
      ],
      [
        'an added set in use',
        'add set inet ours mine { type ipv4_addr; }\nadd rule inet ours in ip saddr @mine drop',
        2,
      ],
      ['another policy', 'add chain inet ours in { type filter hook input priority 0; policy drop; }', 8],
      ['a foreign object', 'add counter inet ours mine', 8],
      ['the table gone', 'delete table inet ours', 8],
      ['the table asleep', 'add table inet ours { flags dormant; }', 8],
      [
        'a set of another kind',
        'flush chain inet ours in\ndelete set inet ours pods\nadd set inet ours pods { type ipv4_addr; }',
        8,
      ],
    ];
    it.each(changes)('%s', async (_what, script, changed) => {
      await set(SMALL);
      const wanted = await list();
      await nft(script);
      expect(await set(SMALL)).toBe(changed);
      expect(sorted(await list())).toEqual(sorted(wanted));
      await touch();
      expect(await set(SMALL)).toBe(0);
    });
  });

  it('exchanges sets, maps and base chains whose definition changes', async () => {
    await set(SMALL);
    const [pods, from] = SMALL.sets;
    const [base, peer] = SMALL.chains;
    if (pods === undefined || from === undefined || base === undefined || peer === undefined)
      throw new Error('few');
    const changed: TableConfig = {
      sets: [{ ...pods, interval: false, elements: [{ key: '10.2.3.4' }] }, from],
      chains: [{ ...base, hook: { type: 'filter', hook: 'input', priority: -10 } }, peer],
    };
    await set(changed);
    await touch();
    expect(await set(changed)).toBe(0);
    expect(await list()).toContain('priority filter - 10');
  });

  it('counts what labelled rules refuse', async () => {
    await set(SMALL);
    for (const text of ['one', 'two']) await netns.run(['bash', '-c', `echo ${text} >/dev/udp/127.0.0.9/9`]);
    const counters = await netns.call<Record<string, unknown>>(MODULE, 'listCounters', 'ours');
    expect(counters).toEqual({ refused: { packets: 2, bytes: 64 } });
    expect(await netns.call(MODULE, 'listCounters', 'absent')).toEqual({});
  });

  it('says what nft refuses, and leaves the table as it was', async () => {
    await set(SMALL);
    const before = await list();
    const broken = { ...SMALL, chains: [...SMALL.chains, { name: 'bad', rules: ['jump nowhere'] }] };
    await expect(set(broken)).rejects.toMatchObject({
      code: 'Invalid',
      message: expect.stringContaining('nft says'),
    });
    expect(await list()).toBe(before);
  });

  it('is the same from whatever table before', async () => {
    await fc.assert(
      fc.asyncProperty(tableConfig, tableConfig, async (one, other) => {
        await nft('flush ruleset');
        await set(other);
        const fresh = await list();
        await remove();
        await set(one);
        await set(other);
        expect(await set(other)).toBe(0);
        await touch();
        expect(await set(other)).toBe(0);
        expect(sorted(await list())).toEqual(sorted(fresh));
      }),
      { numRuns: RUNS },
    );
  });

  it('touches nothing else, whatever the texts say', async () => {
    await nft(
      'add table inet theirs\nadd chain inet theirs their_chain\nadd rule inet theirs their_chain accept',
    );
    const before = await list('theirs');
    const evil = fc.constantFrom(
      'flush ruleset',
      'delete table inet theirs',
      'include "/etc/passwd"',
      'drop',
    );
    const glue = fc.constantFrom(
      ';',
      '\n',
      ' }\n',
      '" }\n',
      '};',
      ' } ; ',
      '"; ',
      ' ',
      ' comment "x";',
      '\r\n',
      '\\\n',
    );
    const text = fc.tuple(glue, evil, glue).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.constantFrom('rule', 'key', 'value', 'chain', 'type'),
        async (spike, where) => {
          const at = (place: string, plain: string): string => (place === where ? plain + spike : plain);
          const peer = at('chain', 'peer');
          const element = { key: at('key', '10.1.0.1'), value: at('value', 'drop') };
          const map = { name: 'from', type: at('type', 'ipv4_addr'), value: 'verdict', interval: false };
          const config: TableConfig = {
            sets: [{ ...map, elements: [element] }],
            chains: [{ name: peer, rules: [at('rule', 'accept')] }],
          };
          await expect(set(config)).rejects.toMatchObject({ code: 'Invalid' });
        },
      ),
      { numRuns: RUNS },
    );
    expect(await list('theirs')).toBe(before);
  });

  it('changes only what belongs to a new peer', async () => {
    for (const count of [8, 128]) {
      await set(peersTable(count));
      const [more, same, read]: [number[], number[], number[]] = [[], [], []];
      for (let added = 1; added <= ROUNDS; added++) {
        // Four chains, four elements.
        expect(await set(peersTable(count + added))).toBe(8);
        more.push(netns.lastMs);
        expect(await set(peersTable(count + added))).toBe(0);
        same.push(netns.lastMs);
        await touch();
        expect(await set(peersTable(count + added))).toBe(0);
        read.push(netns.lastMs);
      }
      const [one, none, other] = [more, same, read].map(median);
      process.stderr.write(
        `${count} peers, medians: one more ${one} ms, nothing new ${none} ms, after another's transaction ${other} ms\n`,
      );
      await remove();
    }
  });
});

const median = (values: readonly number[]): string =>
  values.toSorted((a, b) => a - b)[values.length >> 1]?.toFixed(1) ?? '';

/**
 * Chains and sets are listed in the order in which they were added, and so are elements of keys of several parts; that order has no
 * meaning.
 */
const sorted = (listing: string): string[] =>
  listing
    .replaceAll(/elements = \{([^}]*)\}/gu, (_all, elements: string) => {
      const each = elements.split(',').map((element) => element.trim());
      return `elements = { ${each.toSorted().join(', ')} }`;
    })
    .split(/\n\n|(?<=^table inet \S+ \{)\n/m)
    .map((block) =>
      block
        .replaceAll(/\n\}?\n?$/g, '')
        .trim()
        .replace(/\n\}$/, '')
        .trim(),
    )
    .toSorted();
