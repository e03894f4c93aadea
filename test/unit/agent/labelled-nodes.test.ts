import { beforeEach, expect, test } from '@jest/globals';
import { LabelledNodes } from '../../../src/agent/peers.ts';
import type { VirtualNode } from '../../../src/api/virtual-node.ts';
import type { Cache } from '../../../src/kube/cache.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

/** Which virtual nodes role `peers` serves, and until when. */

let clock: FakeClock;
let known: Map<string, VirtualNode>;
let serving: Set<string>;
/** Their agents have removed their Nodes. */
let over: Set<string>;
let freed: string[];
let change: (name: string, labels?: Record<string, string>) => Promise<void>;

beforeEach(() => {
  clock = new FakeClock();
  [known, serving, over, freed] = [new Map<string, VirtualNode>(), new Set(), new Set(), []];
  let listener = (_key: string): void => undefined;
  const virtualNodes = {
    get: (name: string) => known.get(name),
    onChange: (added: typeof listener) => {
      listener = added;
    },
  } as unknown as Cache<VirtualNode>;
  const nodes = {
    has: (name: string) => serving.has(name),
    serve: (name: string) => void serving.add(name),
    end: async (names: readonly string[]) => {
      for (const name of names) serving.delete(name);
      return Promise.resolve();
    },
    agentOf: (name: string) => ({ isOver: over.has(name) }),
    stop: async () => Promise.resolve(),
  } as unknown as ConstructorParameters<typeof LabelledNodes>[0]['nodes'];
  new LabelledNodes({ virtualNodes, nodes, ended: (name) => freed.push(name), clock }).components();
  change = async (name, labels) => {
    if (labels === undefined) known.delete(name);
    else known.set(name, { metadata: { name, labels } } as unknown as VirtualNode);
    listener(name);
    await settle();
  };
});

const LABELLED = { 'tributary.dev/agent': 'peers' };

test('those that bear the label are served, and let go at once when it is taken off', async () => {
  await change('milan', LABELLED);
  await change('paris', {});
  await change('rome', { 'tributary.dev/agent': 'other' });
  expect([...serving]).toEqual(['milan']);
  await change('milan', {});
  expect([[...serving], freed]).toEqual([[], ['milan']]);
  await change('milan', LABELLED);
  expect([...serving]).toEqual(['milan']);
});

test('one that is deleted is served until its Node is gone, or ten seconds', async () => {
  await change('milan', LABELLED);
  await change('paris', LABELLED);
  await change('milan');
  await change('paris');
  await clock.advance(2_000);
  expect([...serving]).toEqual(['milan', 'paris']);
  over.add('milan');
  await clock.advance(1_000);
  expect([...serving]).toEqual(['paris']);
  await clock.advance(10_000);
  expect([[...serving], freed]).toEqual([[], ['milan', 'paris']]);
});

test('one that is made again meanwhile goes on', async () => {
  await change('milan', LABELLED);
  await change('milan');
  await clock.advance(1_000);
  await change('milan', LABELLED);
  await clock.advance(20_000);
  expect([[...serving], freed]).toEqual([['milan'], []]);
});
