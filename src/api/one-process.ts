/** Whether all roles of an installation are one process, as its Deployment in tributary-system says. */
import type { PodSpec } from './wire.ts';

/** The first arguments of that process. */
export const RUN_ALL: readonly string[] = ['run', 'all'];

/** `cluster`: the Deployment `tributary-cluster`, where there is one. */
export function isOneProcess(cluster: Cluster | undefined): boolean {
  const args = argsOf(cluster);
  return RUN_ALL.every((arg, at) => args[at] === arg);
}

/** Whether that process builds tunnels, and so sets up the network of its host. */
export function hasTunnels(cluster: Cluster | undefined): boolean {
  return optionOf(cluster, 'network') === 'on';
}

/** The value of an option with which the program of a Deployment starts; undefined where it is not given. */
export function optionOf(deployment: Cluster | undefined, name: string): string | undefined {
  const args = argsOf(deployment);
  const at = args.indexOf(`--${name}`);
  return at < 0 ? undefined : args[at + 1];
}

interface Cluster {
  spec?: { template?: { spec?: Pick<PodSpec, 'containers'> } };
}

const argsOf = (cluster: Cluster | undefined): readonly string[] =>
  cluster?.spec?.template?.spec?.containers[0]?.args ?? [];
