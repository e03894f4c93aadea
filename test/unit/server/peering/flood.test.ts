import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, expect, test } from '@jest/globals';
import 'reflect-metadata';

import { eventually } from '../../../support/eventually.ts';
import { PeeringNode } from '../../../support/peering/peering-node.ts';

/** Strangers that hold connections and prove nothing, and peers that want to come in meanwhile. */

const HELD = 5_000;
const FLOOD = new URL('../../../support/peering/flood.ts', import.meta.url).pathname;

const children: ChildProcess[] = [];
const nodes: PeeringNode[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await Promise.all(nodes.splice(0).map(async (node) => node.stop()));
});

async function start(): Promise<PeeringNode> {
  const node = await new PeeringNode().start();
  nodes.push(node);
  return node;
}

/** Resolves once so many connections have been opened. */
async function flood(node: PeeringNode, sources: readonly string[]): Promise<{ opened: number }> {
  const args = [FLOOD, '127.0.0.1', String(node.endpoint.port), String(HELD), sources.join(',')];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const seen = { opened: 0 };
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (text: string) => {
    const last = text.trim().split('\n').at(-1);
    if (last !== undefined) Object.assign(seen, JSON.parse(last));
  });
  await eventually(`${HELD} connections are opened`, () => seen.opened >= HELD);
  return seen;
}

const others = Array.from({ length: 50 }, (_, index) => `127.0.0.${index + 2}`);

test.each([
  ['other addresses', others],
  ['the address of the peer, as behind an address translation', ['127.0.0.1']],
])('a link comes up while 5,000 connections from %s are held open', async (_name, sources) => {
  const [milan, rome] = [await start(), await start()];
  const before = process.memoryUsage().rss;
  const seen = await flood(milan, sources);
  rome.dial(milan);
  const began = performance.now();
  await eventually(
    'both have the link',
    () => rome.registry.view(milan.id) !== undefined && milan.registry.view(rome.id) !== undefined,
  );
  const took = performance.now() - began;
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  process.stderr.write(
    `linked after ${took.toFixed(0)} ms; ${seen.opened} opened, ${milan.endpoint.connections} kept, RSS +${grown.toFixed(0)} MiB\n`,
  );
  // Nothing of what strangers hold grows with what they try.
  expect(milan.endpoint.connections).toBeLessThan(1_100);
  expect(seen.opened).toBeGreaterThanOrEqual(HELD);
});
