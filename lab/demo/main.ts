/** `make demo [DEMO=pods]`: two real clusters, one part of the product on them, a closing table; nothing stays. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { agentImage } from '../images-agent.ts';
import { Lab } from '../lab.ts';
import { peeringSteps, virtualNodeYaml, type PeeringOptions } from './peering.ts';
import { showPods } from './pods.ts';
import { Stage } from './stage.ts';
import { Workbench } from './workbench.ts';

/** A part of the product; each has its own folder of manifests. */
const DEMOS: Readonly<Record<string, (bench: Workbench, stage: Stage) => Promise<void>>> = {
  pods: showPods,
};

const LAB = 'demo';
const PEERING: PeeringOptions = {
  namespaces: ['default'],
  quota: 'cpu=4,memory=4Gi,pods=50',
  resources: { cpu: '4', memory: '4Gi', pods: '50' },
};

const say = (line: string): void => console.log(line);

async function prepare(name: string, stage: Stage, signal: AbortSignal): Promise<Workbench> {
  const progress = (line: string): void => stage.say(line);
  // The image needs minutes of one core the first time, the clusters seconds of both: begun together.
  const image = agentImage(progress);
  // Awaited below; a failure before that must not count as unhandled.
  image.catch(() => undefined);
  const lab = await stage.step('two clusters, real containers', async () =>
    Lab.fresh({ name: LAB, signal, progress }),
  );
  const bench = await Workbench.create(lab, { files: join(import.meta.dirname, name), signal });
  writeFileSync(join(bench.directory, 'virtual-node.yaml'), virtualNodeYaml(lab, PEERING));
  await stage.step('the image of Tributary', async () => {
    await lab.cluster('home').loadImage(await image, signal);
    progress('loaded into the home cluster');
  });
  for (const { title, commands } of peeringSteps(PEERING)) {
    await stage.step(title, async () => {
      for (const command of commands) await stage.show(bench, command, { timeoutMs: 90_000, lines: 6 });
    });
  }
  await stage.step('kubectl get nodes', async () =>
    stage.show(bench, 'kubectl get nodes -o wide', { expect: /^foreign +Ready /m }),
  );
  return bench;
}

async function perform(name: string, signal: AbortSignal): Promise<void> {
  const demo = Object.hasOwn(DEMOS, name) ? DEMOS[name] : undefined;
  if (demo === undefined) throw new Error(`there is no demo ${name}: ${Object.keys(DEMOS).join(', ')}`);
  const began = performance.now();
  const stage = new Stage(say);
  try {
    await demo(await prepare(name, stage, signal), stage);
  } finally {
    await stage.step('everything removed again', async () => Lab.down(LAB));
    say(`\n${stage.table()}`);
    say(`in all ${((performance.now() - began) / 1000).toFixed(1)} s`);
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
