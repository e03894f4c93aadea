/** `tributary manifests`: what to apply in the home cluster. */
import { customResourceDefinitions } from '../api/crd/index.ts';
import { type Manifest, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { WIREGUARD_CHOICES, type WireGuardChoice } from '../api/tunnel.ts';
import type { Container, PodSpec } from '../api/wire.ts';
import { parseConfig } from '../config.ts';
import { type ClusterOptions, forgeCluster, type ServiceType } from '../deploy/cluster.ts';
import { forgeGateway, type GatewayOptions } from '../deploy/gateway.ts';
import { forgeCleanUp, forgeNode } from '../deploy/node.ts';
import { forgeAgent } from '../deploy/peer.ts';
import { TributaryError } from '../lib/errors.ts';
import { roleOption } from './role-options.ts';
import { type Command, defineCommand, type Options, type OptionSpec } from './command.ts';
import { type CommandLine, EXIT, listOf, required } from './command-line.ts';
import { printYaml } from './yaml.ts';

/** Options of `tributary run cluster` that are handed on as they are. */
const CLUSTER_ARGS = [
  'cluster-name',
  'advertise',
  'api-server',
  'home-api-server',
  'cluster-dns',
  'cluster-domain',
  'credential-seconds',
  'dashboard',
  'drain-seconds',
  'leaf-seconds',
  'offload-namespaces',
  'offload-strategy',
  'restored-keep-seconds',
  'pod-cidr',
  'service-cidr',
  'external-cidr',
  'view-pools',
  'reserved-cidrs',
  'identity-views',
  'preshared-keys',
  'log-level',
];
const GATEWAY_ARGS = [
  'tunnel-endpoint',
  'tunnel-mtu',
  'lease-seconds',
  'probe-seconds',
  'lan-interfaces',
  'lan-ttl',
  'log-level',
];
const NODE_ARGS = ['wireguard-interface', 'tunnel-mtu', 'log-level'];
const PEER_ARGS = ['cluster-dns', 'cluster-domain', 'lease-seconds', 'restored-keep-seconds', 'log-level'];
/** Ports that may have to be changed: on the host, or where a control plane can reach only some ports of a pod. */
const PORTS: Readonly<Record<string, string>> = { cluster: 'webhook', gateway: 'ops', node: 'ops' };

const SERVICE_TYPES: readonly ServiceType[] = ['ClusterIP', 'NodePort', 'LoadBalancer'];

const IMAGE: OptionSpec = { value: 'IMAGE', text: 'image of Tributary', isRequired: true };
const COMMON: Options = {
  image: IMAGE,
  'priority-class': { value: 'NAME', text: 'PriorityClass of the pods' },
};

/** Options of a role, with the texts that the role itself shows. */
const ofRole = (names: readonly string[]): Options =>
  Object.fromEntries(names.map((name): [string, OptionSpec] => [name, roleOption(name)]));

const OPTIONS: Readonly<Record<string, { summary: string; options: Options }>> = {
  crds: { summary: 'The CustomResourceDefinitions.', options: {} },
  cluster: {
    summary: 'The role cluster, with its rights, fences and Services.',
    options: {
      ...COMMON,
      service: {
        value: 'TYPE',
        text: 'type of the Service of the peering endpoint',
        choices: SERVICE_TYPES,
        fallback: 'ClusterIP',
      },
      'node-port': { value: 'PORT', text: 'its node port; then the default type is NodePort' },
      ...ofRole(['webhook-port', ...CLUSTER_ARGS]),
    },
  },
  gateway: {
    summary: 'The role gateway: tunnels, and discovery on the LAN.',
    options: {
      ...COMMON,
      replicas: { value: 'NUMBER', text: 'of which one is active', fallback: '1' },
      network: { value: 'on|off', text: 'off: discovery only, without rights over the host', fallback: 'on' },
      ...ofRole(['wireguard', 'wireguard-port', 'wireguard-interface', 'ops-port', ...GATEWAY_ARGS]),
    },
  },
  node: {
    summary: 'The role node: routes of each node to the gateway.',
    options: { ...COMMON, ...ofRole(['ops-port', ...NODE_ARGS]) },
  },
  'clean-up': {
    summary: 'What removes from all hosts what gateway and node have set up.',
    options: { image: IMAGE },
  },
  peer: {
    summary: 'An agent that is started by hand, without peering.',
    options: {
      ...COMMON,
      'virtual-node': { value: 'NAME', text: 'its VirtualNode', isRequired: true },
      node: { value: 'NAME', text: 'name of the node', fallback: 'that of the VirtualNode' },
      namespaces: {
        value: 'NS,...',
        text: 'home namespaces whose pods it runs',
        isRequired: true,
        names: 'namespaces',
      },
      'kubeconfig-secret': {
        value: '[NAMESPACE/]NAME',
        text: 'Secret with the kubeconfig of the foreign cluster',
        fallback: 'VIRTUAL_NODE-kubeconfig',
      },
      ...ofRole(PEER_ARGS),
    },
  },
};

/** Prints YAML for `kubectl apply -f -`. */
export const manifestsCommand: Command = defineCommand({
  name: 'manifests',
  summary: 'Print the objects of one part, for those who apply them by other means.',
  children: Object.entries(OPTIONS).map(([name, { summary, options }]) =>
    defineCommand({
      name,
      summary,
      options,
      act: async (line, { io }) => {
        io.out(printYaml(manifestsFor(name, line)));
        return Promise.resolve(EXIT.ok);
      },
    }),
  ),
});

function manifestsFor(what: string, line: CommandLine): Manifest[] {
  if (what === 'crds') return customResourceDefinitions();
  const manifests = forged(what, line);
  const port = PORTS[what];
  const number = port === undefined ? undefined : portOf(line, `${port}-port`);
  return port === undefined || number === undefined ? manifests : withPort(manifests, port, number);
}

function forged(what: string, line: CommandLine): Manifest[] {
  const priority = line.values['priority-class'];
  const common = {
    image: required(line, 'image'),
    ...(priority !== undefined && { priorityClassName: priority }),
  };
  switch (what) {
    case 'cluster':
      return forgeCluster({ ...common, ...peeringService(line), args: passedOn(line, CLUSTER_ARGS) });
    case 'gateway':
      return forgeGateway({ ...common, ...gatewayOptions(line), args: passedOn(line, GATEWAY_ARGS) });
    case 'node':
      return forgeNode({ ...common, args: passedOn(line, NODE_ARGS) });
    case 'clean-up':
      return forgeCleanUp(common);
    default:
      return withArguments(forgePeer(line, common), passedOn(line, PEER_ARGS));
  }
}

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

function gatewayOptions({ values }: CommandLine): Partial<GatewayOptions> {
  const { network, replicas, wireguard, 'wireguard-port': port, 'wireguard-interface': link } = values;
  if (network !== undefined && network !== 'on' && network !== 'off') {
    throw new TributaryError('Invalid', `--network must be on or off, not "${network}"`);
  }
  if (port !== undefined && !(Number.isInteger(Number(port)) && Number(port) > 0 && Number(port) < 65_536)) {
    throw new TributaryError('Invalid', `--wireguard-port must be a port, not "${port}"`);
  }
  return {
    network: network !== 'off',
    ...(replicas !== undefined && { replicas: Number(replicas) }),
    ...(wireguard !== undefined && { wireguard: choiceOf(wireguard) }),
    ...(port !== undefined && { wireguardPort: Number(port) }),
    ...(link !== undefined && { wireguardInterface: link }),
  };
}

function choiceOf(text: string): WireGuardChoice {
  const known = WIREGUARD_CHOICES.find((one) => one === text);
  if (known !== undefined) return known;
  throw new TributaryError(
    'Invalid',
    `--wireguard must be one of ${WIREGUARD_CHOICES.join(', ')}, not "${text}"`,
  );
}

/** As arguments of the role; checked now, as the program itself will do when it starts. */
function passedOn({ values }: CommandLine, names: readonly string[]): string[] {
  const given = names.flatMap((name): [string, string][] => {
    const value = values[name];
    return value === undefined ? [] : [[name, value]];
  });
  parseConfig({ options: Object.fromEntries(given), env: {}, hostname: '' });
  return given.flatMap(([name, value]) => [`--${name}`, value]);
}

function portOf(line: CommandLine, name: string): number | undefined {
  const [, text] = passedOn(line, [name]);
  return text === undefined ? undefined : Number(text);
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

type PodManifest = Manifest & { spec: { template: { spec: PodSpec } } };

const isPodManifest = (manifest: Manifest): manifest is PodManifest =>
  manifest.kind === 'Deployment' || manifest.kind === 'DaemonSet';

/** The first container of a pod of ours is the program. */
function withProgram(manifest: Manifest, change: (program: Container) => Container): Manifest {
  if (!isPodManifest(manifest)) return manifest;
  const { spec } = manifest;
  const [program, ...others] = spec.template.spec.containers;
  if (program === undefined) return manifest;
  const pod = { ...spec.template.spec, containers: [change(program), ...others] };
  return { ...manifest, spec: { ...spec, template: { ...spec.template, spec: pod } } } as Manifest;
}

const withArguments = (manifests: readonly Manifest[], args: readonly string[]): Manifest[] =>
  manifests.map((manifest) =>
    withProgram(manifest, (program) => ({ ...program, args: [...(program.args ?? []), ...args] })),
  );

/** The port `name` with its option `--name-port`; Services, probes and policies know it by its name, and follow. */
function withPort(manifests: readonly Manifest[], name: string, port: number): Manifest[] {
  const option = `--${name}-port`;
  if (!(port > 0)) throw new TributaryError('Invalid', `${option} must be from 1 to 65535, not "${port}"`);
  return manifests.map((manifest) =>
    withProgram(manifest, ({ args = [], ports = [], ...program }) => {
      const other = ports.find((one) => one.containerPort === port && one.protocol !== 'UDP');
      if (other !== undefined && other.name !== name) {
        throw new TributaryError('Invalid', `${option}: port ${port} is taken: it is "${other.name}"`);
      }
      const at = args.indexOf(option);
      return {
        ...program,
        args: at === -1 ? [...args, option, `${port}`] : args.with(at + 1, `${port}`),
        ports: ports.map((one) => (one.name === name ? { ...one, containerPort: port } : one)),
      };
    }),
  );
}
