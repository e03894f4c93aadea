/** What `lab status` prints. */
import { describeHolder } from './holder.ts';
import { Journal, type LabState } from './journal.ts';
import { ownerOf } from './known-daemons.ts';
import { isAlive } from './process.ts';
import { labPaths } from './paths.ts';
import { labNames } from './lab.ts';

/** A lab in full, and the names of the others. */
export async function describeLabs(name: string): Promise<string> {
  const others = labNames().filter((other) => other !== name);
  const lines = describeLab(name, new Journal(labPaths(name).runDirectory).read());
  const holder = describeHolder(name);
  if (holder !== undefined) lines.push(`  held by ${holder}`);
  if (others.length > 0) lines.push(`other labs: ${others.join(' ')}`);
  return lines.join('\n');
}

/** One lab from its journal. */
export function describeLab(name: string, state: LabState): string[] {
  const { spec } = state;
  if (!spec) return [`lab ${name}: not up`];
  const dead = [...state.daemons.values()].filter(
    ({ spec, id }) => !(id && isAlive(id)) && !state.off.has(ownerOf(spec.name)),
  );
  const condition = !state.ready ? 'incomplete' : dead.length > 0 ? 'broken' : 'up';
  const lines = [`lab ${name}: ${condition}, ${spec.workload}, data in ${spec.dataDirectory}`];
  for (const cluster of spec.clusters) {
    const access = state.clusters.get(cluster.name);
    lines.push(
      `  ${cluster.name}  pods ${cluster.podCidr}  services ${cluster.serviceCidr}  ${access?.server ?? 'not ready'}`,
      `    NetworkPolicies ${cluster.networkPolicies ? 'are enforced' : 'are not enforced'}`,
    );
    for (const node of cluster.nodes) lines.push(`    ${node.name}  ${node.address}  netns ${node.netns}`);
    if (access) lines.push(`    kubeconfig ${access.kubeconfig}`);
  }
  if (state.off.size > 0) lines.push(`  without power: ${[...state.off].join(' ')}`);
  for (const { spec: daemon } of dead) lines.push(`  not running: ${daemon.name}, log ${daemon.logFile}`);
  return lines;
}
