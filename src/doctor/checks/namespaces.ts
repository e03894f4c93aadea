import { conditionOf } from '../../api/conditions.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  NAMESPACE_OFFLOADING_REASONS as REASONS,
} from '../../api/namespace-offloading.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings, THIS_CLUSTER } from '../finding.ts';

/** All goes its way, if slowly. */
const GOING_ON: ReadonlySet<string> = new Set([REASONS.inProgress, REASONS.ending, REASONS.moving]);
/** It works for the pods that are there. */
const HALF: ReadonlySet<string> = new Set([REASONS.podsAtHome, REASONS.closed]);

/** Whether the namespaces that people have offloaded can be anywhere else. */
export function namespaceFindings({ lists }: Facts): readonly Finding[] {
  const findings = new Findings('namespaces');
  for (const offloading of itemsOf(lists.offloadings)) {
    const { namespace = '' } = offloading.metadata;
    const ready = conditionOf(offloading, NAMESPACE_OFFLOADING_CONDITIONS.ready);
    const tried = `offloading of namespace ${namespace}`;
    const run = `kubectl -n ${namespace} describe namespaceoffloading`;
    if (ready === undefined) {
      const cameBack = 'no condition yet: the role cluster has not looked';
      findings.unknown(THIS_CLUSTER, { tried, cameBack });
      continue;
    }
    const { reason } = ready;
    const said = { tried, cameBack: `${reason}: ${ready.message}` };
    const isFine = ready.status === 'True' || GOING_ON.has(reason);
    if (HALF.has(reason)) findings.warn(THIS_CLUSTER, said, { remedy: 'do as the message says', run });
    else if (isFine) findings.ok(THIS_CLUSTER, said);
    else findings.problem(THIS_CLUSTER, said, { remedy: remedyFor(reason, namespace), run });
  }
  return findings.all();
}

const remedyFor = (reason: string, namespace: string): string =>
  reason === REASONS.noClusterSelected
    ? `its pods run nowhere else: peer with a cluster that lends, or take it back: tributary unoffload ${namespace}`
    : 'docs/reference/reasons.md says what the reason means and what to do, under "On a NamespaceOffloading"';
