import { pods } from '../api/resources.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import { virtualNodes } from '../api/virtual-node.ts';
import type { Pod } from '../api/wire.ts';
import { createClient } from '../kube/http-client.ts';
import { Informer } from '../kube/informer.ts';
import { LeaderElection } from '../kube/leader-election.ts';
import { systemRandom } from '../lib/backoff.ts';
import type { Lifecycle } from '../lib/lifecycle.ts';
import { AGENT_NAME_PREFIX } from '../api/manifest.ts';
import { nodeNameOf } from '../provider/node/forge.ts';
import type { RequestingPod, ServedNode } from '../server/csr-policy.ts';
import { OpsServer } from '../server/ops.ts';
import { ServingApprover } from '../server/serving-approver.ts';
import { homeCredentials } from './home.ts';
import type { Agent, AgentParts } from './parts.ts';
import { createRegistry, lifecycleOf, run } from './parts.ts';

const LEADER_LEASE_MS = 15_000;

/** Role `cluster`: what is done once for the home cluster, by one leader. */
export async function startCluster(parts: AgentParts, signal: AbortSignal): Promise<Agent> {
  const { config, clock, log } = parts;
  const { systemNamespace: namespace } = config;
  const home = createClient(await homeCredentials(config, clock), { clock });
  const registry = createRegistry('cluster');
  const nodes = new Informer<VirtualNode>({ client: home, type: virtualNodes, list: {}, clock, log });
  const agents = new Informer<Pod>({ client: home, type: pods, list: { namespace }, clock, log });
  const lost = new AbortController();
  const election = new LeaderElection({
    client: home,
    clock,
    log,
    namespace,
    name: 'tributary-cluster',
    identity: config.identity,
    durationMs: LEADER_LEASE_MS,
    onLost: (reason) => lost.abort(new Error(`no longer the leader: ${reason}`)),
  });
  const approver = new ServingApprover({
    client: home,
    clock,
    log: log.named('approver'),
    random: systemRandom,
    virtualNodes: () => [...nodes.list()].map((node) => servedNode(node, namespace)),
    podOf: (_username, extra) => requestingPod(agents, namespace, extra),
  });
  const holder: { lifecycle?: Lifecycle } = {};
  const ops = new OpsServer({
    port: config.opsPort,
    registry,
    live: [],
    // A replica that waits to lead is in order.
    ready: [],
    components: () => ({
      order: holder.lifecycle?.order ?? [],
      starting: holder.lifecycle?.starting,
    }),
    log: log.named('ops'),
  });
  holder.lifecycle = lifecycleOf([ops, nodes, agents, election, approver], parts);
  return run(holder.lifecycle, [home], signal, lost.signal);
}

const servedNode = (node: VirtualNode, namespace: string): ServedNode => ({
  nodeName: nodeNameOf(node),
  username: `system:serviceaccount:${namespace}:${AGENT_NAME_PREFIX}${node.metadata.name}`,
});

/** The pod that a bound service-account token names (KEP-4193), only if it is still the one of that UID. */
function requestingPod(
  agents: Informer<Pod>,
  namespace: string,
  extra: Record<string, string[]>,
): RequestingPod | undefined {
  const name = extra['authentication.kubernetes.io/pod-name']?.[0];
  const uid = extra['authentication.kubernetes.io/pod-uid']?.[0];
  const pod = name === undefined ? undefined : agents.get(`${namespace}/${name}`);
  if (pod === undefined || pod.metadata.uid !== uid) return undefined;
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    ips: (pod.status?.podIPs ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip])),
  };
}
