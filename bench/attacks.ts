/**
 * What an attacker costs a cluster: the size of its etcd, and the time of its own small writes with and without the attack, in
 * the same run.
 */
// The lab's PKI stands on decorators.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Attack } from './attacks/attack.ts';
import { AttackBed } from './attacks/bed.ts';
import { EtcdWatch } from './attacks/etcd-watch.ts';
import { ATTACKS } from './attacks/known.ts';
import { OwnWrites, type Phase } from './attacks/own-writes.ts';
import { mistake, parsedOptions, positiveNumber, refusePositionals } from './frame/arguments.ts';
import { runProgram } from './frame/interruption.ts';
import { table } from './frame/statistics.ts';

const USAGE = `usage: node bench/attacks.ts [--attack NAME]... [--minutes 10]

  --attack NAME     which attacker; can be given several times; default: all. make bench-attacks ATTACK=NAME
  --minutes NUMBER  the time of attack in all, for each attacker; calm phases come on top. make bench-attacks ATTACK_MINUTES=NUMBER,
                    or the environment variable TRIBUTARY_ATTACK_MINUTES
  --check           says whether these options can be used, and attacks nothing
`;

const OPTIONS = {
  attack: { type: 'string', multiple: true },
  // oxlint-disable-next-line node/no-process-env -- as `make bench-attacks` is told
  minutes: { type: 'string', default: process.env['TRIBUTARY_ATTACK_MINUTES'] ?? '10' },
  check: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** An attack in phases, so that whatever else this machine does meets both. */
const ATTACK_MS = 60_000;
const CALM_MS = 10_000;
/** A quarter of an etcd of default size. */
const MOST_MIB = 512;

async function measure(attack: Attack, attackMs: number): Promise<boolean> {
  say(`\n${attack.name}: ${attack.what}`);
  const bed = await AttackBed.up({ attack: attack.name, hasProvider: attack.needsProvider }, say);
  const ending = new AbortController();
  try {
    await attack.prepare(bed);
    const etcd = new EtcdWatch(bed.etcdUrl);
    const own = new OwnWrites(bed.admin);
    const watching = [etcd.run(ending.signal), own.run(ending.signal)];
    const before = await etcd.read();
    for (let leftMs = attackMs; leftMs > 0; leftMs -= ATTACK_MS) {
      own.phase = 'calm';
      await sleep(CALM_MS);
      own.phase = 'attack';
      await attack.run(AbortSignal.timeout(Math.min(leftMs, ATTACK_MS)));
      const { total, inUse } = await etcd.read();
      say(`  etcd ${total.toFixed(0)} MiB, in use ${inUse.toFixed(0)} MiB; ${countsOf(attack)}`);
    }
    own.phase = 'calm';
    await sleep(CALM_MS);
    ending.abort();
    await Promise.all(watching);
    report({ attack, etcd, own, beforeMib: before.total, rssMib: bed.rssMib() });
    return etcd.most < MOST_MIB;
  } finally {
    ending.abort();
    await attack.stop();
    await bed.down();
  }
}

const countsOf = (attack: Attack): string =>
  Object.entries(attack.counts())
    .map(([what, count]) => `${what} ${Math.round(count)}`)
    .join(', ');

interface Result {
  attack: Attack;
  etcd: EtcdWatch;
  own: OwnWrites;
  beforeMib: number;
  rssMib: readonly number[];
}

function report({ attack, etcd, own, beforeMib, rssMib }: Result): void {
  say(`\n${attack.name}: ${countsOf(attack)}`);
  say(
    `etcd: ${beforeMib.toFixed(0)} MiB before, ${etcd.most.toFixed(0)} MiB at most; a quarter is ${MOST_MIB}`,
  );
  say(
    `Tributary: RSS ${rssMib.map((one) => one.toFixed(0)).join(' and ')} MiB; own writes that failed: ${own.failed}\n`,
  );
  const row = (phase: Phase): string[] => [
    phase,
    String(own.count(phase)),
    own.quantile(phase, 0.5).toFixed(1),
    own.quantile(phase, 0.99).toFixed(1),
  ];
  say(table([['own writes', 'number', 'p50 ms', 'p99 ms'], row('calm'), row('attack')]));
}

/** Those of these names; all without a name. @throws for one that does not exist */
function chooseAttacks(names: readonly string[]): Attack[] {
  const known = ATTACKS.map((make) => make());
  const unknown = names.filter((name) => known.every((attack) => attack.name !== name));
  if (unknown.length > 0)
    throw mistake(
      `there is no attack ${unknown.join(', ')}; there are ${known.map(({ name }) => name).join(', ')}`,
    );
  return known.filter(({ name }) => names.length === 0 || names.includes(name));
}

await runProgram('bench-attacks', async () => {
  const { values, positionals } = parsedOptions(process.argv.slice(2), OPTIONS);
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  refusePositionals(positionals, 'attackers are named by --attack NAME');
  const attacks = chooseAttacks(values.attack ?? []);
  const attackMs = positiveNumber('minutes', values.minutes) * 60_000;
  if (values.check) return;
  for (const attack of attacks) {
    if (!(await measure(attack, attackMs))) process.exitCode = 1;
  }
});
