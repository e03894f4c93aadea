/** The external auditor, against real API servers on which the test plays home and provider. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { KubeApi } from '../../lab/kube-api.ts';
import { gatewayPlan } from '../../src/network/plan/gateway.ts';
import { eventually } from '../support/eventually.ts';
import type { BorrowedLab } from '../support/labs/borrowed-lab.ts';
import { borrowPair } from '../support/labs/rights-cluster.ts';
import { Netns, netnsProblem } from '../support/network/in-netns.ts';
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.ts';
import { gatewayFacts, peer, ROME } from '../unit/network/plan/facts.ts';
import { AuditorProcess } from './support/auditor-process.ts';
import { PlayedPods } from './support/played-pods.ts';

const CANARY = 'canary-4f1d/secret value';
const problem = netnsProblem();
const HOST = `audit${process.pid}`;

let borrowed: BorrowedLab;
let folder: string;
/** Between the auditor and the API server of the provider. */
let way: TcpProxy;
let pods: PlayedPods;
let auditor: AuditorProcess;
let netns: Netns | undefined;
let home: KubeApi;
let foreign: KubeApi;
const children: ChildProcess[] = [];

const log = (): string => join(folder, 'agent.log');

beforeAll(async () => {
  borrowed = await borrowPair();
  const [homeCluster, foreignCluster] = [borrowed.lab.cluster('home'), borrowed.lab.cluster('foreign')];
  [home, foreign] = [homeCluster.api, foreignCluster.api];
  pods = new PlayedPods(home, foreign);
  await pods.furnish();
  folder = mkdtempSync(join(tmpdir(), 'tributary-auditor-'));
  way = await startTcpProxy(Number(new URL(foreignCluster.server).port));
  const kubeconfig = join(folder, 'foreign.kubeconfig');
  const direct = readFileSync(foreignCluster.kubeconfig, 'utf8');
  writeFileSync(kubeconfig, direct.replace(foreignCluster.server, `https://127.0.0.1:${way.port}`));
  writeFileSync(log(), 'level=info msg=started\n');
  if (problem === undefined) netns = await Netns.up(HOST);
  const { nftables } = gatewayPlan(gatewayFacts([peer()]));
  await netns?.call('network/host/nftables/table.ts', 'setTable', 'tributary_gateway', nftables);
  const config = {
    home: { kubeconfig: homeCluster.kubeconfig },
    providers: [
      { name: 'foreign', kubeconfig, node: 'played', namespaces: [{ home: 'shop', tenant: 'tenant' }] },
    ],
    canaries: [CANARY],
    logs: [log()],
    hosts: netns === undefined ? [] : [HOST],
    bounds: { settleSeconds: 3, quietSeconds: 1, skewSeconds: 0.5 },
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  auditor = new AuditorProcess(join(folder, 'config.json'));
});

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await auditor?.end();
  await way?.close();
  await netns?.down();
  await borrowed?.giveBack();
  rmSync(folder, { recursive: true, force: true });
});

const SECOND_SOURCE = `add rule inet tributary_gateway snat_${ROME} ip saddr 10.245.0.0/16 snat ip prefix to 10.96.0.0/16`;

