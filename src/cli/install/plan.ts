/** From what was found out to what is installed. Pure. */
import type { InstallValues } from '../../deploy/installation/values.ts';
import { OPERATOR_API } from '../../deploy/monitoring/monitoring.ts';
import { TributaryError } from '../../lib/errors.ts';
import { overlaps, parsePrefix, tryPrefix } from '../../lib/prefix.ts';
import type { ClusterFacts } from './facts.ts';
import type { SomeValues } from './values.ts';
import { someOf } from './waiting.ts';

/** The oldest one whose API servers have ValidatingAdmissionPolicies. */
const OLDEST: readonly [major: number, minor: number] = [1, 30];
/** The first that is free is taken; it is the one of the documents. */
const FIRST_PORT = 30_743;
const LAST_PORT = 30_762;
/** Peers try them one after the other. */
const MOST_ENDPOINTS = 3;
const EXTERNAL = ['10.70.0.0/20', '10.71.0.0/20', '172.31.240.0/20', '192.168.240.0/20'];

/** Throws where an installation cannot succeed. */
export function checkFacts({ version, forbidden, unserved }: ClusterFacts): void {
  const [, major = '0', minor = '0'] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  if (Number(major) < OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) < OLDEST[1])) {
    throw new TributaryError(
      'Invalid',
      `this cluster has Kubernetes ${version}; Tributary needs ${OLDEST.join('.')} or newer (ValidatingAdmissionPolicies)`,
    );
  }
  if (unserved.length > 0) {
    throw new TributaryError(
      'Invalid',
      `this cluster has no ${unserved.join(' and ')}, ${unserved.length === 1 ? 'a kind' : 'kinds'} of the Prometheus operator ` +
        `(${OPERATOR_API}): install that operator first, or choose ${unserved.map(withoutKind).join(' and ')}`,
    );
  }
  if (forbidden.length > 0) {
    throw new TributaryError(
      'Forbidden',
      `you may not change ${forbidden.join(', ')}; ask somebody with the ClusterRole cluster-admin`,
    );
  }
}

/** Throws where one process would leave nodes without a network. `isRecorded`: nobody has chosen it now. */
export function checkOneProcess(
  { nodes }: Pick<ClusterFacts, 'nodes'>,
  { oneProcess, network }: Pick<InstallValues, 'oneProcess' | 'network'>,
  isRecorded: boolean,
): void {
  if (!oneProcess || !network || nodes.length <= 1) return;
  const why =
    `one process sets up the network of its own node only, and this cluster has ${nodes.length}: ${someOf(nodes.map(({ name }) => name))}. ` +
    'Pods on the others would reach no peer';
  throw new TributaryError(
    'Conflict',
    isRecorded
      ? `this installation is recorded with --one-process true. But ${why}. Add --one-process false to give each role a process of ` +
          'its own; or build no tunnels: add --network false'
      : `${why}. Leave --one-process false, or build no tunnels: --network false`,
  );
}

/** Throws where the tunnels would have no WireGuard at all, as far as gateways have told. */
export function checkWireGuard(
  { withoutWireGuard }: Pick<ClusterFacts, 'withoutWireGuard'>,
  { wireguard, network }: Pick<InstallValues, 'wireguard' | 'network'>,
): void {
  if (wireguard !== 'kernel' || !network || withoutWireGuard.length === 0) return;
  throw new TributaryError(
    'Conflict',
    `the gateway has found no WireGuard in the kernel of ${someOf(withoutWireGuard)}, and --wireguard kernel allows nothing else: all ` +
      'tunnels would end. Choose --wireguard auto, which takes the kernel’s where it has it; or load the module wireguard there, and add --force',
  );
}

/** The value that makes no object of this kind. */
const withoutKind = (kind: string): string =>
  kind === 'PodMonitor' ? '--service-monitor false' : '--prometheus-rule false';

/** Values that follow from the facts, where nobody has chosen them. */
export function foundValues(facts: ClusterFacts, chosen: SomeValues): SomeValues {
  return { ...foundEndpoint(facts, chosen), ...foundRanges(facts, chosen) };
}

