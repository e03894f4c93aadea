/** What the gateways say of WireGuard: before another choice is made, and whether they have it afterwards. */
import { conditionOf } from '../../api/conditions.ts';
import { CLUSTER_NAME, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { optionOf } from '../../api/one-process.ts';
import { deployments } from '../../api/resources.ts';
import {
  type Tunnel,
  TUNNEL_CONDITIONS,
  TUNNEL_REASONS,
  tunnels,
  type WireGuardChoice,
  type WireGuardKind,
} from '../../api/tunnel.ts';
import { NETWORK_NAMESPACE } from '../../deploy/program.ts';
import { GATEWAY_NAME } from '../../deploy/rights/cluster.ts';
import type { InstallValues } from '../../deploy/installation/values.ts';
import { found, listed } from './objects.ts';
import { type InstallSession, mustBe } from './waiting.ts';

/** Nodes of gateways that have asked their kernel for WireGuard, by their choice, and have got none. */
export async function gatewaysWithoutWireGuard(session: InstallSession): Promise<string[]> {
  const all = await listed(session, tunnels);
  if (all.length === 0) return [];
  const gateway = await found(session, deployments, { namespace: NETWORK_NAMESPACE, name: GATEWAY_NAME });
  const one = await found(session, deployments, { namespace: SYSTEM_NAMESPACE, name: CLUSTER_NAME });
  // Role `cluster` has no such option, unless it is a part of the one process; a gateway without it decides by itself.
  const choice =
    gateway === undefined ? optionOf(one, 'wireguard') : (optionOf(gateway, 'wireguard') ?? 'auto');
  return nodesWithout(all, choice);
}

/** With `userspace`, nobody has asked. Pure. */
export function nodesWithout(all: readonly Tunnel[], choice: string | undefined): string[] {
  const nodes = all.flatMap((tunnel) => {
    const { gateway = '?', wireguard } = tunnel.status?.connection ?? {};
    const isAnswered =
      (choice === 'auto' && wireguard === 'Userspace') ||
      (choice === 'kernel' && missingAt(tunnel) !== undefined);
    return isAnswered ? [gateway] : [];
  });
  return [...new Set(nodes)].toSorted();
}

/** What the gateway says of its missing link; undefined where it is there. */
function missingAt(tunnel: Tunnel): string | undefined {
  const condition = conditionOf(tunnel, TUNNEL_CONDITIONS.configured);
  const isMissing = condition?.status === 'False' && condition.reason === TUNNEL_REASONS.noWireGuard;
  return isMissing ? condition.message : undefined;
}

/** With `auto` either is right, and the one of before stays while it carries packets. */
const WANTED: Readonly<Record<WireGuardChoice, WireGuardKind | undefined>> = {
  auto: undefined,
  kernel: 'Kernel',
  userspace: 'Userspace',
};

/** Of tunnels that were there before, since a gateway without tunnels says nothing. Throws Unavailable with its problem. */
export async function untilWireGuard(
  session: InstallSession,
  { wireguard, network }: Pick<InstallValues, 'wireguard' | 'network'>,
  timeoutMs: number,
): Promise<void> {
  const wanted = WANTED[wireguard];
  if (wanted === undefined || !network) return;
  let hasTold = false;
  let isHopeless = false;
  await mustBe(session, {
    what: `for the tunnels to go through WireGuard of the ${wireguard === 'kernel' ? 'kernel' : 'program wireguard-go'}`,
    timeoutMs,
    look: async () => {
      const all = (await listed(session, tunnels)).filter(({ status }) => status?.connection !== undefined);
      hasTold = all.length > 0;
      const problems = all.flatMap((tunnel) => missingAt(tunnel) ?? []);
      isHopeless = problems.length > 0;
      const isThere = all.every(({ status }) => status?.connection?.wireguard === wanted);
      return problems[0] ?? (isThere ? '' : 'the gateway has not said so yet');
    },
    isHopeless: () => isHopeless,
    advice: `The roles run, and the tunnels do not. ${wireguard === 'kernel' ? 'Load the module wireguard on the node of the gateway, or' : 'Look at its log, or'} choose another: tributary upgrade --wireguard auto`,
  });
  if (hasTold) session.io.out(`ready: WireGuard of the tunnels (${wanted})\n`);
}
