import { TributaryError } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { AgentLauncher } from '../peering/ports.ts';
import { type Flavour, type Shared, startLeading } from './cluster.ts';
import { lanComponents } from './lan.ts';
import { InlineLauncher } from './launch-inline.ts';
import { inlineNetwork } from './network.ts';
import type { Agent, AgentParts } from './parts.ts';

/** Role `all`: one process for everything, agents included. It must be on the host network to see the LAN. */
export async function startAll(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const network = parts.config.network === true ? await inlineNetwork(parts) : undefined;
  const more: Flavour['more'] = (shared) => [
    ...(network?.components(shared) ?? []),
    ...lanComponents(parts, { ...shared, home: shared.acting }),
  ];
  const failed = network && { failed: network.lost };
  return startLeading(parts, { role: 'all', launcher: inlineLauncher, more, ...failed }, signal);
}

/** Each agent has a Lease of its own, by which its writes are checked. */
function inlineLauncher({ parts, home, homeCa, caches, registries }: Shared): AgentLauncher & Component {
  const { nodeAddress } = parts.config;
  if (nodeAddress === undefined) {
    throw new TributaryError(
      'Invalid',
      'say where the API server reaches this process: --node-address or $POD_IP',
    );
  }
  return new InlineLauncher({ parts, home, homeCa, caches, registries, nodeAddress });
}
