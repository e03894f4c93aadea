import { AgentAccounts } from '../deploy/agent-accounts.ts';
import { GATEWAY_ACCOUNT } from '../deploy/program.ts';
import { TributaryError } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { AgentLauncher } from '../peering/ports.ts';
import { type Access, accessAs, type OpenAccess } from './accounts.ts';
import { type Flavour, LOOPBACK, type Shared, startLeading } from './cluster.ts';
import { lanComponents } from './lan.ts';
import { InlineLauncher } from './launch-inline.ts';
import { inlineNetwork } from './network.ts';
import type { Agent, AgentParts } from './parts.ts';

/**
 * Role `all`: one process for everything, agents included. It must be on the host network to see the LAN. In a pod each part acts
 * under the account that it has as a process of its own.
 */
export async function startAll(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const network = parts.config.network === true ? await inlineNetwork(parts) : undefined;
  const more: Flavour['more'] = (shared) => {
    const opened = openAs(shared)?.(GATEWAY_ACCOUNT);
    const { home, caches } = opened ?? shared;
    return [
      ...(opened === undefined ? [] : [closing(opened)]),
      ...(network?.components({ ...shared, home, caches }) ?? []),
      ...lanComponents(parts, { ...shared, home: shared.act(home), caches }),
    ];
  };
  const inPod = isPod(parts);
  return startLeading(
    parts,
    {
      role: 'all',
      inPod,
      // The host of the pod has other programs, and its ports are open to the LAN.
      ...(inPod && { reachAt: { host: LOOPBACK } }),
      launcher: inlineLauncher,
      more,
      ...(network && { failed: network.lost }),
    },
    signal,
  );
}

/** A process that has no kubeconfig is a pod, with an account of its own. */
const isPod = ({ config }: AgentParts): boolean => config.kubeconfig === undefined;

/** Undefined where all parts act as whoever has started the process. */
function openAs({ parts, credentials, home }: Shared): OpenAccess | undefined {
  const { clock, log } = parts;
  return isPod(parts) ? accessAs({ credentials, home, clock, log }) : undefined;
}

/** Before those that use it, so that it is closed after them. */
const closing = ({ home }: Access): Component => ({
  name: 'client of the gateway',
  stop: async () => home.close(),
});

/** Each agent has a Lease of its own, by which its writes are checked. */
function inlineLauncher(shared: Shared): AgentLauncher & Component {
  const { parts, acting, homeCa, registries, home, caches } = shared;
  const { config, clock } = parts;
  const { nodeAddress } = config;
  if (nodeAddress === undefined) {
    throw new TributaryError(
      'Invalid',
      'say where the API server reaches this process: --node-address or $POD_IP',
    );
  }
  const open = openAs(shared);
  const log = parts.log.named('launcher');
  return new InlineLauncher({
    parts,
    acting,
    own: { home, caches },
    ...(open && { accounts: { launched: new AgentAccounts({ home: acting, clock, log }), open } }),
    homeCa,
    registries,
    nodeAddress,
  });
}
