/** What people apply for the `gateway` role: pods on the host network, where tunnels end and multicast is. */
import { forgeFence, isAccount, writes } from '../api/fence.ts';
import { type Manifest, type ManifestOf, SYSTEM_NAMESPACE } from '../api/manifest.ts';
import { GATEWAY_CONFIG_MAP, GATEWAY_LEASE, WIREGUARD_SECRET } from '../api/own-network.ts';
import type { AccountRef } from '../api/rbac.ts';
import type { WireGuardChoice } from '../api/tunnel.ts';
import type { Container, PodSpec } from '../api/wire.ts';
import { TributaryError } from '../lib/errors.ts';
import { WIREGUARD_LINK } from '../network/plan/names.ts';
import { forgePlaceGrants } from './cluster.ts';
import {
  checkedImage,
  type Deployment,
  forgeDeployment,
  forgeNetworkPod,
  GATEWAY_ACCOUNT,
  labelsOf,
  ON_NETWORKS,
  type Program,
} from './program.ts';
import { GATEWAY_NAME, GATEWAY_RIGHTS, LAN_GATEWAY_RIGHTS, type PlaceRights } from './rights/cluster.ts';

/** On the host, where 8080 is often taken. */
const GATEWAY_OPS_PORT = 7480;
const WIREGUARD_PORT = 51_820;

export interface GatewayOptions {
  image: string;
  priorityClassName?: string;
  /** On so many nodes; one is active. Default 1. */
  replicas?: number;
  /** False: LAN discovery only, without rights over the network of the host. Default true. */
  network?: boolean;
  /** Whose WireGuard; default `auto`. */
  wireguard?: WireGuardChoice;
  wireguardPort?: number;
  wireguardInterface?: string;
  /** Further arguments of `tributary run gateway`. */
  args?: readonly string[];
}

/** In the order in which they must be applied; after those of the `cluster` role. */
export function forgeGateway(options: GatewayOptions): Manifest[] {
  const { network = true } = options;
  const labels = labelsOf(GATEWAY_NAME);
  return [
    ...forgeGatewayAccount(network, network ? GATEWAY_RIGHTS : LAN_GATEWAY_RIGHTS),
    forgeGatewayDeployment(options, {
      account: GATEWAY_ACCOUNT,
      labels,
      image: checkedImage(options.image),
      args: gatewayArgs(options),
      ports: { ops: GATEWAY_OPS_PORT },
      memoryLimit: '256Mi',
      hostNetwork: true,
      ...(options.priorityClassName !== undefined && { priorityClassName: options.priorityClassName }),
    }),
  ];
}

/** The account with its rights, and the fence around them where there are tunnels. */
export function forgeGatewayAccount(network: boolean, rights: readonly PlaceRights[]): Manifest[] {
  const labels = labelsOf(GATEWAY_NAME);
  const account = GATEWAY_ACCOUNT;
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account, labels } },
    ...forgePlaceGrants({ name: GATEWAY_NAME, labels, account }, rights),
    ...(network ? forgeGatewayFence(GATEWAY_NAME, account, labels) : []),
  ];
}

function gatewayArgs(options: GatewayOptions): string[] {
  const { network, wireguard, wireguardPort, wireguardInterface, args = [] } = options;
  return [
    'run',
    'gateway',
    '--ops-port',
    String(GATEWAY_OPS_PORT),
    '--system-namespace',
    SYSTEM_NAMESPACE,
    ...(network === false ? ['--network', 'off'] : []),
    ...(wireguard === undefined ? [] : ['--wireguard', wireguard]),
    ...(wireguardPort === undefined ? [] : ['--wireguard-port', String(wireguardPort)]),
    ...(wireguardInterface === undefined ? [] : ['--wireguard-interface', wireguardInterface]),
    ...args,
  ];
}

function forgeGatewayDeployment(options: GatewayOptions, program: Program): ManifestOf<Deployment> {
  const { network = true, replicas = 1 } = options;
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 16) {
    throw new TributaryError('Invalid', `replicas must be from 1 to 16, not ${replicas}`);
  }
  const deployment = forgeDeployment(program);
  const { spec } = deployment;
  if (spec === undefined) return deployment;
  return {
    ...deployment,
    spec: {
      ...spec,
      replicas,
      // They are kept apart by the ports of the host, so a new one can only take the place of an old one.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      ...(network && {
        template: { ...spec.template, spec: forgeTunnelPod(options, { program, name: 'gateway' }) },
      }),
    },
  };
}

/**
 * The tunnel's program has a container of its own, so that neither ends when the other does. `name` is that of the container of
 * the program that sets tunnels up.
 */