function started(): { child: ChildProcess; pid: number } {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  children.push(child);
  if (child.pid === undefined) throw new Error('sleep did not start');
  return { child, pid: child.pid };
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

test('a run in which all promises are kept has no violation, though the auditor lost a cluster in between', async () => {
  await pods.run('before');
  const killed = started();
  expect(await auditor.ask({ do: 'begin', run: 'clean' })).toEqual({ did: 'begin' });
  await auditor.ask({ do: 'watch-process', pid: killed.pid });
  await pods.run('stays');
  await pods.run('goes');
  const work = await pods.run('work');
  way.cut();
  await pods.end('goes');
  await pods.set('foreign', 'work', 'Succeeded');
  await pods.set('home', 'work', 'Succeeded');
  await auditor.ask({ do: 'killed', pid: killed.pid });
  await ended(killed.child);
  // Lost over there by the caller's doing, and made anew.
  const lost = await pods.run('lost');
  await auditor.ask({ do: 'lost', cluster: 'foreign', uid: lost.remote });
  await pods.remove('foreign', 'lost');
  await pods.put('lost', lost.home);
  await pods.set('foreign', 'lost', 'Running');

  expect(work.home).not.toBe(work.remote);
  expect(await auditor.settle()).toMatchObject({
    did: 'settle',
    run: 'clean',
    pods: { home: 3, remote: 4 },
    violations: [],
    unjudged: [],
  });
});

/** What must be found of each invariant. */
const PLANTED: readonly [invariant: string, what: RegExp][] = [
  ['I1', /two remote pods of home pod .* at once.*tenant\/twice-b/],
  ['I2', /remote pod tenant\/orphan .* nobody has seen/],
  ['I3', /pod tenant\/ended .* had ended .*\(Succeeded\), and at .* is Running/],
  ['I4', /home pod shop\/liar .* shows at .* Running.* which its remote pod never was; that was Pending/],
  ['I5', /remote pod tenant\/restarted .* container main had 0 restarts and has 1/],
  ['I6', /configmaps default\/stranger in foreign was changed/],
  ['I7', /pods tenant\/written in foreign was written/],
  ['I7', /configmaps tenant\/settings in foreign has other data .* than shop\/settings at home/],
  ['I8', /canary 1 stands in events shop\/told in home/],
  ['I8', /canary 1 stands in log .*agent\.log/],
  ['I8', /canary 1 stands in the arguments of process \d+/],
  ['I9', /chain snat_\w+ translates 10\.244\.0\.0\/16 .* and 10\.245\.0\.0\/16 .* two sources become one/],
  ['I10', /process \d+ \(sleep\) has ended/],
];

test('one violation of each invariant is found, and nothing is said of anybody else', async () => {
  const named = ['twice', 'ended', 'restarted', 'written', 'honest'];
  for (const name of named) await pods.run(name);
  await pods.set('foreign', 'ended', 'Succeeded');
  await pods.set('home', 'ended', 'Succeeded');
  await pods.bind('liar');
  const stranger = { metadata: { name: 'stranger', namespace: 'default' }, data: { a: '1' } };
  await foreign.apply({ apiVersion: 'v1', kind: 'ConfigMap', ...stranger });
  const victim = started();
  await auditor.ask({ do: 'begin', run: 'broken' });
  await auditor.ask({ do: 'watch-process', pid: victim.pid });

  await pods.put('twice-b', await pods.uid('home', 'twice'));
  await pods.put('orphan', '0a0a0a0a-0000-4000-8000-000000000000');
  await pods.set('foreign', 'ended', 'Running');
  await pods.set('home', 'liar', 'Running');
  await pods.set('home', 'liar', 'Pending');
  await pods.set('foreign', 'restarted', 'Running', 1);
  await pods.set('home', 'restarted', 'Running', 1);
  await foreign.apply({ apiVersion: 'v1', kind: 'ConfigMap', ...stranger, data: { a: '2' } });
  await pods.copy('settings', 'old');
  await pods.tell('told', `the token is ${CANARY}`);
  writeFileSync(log(), `level=info data=${Buffer.from(`x${CANARY}`).toString('base64')}\n`);
  children.push(spawn('sleep', ['600'], { argv0: CANARY, stdio: 'ignore' }));
  await netns?.run(['nft', '-f', '-'], SECOND_SOURCE);
  await ended(victim.child);
  const settled = auditor.settle();
  let isSettled = false;
  void settled.finally(() => (isSettled = true));
  await eventually('the auditor has looked while somebody writes', async () => {
    await pods.touch('foreign', 'written');
    return isSettled;
  });

  const { violations, unjudged } = await settled;
  const planted = PLANTED.filter(([invariant]) => invariant !== 'I9' || netns !== undefined);
  for (const [invariant, what] of planted) {
    expect(violations).toContainEqual({ invariant, what: expect.stringMatching(what) });
  }
  expect(unjudged).toEqual([]);
  const innocent = /honest|stays|before|lost/;
  expect(violations.filter(({ what }) => innocent.test(what))).toEqual([]);
});

test('what is wrong with the auditor itself is said as such, and ends it', async () => {
  const other = new AuditorProcess(join(folder, 'config.json'));
  await expect(other.ask({ do: 'guess' })).rejects.toThrow('there is no such command');
  expect(await other.end()).toBe(2);
});
