import { withCondition, type WantedCondition } from '../../api/conditions.ts';
import {
  FOREIGN_CLUSTER_CONDITIONS as TYPES,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type PeeringState,
} from '../../api/foreign-cluster.ts';
import type { Condition } from '../../api/wire.ts';
import { type Cause, noLinkCause } from './phases.ts';
import type { Observed } from './observed.ts';

type Judged = Cause & { status: WantedCondition['status'] };

export function forgeConditions(
  seen: Observed,
  { outgoing, incoming }: { outgoing: PeeringState; incoming: PeeringState },
): readonly Condition[] {
  const { cluster, now } = seen;
  const { generation: observedGeneration } = cluster.metadata;
  const judged: [type: string, Judged][] = [
    [TYPES.identity, identity(seen)],
    [TYPES.connected, connected(seen)],
    [TYPES.outgoing, established(outgoing)],
    [TYPES.incoming, established(incoming)],
  ];
  return judged.reduce<readonly Condition[]>(
    (conditions, [type, wanted]) =>
      withCondition(
        conditions,
        { type, ...wanted, ...(observedGeneration !== undefined && { observedGeneration }) },
        now,
      ),
    cluster.status?.conditions ?? [],
  );
}

/** What was proved once stays proved, unless somebody else answers. */
function identity({ cluster, clusterID, view, problem, ...rest }: Observed): Judged {
  if (view !== undefined) return yes('it has proved its identity by TLS');
  const why = noLinkCause({ cluster, clusterID, view, problem, ...rest });
  if (problem?.reason === REASONS.wrongIdentity || clusterID === undefined)
    return { status: 'False', ...why };
  if (cluster.status?.clusterID === clusterID) return yes('it has proved its identity by TLS');
  return { status: 'Unknown', ...why };
}

function connected(seen: Observed): Judged {
  const { view } = seen;
  if (view === undefined) return { status: 'False', ...noLinkCause(seen) };
  return yes(view.dialledBy === 'Them' ? 'it has opened the link' : 'we have opened the link');
}

const established = ({ phase, reason = REASONS.ok, message = '' }: PeeringState): Judged =>
  phase === 'Established' ? yes(message) : { status: 'False', reason, message };

const yes = (message: string): Judged => ({ status: 'True', reason: REASONS.ok, message });