export function forgeTunnelPod(
  options: Pick<GatewayOptions, 'wireguard' | 'wireguardPort' | 'wireguardInterface'>,
  { program, name }: { program: Program; name: string },
): PodSpec {
  const pod = forgeNetworkPod(program, name);
  const [gateway] = pod.containers;
  const { wireguard = 'auto', wireguardPort = WIREGUARD_PORT, wireguardInterface = WIREGUARD_LINK } = options;
  const sockets = { name: 'wireguard', mountPath: '/var/run/wireguard' };
  const tun = { name: 'tun', mountPath: '/dev/net/tun' };
  return {
    ...pod,
    // The container of the tunnel must not have the token; the other one mounts it by hand.
    automountServiceAccountToken: false,
    containers: [
      {
        ...gateway,
        ports: [
          ...(gateway.ports ?? []),
          { name: 'wireguard', containerPort: wireguardPort, protocol: 'UDP' },
        ],
        volumeMounts: [
          sockets,
          { name: 'account', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
        ],
      },
      forgeWireGuard(program.image, [wireguardInterface, wireguard], [sockets, tun]),
    ],
    volumes: [
      // In memory: a socket that outlives the program on disk would only be in its way.
      { name: sockets.name, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
      { name: tun.name, hostPath: { path: '/dev/net/tun', type: 'CharDevice' } },
      { name: 'account', projected: { sources: ACCOUNT_SOURCES } },
    ],
  };
}

/** As the API server would add them. */
const ACCOUNT_SOURCES: NonNullable<
  NonNullable<NonNullable<PodSpec['volumes']>[number]['projected']>['sources']
> = [
  { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
  { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
  { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
];

/**
 * $0 is the interface, $1 whose WireGuard it is. It ends at once when the pod does: the shell would otherwise wait for its child, and
 * the successor for us. If an interface answers after wireguard-go has ended, it is one of the kernel, which has learnt WireGuard since.
 */
const RUN_WIREGUARD = [
  "trap 'exit 0' TERM INT",
  'idle() { sleep infinity & wait $!; exit 0; }',
  'if [ "$1" = kernel ]; then idle; fi',
  'if [ "$1" = auto ] && node /app/dist/main.js kernel-wireguard; then idle; fi',
  'while :; do',
  '  wireguard-go -f "$0" & wait $!',
  '  sleep 0.2',
  '  if [ "$1" = auto ] && wg show "$0" >/dev/null 2>&1; then idle; fi',
  'done',
].join('\n');

/**
 * Of Go's collector. Under load it frees memory only near the limit, and what wireguard-go keeps for its next packets stays until then: a
 * smaller limit, or none with Go's own pace, costs 5 to 10 % of its throughput. Go reads `MiB`. The limit is soft: what is in use counts,
 * too, and only the container's own limit ends the process.
 */
export const WIREGUARD_MEMORY = { GOMEMLIMIT: '192MiB', GOGC: '400' } as const;

function forgeWireGuard(
  image: string,
  args: readonly [link: string, by: string],
  volumeMounts: NonNullable<Container['volumeMounts']>,
): Container {
  return {
    name: 'wireguard',
    image,
    command: ['sh', '-c', RUN_WIREGUARD, ...args],
    env: [
      { name: 'LOG_LEVEL', value: 'error' },
      ...Object.entries(WIREGUARD_MEMORY).map(([name, value]) => ({ name, value })),
    ],
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '768Mi' } },
    securityContext: ON_NETWORKS,
    volumeMounts,
  };
}

/**
 * RBAC cannot narrow a right to create to a name. So whoever has taken over a gateway could make the Secret of preshared
 * keys, which the gateway may read, a token of another account (type kubernetes.io/service-account-token), or hold the
 * Lease of another role. A ValidatingAdmissionPolicy (KEP-3488) permits only these names.
 */
const ITS_OWN = { secrets: WIREGUARD_SECRET, configmaps: GATEWAY_CONFIG_MAP, leases: GATEWAY_LEASE };

function forgeGatewayFence(name: string, account: AccountRef, labels: Record<string, string>): Manifest[] {
  const isOwn = Object.entries(ITS_OWN).map(
    ([resource, own]) => `(request.resource.resource == '${resource}' && object.metadata.name == '${own}')`,
  );
  return forgeFence({
    name,
    labels,
    user: isAccount(account),
    rules: [
      writes('', ['secrets', 'configmaps'], 'CREATE'),
      writes('coordination.k8s.io', ['leases'], 'CREATE'),
    ],
    validations: [
      [isOwn.join(' || '), `the gateway may make ${[...new Set(Object.values(ITS_OWN))].join(' and ')} only`],
      [
        "request.resource.resource != 'secrets' || object.type == 'Opaque'",
        'the gateway may make no Secret that others fill',
      ],
    ],
  });
}
