/** `make demo [DEMO=pods]`: real clusters, one part of the product on them, a closing table; nothing stays. */
import { holdLab } from '../holder.ts';
import { Lab } from '../lab.ts';
import { demonstrateAway } from './away.ts';
import { demonstrateInstall } from './install.ts';
import { demonstrateNamespaces } from './namespaces.ts';
import { demonstrateNetwork } from './network.ts';
import { demonstratePeering } from './peering.ts';
import { demonstratePods } from './pods.ts';
import { demonstrateSafety } from './safety.ts';
import { Stage } from './stage.ts';
import { demonstrateTether } from './tether.ts';

/** A demo of one part of the product; it makes the lab of that name. */
export type Demonstration = (lab: string, stage: Stage, signal: AbortSignal) => Promise<void>;

/** Each has its own folder of manifests. */
const DEMOS: Readonly<Record<string, Demonstration>> = {
  pods: demonstratePods,
  install: demonstrateInstall,
  peering: demonstratePeering,
  network: demonstrateNetwork,
  namespaces: demonstrateNamespaces,
  safety: demonstrateSafety,
  away: demonstrateAway,
  tether: demonstrateTether,
};

const LAB = 'demo';

const say = (line: string): void => console.log(line);

async function perform(name: string, signal: AbortSignal): Promise<void> {
  const demo = Object.hasOwn(DEMOS, name) ? DEMOS[name] : undefined;
  if (demo === undefined) throw new Error(`there is no demo ${name}: ${Object.keys(DEMOS).join(', ')}`);
  // This comes before anything is shown or removed, because another demo may be running.
  const hold = await holdLab(LAB, { signal, progress: say });
  const began = performance.now();
  const stage = new Stage(say);
  try {
    await demo(LAB, stage, signal);
  } finally {
    await stage.step('everything removed again', async () => Lab.down(LAB));
    say(`\n${stage.table()}`);
    say(`in all ${((performance.now() - began) / 1000).toFixed(1)} s`);
    await hold.release();
  }
}

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => interruption.abort(new Error(`interrupted by ${name}`)));
}
try {
  await perform(process.argv[2] ?? 'pods', interruption.signal);
} catch (error) {
  console.error(`demo: ${Error.isError(error) ? error.message : String(error)}`);
  process.exitCode = 1;
}
