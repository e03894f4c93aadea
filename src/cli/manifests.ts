/** `tributary manifests`: what to apply in the home cluster. */
import { customResourceDefinitions } from '../api/crd/index.ts';
import type { Manifest } from '../api/manifest.ts';
import { TributaryError } from '../lib/errors.ts';
import { forgeCluster } from '../provider/agent/manifests-cluster.ts';
import { SYSTEM_NAMESPACE, forgeAgent } from '../provider/agent/manifests.ts';
import {
  listOf,
  parseCommandLine,
  printYaml,
  required,
  runCommand,
  type CommandIo,
  type CommandLine,
} from './manifests-output.ts';

export const MANIFESTS_USAGE = `tributary manifests crds
       tributary manifests cluster --image IMAGE [--priority-class NAME]
       tributary manifests peer --virtual-node NAME [--node NAME] --namespaces HOME_NS[,HOME_NS...] --image IMAGE
                 [--kubeconfig-secret [NAMESPACE/]NAME] [--priority-class NAME]`;

const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  crds: [],
  cluster: ['image', 'priority-class'],
  peer: ['virtual-node', 'node', 'namespaces', 'image', 'kubeconfig-secret', 'priority-class'],
};

/** Prints YAML for `kubectl apply -f -`. */
export async function manifestsCommand(args: string[], io: CommandIo): Promise<number> {
  return runCommand(MANIFESTS_USAGE, io, () => printYaml(manifestsFor(args)));
}

function manifestsFor([what = '', ...args]: string[]): Manifest[] {
  const options = Object.hasOwn(OPTIONS, what) ? OPTIONS[what] : undefined;
  if (options === undefined) {
    throw new TributaryError('Invalid', `say which manifests: ${Object.keys(OPTIONS).join(', ')}`);
  }
  const line = parseCommandLine(args, options);
  const [extra] = line.positionals;
  if (extra !== undefined) throw new TributaryError('Invalid', `unexpected argument "${extra}"`);
  if (what === 'crds') return customResourceDefinitions();
  const priority = line.values['priority-class'];
  const common = {
    image: required(line, 'image'),
    ...(priority !== undefined && { priorityClassName: priority }),
  };
  return what === 'cluster' ? forgeCluster(common) : forgePeer(line, common);
}

function forgePeer(line: CommandLine, common: { image: string; priorityClassName?: string }): Manifest[] {
  const virtualNode = required(line, 'virtual-node');
  const node = line.values['node'];
  return forgeAgent({
    ...common,
    virtualNode,
    ...(node !== undefined && { node }),
    namespaces: listOf(required(line, 'namespaces')),
    kubeconfigSecret: secretRef(line.values['kubeconfig-secret'] ?? `${virtualNode}-kubeconfig`),
  });
}

/** `namespace/name`, or a name in our own namespace. */
function secretRef(text: string): { namespace: string; name: string } {
  const [first = '', second, ...rest] = text.split('/');
  if (rest.length > 0) {
    throw new TributaryError('Invalid', `kubeconfig Secret "${text}" is not of the form namespace/name`);
  }
  return second === undefined
    ? { namespace: SYSTEM_NAMESPACE, name: first }
    : { namespace: first, name: second };
}