/** A node port, at the addresses of nodes: that works in every network in which clusters see each other's nodes. */
function foundEndpoint({ nodes, usedNodePorts }: ClusterFacts, chosen: SomeValues): SomeValues {
  const isChosen = ['peeringService', 'peeringNodePort', 'advertise'].some((name) =>
    Object.hasOwn(chosen, name),
  );
  const addresses = nodes.flatMap(({ addresses: [first] }) => first ?? []);
  if (isChosen || addresses.length === 0) return {};
  const used = new Set(usedNodePorts);
  const ports = Array.from({ length: LAST_PORT - FIRST_PORT + 1 }, (_, index) => FIRST_PORT + index);
  const port = ports.find((one) => !used.has(one));
  if (port === undefined) return {};
  return {
    peeringService: 'NodePort',
    peeringNodePort: port,
    advertise: addresses.slice(0, MOST_ENDPOINTS).map((address) => endpointOf(address, port)),
  };
}

const endpointOf = (address: string, port: number): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;

/** Ranges that nodes tell by themselves, one by one, are left to role `cluster`, which follows new nodes. */
function foundRanges({ pods, services, nodes }: ClusterFacts, chosen: SomeValues): SomeValues {
  const isWhole = pods.source.startsWith('ConfigMap');
  const addresses = nodes.flatMap((node) =>
    node.addresses.map((one) => `${one}/${one.includes(':') ? 128 : 32}`),
  );
  const used = [...pods.cidrs, ...services.cidrs, ...addresses].flatMap((text) => tryPrefix(text) ?? []);
  const first = EXTERNAL.find((text) => !used.some((one) => overlaps(parsePrefix(text), one)));
  return {
    ...(isWhole && chosen.podCidrs === undefined && { podCidrs: [...pods.cidrs] }),
    ...(services.source.startsWith('ConfigMap') &&
      chosen.serviceCidrs === undefined && { serviceCidrs: [...services.cidrs] }),
    ...(first !== undefined &&
      first !== EXTERNAL[0] &&
      chosen.externalCidr === undefined && { externalCidr: first }),
  };
}

/** What a person reads before anything is done. */
export function planLines(facts: ClusterFacts, values: InstallValues, version: string): string[] {
  const { nodes, pods, services, cni } = facts;
  const or = (text: string, otherwise: string): string => (text === '' ? otherwise : text);
  const rows: readonly (readonly [string, string])[] = [
    ['cluster', `${values.clusterName}, Kubernetes ${facts.version}, ${nodes.length} node(s)`],
    ['program', `Tributary ${version}, image ${values.image}`],
    ['processes', processesLine(values)],
    ['network plug-in', or(cni, 'not known by its name; that is no problem')],
    ['pods', rangesLine(values.podCidrs, pods, '--pod-cidrs')],
    ['Services', rangesLine(values.serviceCidrs, services, '--service-cidrs')],
    ['nodes for peers', or(values.externalCidr, EXTERNAL[0] ?? '')],
    ['peers dial', endpointLine(values)],
    [
      'tunnels',
      values.network
        ? `UDP ${values.wireguardPort} at ${or(values.tunnelEndpoints.join(', '), 'the node of the gateway')}, ${WIREGUARD_WORDS[values.wireguard]}`
        : 'none',
    ],
  ];
  return rows.map(([what, is]) => `  ${what.padEnd(16)} ${is}`);
}

function processesLine({ oneProcess, agents }: InstallValues): string {
  if (oneProcess) return 'one for all roles and peers';
  return agents === 'shared'
    ? 'one for each role and node, and one for all peers'
    : 'one for each role, peer and node';
}

const WIREGUARD_WORDS: Readonly<Record<InstallValues['wireguard'], string>> = {
  auto: 'WireGuard of the kernel where it has it, else wireguard-go',
  kernel: 'WireGuard of the kernel only',
  userspace: 'wireguard-go only',
};

function rangesLine(
  chosen: readonly string[],
  { cidrs, source }: ClusterFacts['pods'],
  option: string,
): string {
  if (chosen.length > 0) return `${chosen.join(', ')}${chosen.join() === cidrs.join() ? ` (${source})` : ''}`;
  if (cidrs.length === 0) return `not found; name them with ${option}`;
  const more = cidrs.length - 3;
  return `${cidrs.slice(0, 3).join(', ')}${more > 0 ? ` and ${more} more` : ''} (${source})`;
}

function endpointLine({ peeringService, peeringNodePort, advertise }: InstallValues): string {
  if (advertise.length > 0) return `${advertise.join(', ')} (Service of type ${peeringService})`;
  if (peeringService === 'ClusterIP') return 'no address: this cluster dials them';
  return `a Service of type ${peeringService}${peeringNodePort === 0 ? '' : `, port ${peeringNodePort}`}`;
}
