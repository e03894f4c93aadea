/** Whether the agents of providers, which role `cluster` starts by itself, have followed an upgrade. */
import { conditionOf } from '../../api/conditions.ts';
import {
  AGENT_NAME_PREFIX,
  AGENTS_NAMESPACE,
  APP_NAME,
  LABEL_APP_NAME,
  PEERS_NAME,
} from '../../api/manifest.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { deployments } from '../../api/resources.ts';
import {
  type VirtualNode,
  VIRTUAL_NODE_CONDITIONS,
  VIRTUAL_NODE_REASONS,
  virtualNodes,
} from '../../api/virtual-node.ts';
import type { InstallValues } from '../../deploy/installation/values.ts';
import type { Pastable } from '../pastable.ts';
import { listed } from './objects.ts';
import { isRolledOut } from './rollout.ts';
import { type InstallSession, someOf, waitFor } from './waiting.ts';

type Deployment = NonNullable<(typeof deployments)['__object']>;
type Choice = Pick<InstallValues, 'agents' | 'oneProcess' | 'image' | 'clusterArgs'>;

/** The last agent of all ends a minute after the change; each other one needs less. */
const AGENTS_MS = 150_000;

/** Waits for them; what takes longer is told, and is no failure: it goes on by itself, and a provider may be away. */
export async function awaitAgents(
  session: InstallSession & { pastable: Pastable },
  values: Choice,
  timeoutMs: number,
): Promise<void> {
  let count = 0;
  const missing = await waitFor(session, {
    what: 'for agents',
    timeoutMs: Math.min(timeoutMs, AGENTS_MS),
    look: async () => {
      const labelSelector = LABEL_PROVIDER;
      const served = await listed(session, virtualNodes, { labelSelector });
      count = served.length;
      if (count === 0) return '';
      const ours = { namespace: AGENTS_NAMESPACE, labelSelector: `${LABEL_APP_NAME}=${APP_NAME}` };
      return someOf(agentsUnderWay(values, served, await listed(session, deployments, ours)));
    },
  });
  const { io, pastable } = session;
  if (missing !== '')
    io.out(pastable(`still under way, and goes on by itself: ${missing}. To look: tributary status\n`));
  else if (count > 0) io.out(`ready: agents of ${count} virtual node(s)\n`);
}

/** What is not yet as it is to be: Deployments of agents, and virtual nodes that none serves. Pure. */
export function agentsUnderWay(
  values: Choice,
  served: readonly VirtualNode[],
  there: readonly Deployment[],
): string[] {
  const wanted = wantedAgents(values, served);
  // Somebody has chosen another image for agents alone.
  const isOwnImage = values.clusterArgs.some((arg) => arg.startsWith('--agent-image'));
  const missing = [...wanted].flatMap((name) => {
    const one = there.find(({ metadata }) => metadata.name === name);
    if (one === undefined) return [`Deployment ${name} is not there yet`];
    const isReady = isRolledOut(one) && (isOwnImage || imageOf(one) === values.image);
    return isReady ? [] : [`Deployment ${name} is not ready yet`];
  });
  const left = there
    .filter(({ metadata }) => !wanted.has(metadata.name))
    .map(({ metadata }) => `Deployment ${metadata.name} is still there`);
  const unserved = served.flatMap((node) => {
    const { reason } = conditionOf(node, VIRTUAL_NODE_CONDITIONS.ready) ?? {};
    const isUnserved = reason === VIRTUAL_NODE_REASONS.stopped || reason === VIRTUAL_NODE_REASONS.starting;
    return isUnserved ? [`virtual node ${node.metadata.name}: ${reason}`] : [];
  });
  return [...unserved, ...missing, ...left];
}

/** Within the one process they have no pods. */
function wantedAgents({ agents, oneProcess }: Choice, served: readonly VirtualNode[]): ReadonlySet<string> {
  if (oneProcess) return new Set();
  if (agents === 'shared') return new Set([PEERS_NAME]);
  return new Set(
    served.map(({ metadata }) => `${AGENT_NAME_PREFIX}${metadata.labels?.[LABEL_PROVIDER] ?? ''}`),
  );
}

const imageOf = ({ spec }: Deployment): string | undefined => spec?.template.spec?.containers[0]?.image;
