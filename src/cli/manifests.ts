/** `tributary manifests`: what to apply in the home cluster. */
import { forgeCluster, type ClusterOptions, type ServiceType } from '../agent/manifests-cluster.ts';
import { forgeGateway } from '../agent/manifests-gateway.ts';
import { customResourceDefinitions } from '../api/crd/index.ts';
import type { Manifest } from '../api/manifest.ts';
import { TributaryError } from '../lib/errors.ts';
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
       tributary manifests cluster --image IMAGE [--priority-class NAME] [--cluster-name NAME]
                 [--service ClusterIP|NodePort|LoadBalancer] [--node-port PORT] [--advertise HOST:PORT,...]
                 [--api-server URL] [--home-api-server HOST:PORT] [--credential-seconds N] [--leaf-seconds N]
                 [--log-level LEVEL]
       tributary manifests gateway --image IMAGE [--priority-class NAME] [--lan-interfaces INTERFACE,...]
                 [--lan-ttl SECONDS] [--log-level LEVEL]
       tributary manifests peer --virtual-node NAME [--node NAME] --namespaces HOME_NS[,HOME_NS...] --image IMAGE
                 [--kubeconfig-secret [NAMESPACE/]NAME] [--priority-class NAME]`;

/** Options of `tributary cluster` that are handed on as they are. */
const CLUSTER_ARGS = [
  'cluster-name',
  'advertise',
  'api-server',
  'home-api-server',
  'credential-seconds',
  'leaf-seconds',
  'log-level',
];
const GATEWAY_ARGS = ['lan-interfaces', 'lan-ttl', 'log-level'];

const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  crds: [],
  cluster: ['image', 'priority-class', 'service', 'node-port', ...CLUSTER_ARGS],
  gateway: ['image', 'priority-class', ...GATEWAY_ARGS],
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
  switch (what) {
    case 'cluster':
      return forgeCluster({ ...common, ...peeringService(line), args: passedOn(line, CLUSTER_ARGS) });
    case 'gateway':
      return forgeGateway({ ...common, args: passedOn(line, GATEWAY_ARGS) });
    default:
      return forgePeer(line, common);
  }
}

const SERVICE_TYPES: readonly ServiceType[] = ['ClusterIP', 'NodePort', 'LoadBalancer'];

function peeringService({ values }: CommandLine): Pick<ClusterOptions, 'service'> {
  const nodePort = values['node-port'];
  const text = values['service'] ?? (nodePort === undefined ? 'ClusterIP' : 'NodePort');
  const type = SERVICE_TYPES.find((type) => type === text);
  if (type === undefined) {
    throw new TributaryError(
      'Invalid',
      `--service must be one of ${SERVICE_TYPES.join(', ')}, not "${text}"`,
    );
  }
  return { service: { type, ...(nodePort !== undefined && { nodePort: Number(nodePort) }) } };
}

/** As arguments of the role; the program itself checks them when it starts. */
const passedOn = ({ values }: CommandLine, names: readonly string[]): string[] =>
  names.flatMap((name) => {
    const value = values[name];
    return value === undefined ? [] : [`--${name}`, value];
  });

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
