/** Two clusters with one peering, installed and peered as people do it, in which every role rests. */

import { join } from 'node:path';

import { agentImage, agentImageName } from '../../lab/images-agent.ts';
import { Stage } from '../../lab/demo/stage.ts';
import { Workbench } from '../../lab/demo/workbench.ts';
import { Lab } from '../../lab/lab.ts';
import { auditOf } from '../frame/audit.ts';

export const CITIES = ['rome', 'milan'] as const;
const PATIENCE_MS = 240_000;

export interface IdleBedOptions {
  /** Name of the lab. */
  readonly name: string;
  /** The folder of another checkout, whose program it is. */
  readonly root?: string;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** rome uses milan's node. milan has two nodes, so that role `node` also runs where no gateway does. */
export async function raiseIdleBed({ name, root, signal, say }: IdleBedOptions): Promise<Lab> {
  const archive = await agentImage(say, root);
  const clusters = [{ name: 'rome' }, { name: 'milan', nodes: 2 }].map((cluster) => ({
    ...cluster,
    flags: { 'kube-apiserver': auditOf(name, cluster.name).flags },
  }));
  const lab = await Lab.fresh({ name, clusters, signal, progress: say });
  const bench = await Workbench.create(lab, {
    signal,
    ...(root !== undefined && { main: join(root, 'src', 'main.ts') }),
  });
  await Promise.all(CITIES.map(async (city) => lab.cluster(city).loadImage(archive, signal)));
  const stage = new Stage(say);
  for (const city of CITIES) {
    // What is aggregated cannot be listed before it answers.
    const wait = `kubectl --context ${city} wait apiservices --all --for=condition=Available --timeout=150s`;
    await stage.show(bench, wait, { timeoutMs: PATIENCE_MS, lines: 1 });
    const install = `tributary install --context ${city} --cluster-name ${city} --image ${agentImageName} --yes`;
    await stage.show(bench, install, { timeoutMs: PATIENCE_MS, lines: 3 });
  }
  await stage.show(bench, 'tributary peer --context rome --to-context milan', {
    timeoutMs: PATIENCE_MS,
    lines: 3,
  });
  return lab;
}
