import { GATEWAY_LEASE } from '../api/own-network.ts';
import { Caches } from '../kube/caches.ts';
import { createClient } from '../kube/http-client.ts';
import { StandbyFence } from '../network/gateway/standby-fence.ts';
import { createHost } from '../network/host/host.ts';
import { homeCredentials } from './home.ts';
import { lanComponents } from './lan.ts';
import { leading } from './leading.ts';
import { gatewayComponents, gatewayElection, hostComponent } from './network.ts';
import { type Agent, type AgentParts, controllerMetrics, createRegistry, lifecycleOf, run } from './parts.ts';
import { followSettings } from './settings.ts';

/** Role `gateway`: what needs the host network, by one leader; another replica takes over where that one's host fails. */
export async function startGateway(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, log } = parts;
  const { network = config.nodeName !== undefined } = config;
  if (config.network === undefined && !network) {
    // As in a Deployment of a version that knew no tunnels.
    log.warn(
      'no tunnels are built: this gateway does not know its node; apply `tributary manifests gateway` again',
    );
  }
  return network ? startNetwork(parts, signal) : startLan(parts, signal);
}

/** Without tunnels, only LAN discovery is left. */
async function startLan(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('gateway', parts);
  const { acting, ops, election, holder, lost } = leading(parts, {
    home,
    lease: GATEWAY_LEASE,
    registry,
    standbyReady: true,
  });
  const caches = new Caches({ client: home, clock, log });
  const lan = lanComponents(parts, { home: acting, caches, metrics: controllerMetrics(registry) });
  holder.lifecycle = lifecycleOf([ops, followSettings(parts, caches), election, ...lan], parts);
  return run(holder.lifecycle, [home], signal, lost);
}

async function startNetwork(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('gateway', parts);
  const metrics = controllerMetrics(registry);
  const host = await createHost({ clock, log: log.named('host') });
  const fence = new StandbyFence({ host, clock, log: log.named('fence') });
  const { acting, ops, election, holder, lost } = leading(parts, {
    home,
    lease: GATEWAY_LEASE,
    registry,
    // If the standby were not Ready, a rollout that may take one pod away would take the standby, and wait for its
    // successor for ever.
    standbyReady: true,
    election: gatewayElection(config, (node) => fence.taken(node)),
  });
  const shared = new Caches({ client: home, clock, log });
  const { caches, active } = gatewayComponents(
    { parts, home, caches: shared, host, metrics },
    { registry, leading: () => election.leading },
  );
  // Tunnels before discovery, which waits for the sockets of all interfaces.
  const lan = lanComponents(parts, { home: acting, caches: shared, metrics, host });
  holder.lifecycle = lifecycleOf(
    [ops, followSettings(parts, shared), hostComponent(host), ...caches, election, fence, ...active, ...lan],
    parts,
  );
  return run(holder.lifecycle, [home], signal, lost);
}
