/**
 * All roles as one process in one pod, on the host network: for clusters with one node. Each part acts under the account that it
 * has as a process of its own; so accounts, rights and fences are the same, and the process may ask for tokens of them.
 */
import { RUN_ALL } from '../api/one-process.ts';
import { type Manifest, type ManifestOf, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { type ClusterOptions, clusterProgram, forgeClusterBase } from './cluster.ts';
import { forgeGatewayAccount, forgeTunnelPod, type GatewayOptions } from './gateway.ts';
import { type Deployment, forgeDeployment, type Program } from './program.ts';
import { ONE_PROCESS_RIGHTS, oneProcessGatewayRights } from './rights/one-process.ts';

/** On the host; beside those of the gateway and of role `node`, which may be there while one installation follows the other. */
const HOST_PORTS = { opsPort: 7481, webhookPort: 7483 } as const;

type OneProcessOptions = Omit<ClusterOptions, 'args'> &
  Pick<GatewayOptions, 'network' | 'wireguard' | 'wireguardPort' | 'wireguardInterface'> & {
    /** Further arguments of `tributary run all`. */
    args?: readonly string[];
  };

/** In the order in which they must be applied. */
export function forgeOneProcess(options: OneProcessOptions): Manifest[] {
  const { network = true } = options;
  return [
    // The pod is on the host network, and with tunnels it has NET_ADMIN and a device of the host: not even `baseline` allows that.
    ...forgeClusterBase(options, { level: 'privileged', rights: ONE_PROCESS_RIGHTS }),
    ...forgeGatewayAccount(network, oneProcessGatewayRights(network)),
    forgeOneDeployment(options, {
      ...clusterProgram(options, HOST_PORTS),
      args: argsOf(options),
      memoryLimit: '768Mi',
      hostNetwork: true,
    }),
  ];
}

function forgeOneDeployment(options: OneProcessOptions, program: Program): ManifestOf<Deployment> {
  const deployment = forgeDeployment(program);
  const { spec } = deployment;
  if (spec === undefined || options.network === false) return deployment;
  const pod = forgeTunnelPod(options, { program, name: 'tributary' });
  return { ...deployment, spec: { ...spec, template: { ...spec.template, spec: pod } } };
}

const argsOf = ({
  network = true,
  wireguard,
  wireguardPort,
  wireguardInterface,
  args = [],
}: OneProcessOptions): string[] => [
  ...RUN_ALL,
  '--ops-port',
  String(HOST_PORTS.opsPort),
  '--webhook-port',
  String(HOST_PORTS.webhookPort),
  '--system-namespace',
  SYSTEM_NAMESPACE,
  '--network',
  network ? 'on' : 'off',
  ...(wireguard === undefined ? [] : ['--wireguard', wireguard]),
  ...(wireguardPort === undefined ? [] : ['--wireguard-port', String(wireguardPort)]),
  ...(wireguardInterface === undefined ? [] : ['--wireguard-interface', wireguardInterface]),
  ...args,
];
