import type { WantedCondition } from '../../api/conditions.ts';
import { PEERING_REQUEST_CONDITIONS, type PeeringRequest } from '../../api/peering-request.ts';
import {
  SHARING_POLICY_CONDITIONS,
  SHARING_POLICY_REASONS as REASONS,
  type SharingPolicy,
} from '../../api/sharing-policy.ts';
import { type StockPriority, whyNotLent } from '../offer/priority-classes.ts';
import type { PolicyConditions } from '../policy/policy-status.ts';
import { NO_KINDS, complaintOf, judgeKinds } from '../../hosting/policies/kinds.ts';

/** What was found of a SharingPolicy. */
export interface PolicyFindings {
  /** Those that it decides about. */
  peers: readonly PeeringRequest[];
  hasRuntimeClass: (name: string) => boolean;
  priorityClasses: readonly StockPriority[];
  /** Names of resources that it lends. */
  lent: readonly string[];
}

/** Of a SharingPolicy, from what it says and what was found. Pure. */
export function policyConditions(
  policy: SharingPolicy,
  { peers, hasRuntimeClass, priorityClasses: found, lent }: PolicyFindings,
): PolicyConditions {
  const { kinds, runtimeClass, priorityClasses, prices, privileged, ending } = SHARING_POLICY_CONDITIONS;
  return {
    [kinds]: kindsCondition(policy, peers),
    [runtimeClass]: runtimeCondition(policy, hasRuntimeClass),
    [priorityClasses]: priorityCondition(policy, found),
    [prices]: pricesCondition(policy, lent),
    [privileged]: privilegedCondition(policy),
    [ending]: endingCondition(policy, peers),
  };
}

function runtimeCondition(
  { spec: { runtimeClassName }, metadata }: SharingPolicy,
  hasRuntimeClass: PolicyFindings['hasRuntimeClass'],
): WantedCondition | undefined {
  if (runtimeClassName === undefined) return undefined;
  const of = { type: SHARING_POLICY_CONDITIONS.runtimeClass, metadata };
  if (hasRuntimeClass(runtimeClassName)) {
    return condition(of, true, REASONS.ok, `RuntimeClass ${runtimeClassName} is there`);
  }
  const message = `there is no RuntimeClass ${runtimeClassName}, so every pod of a peer is refused: make it, or name another one`;
  return condition(of, false, REASONS.runtimeClassMissing, message);
}

function priorityCondition(
  { spec, metadata }: SharingPolicy,
  found: readonly StockPriority[],
): WantedCondition | undefined {
  const { priorityClasses = [] } = spec;
  if (priorityClasses.length === 0) return undefined;
  const of = { type: SHARING_POLICY_CONDITIONS.priorityClasses, metadata };
  const complaints = priorityClasses.flatMap((name) => whyNotLent(name, found, spec) ?? []);
  if (complaints.length === 0)
    return condition(of, true, REASONS.ok, 'peers may use all classes that are named');
  const more = complaints.length > MOST_NAMED ? '; ...' : '';
  const message = `not lent: ${complaints.slice(0, MOST_NAMED).join('; ')}${more}`;
  return condition(of, false, REASONS.priorityClassNotLent, message);
}

/** A price that nobody pays: a wrong name would make the resource free. It is no mistake where the resource comes later. */
function pricesCondition(
  { spec: { prices = {} }, metadata }: SharingPolicy,
  lent: readonly string[],
): WantedCondition | undefined {
  const names = Object.keys(prices);
  if (names.length === 0) return undefined;
  const of = { type: SHARING_POLICY_CONDITIONS.prices, metadata };
  const odd = names.filter((name) => !lent.includes(name));
  if (odd.length === 0) return condition(of, true, REASONS.ok, 'all prices are of resources that are lent');
  const more = odd.length > MOST_NAMED ? ', ...' : '';
  const message =
    `nothing that is lent has the name ${odd.slice(0, MOST_NAMED).join(', ')}${more}, so that nobody is asked that price; lent are ` +
    `${lent.slice(0, MOST_LENT).join(', ')}${lent.length > MOST_LENT ? ', ...' : ''}. Correct the name, or lend the resource`;
  return condition(of, false, REASONS.pricedNotLent, message);
}

function privilegedCondition({ spec, metadata }: SharingPolicy): WantedCondition | undefined {
  if (spec.podSecurity !== 'privileged') return undefined;
  const message =
    'pods of its peers may be privileged, and so take over the nodes that they run on, with everything there: that is for ' +
    'clusters of the same owner only';
  return condition(
    { type: SHARING_POLICY_CONDITIONS.privileged, metadata },
    true,
    REASONS.privileged,
    message,
  );
}

function kindsCondition(
  { spec: { reflectableKinds = [] }, metadata }: SharingPolicy,
  peers: readonly PeeringRequest[],
): WantedCondition | undefined {
  if (reflectableKinds.length === 0) return undefined;
  const of = { type: SHARING_POLICY_CONDITIONS.kinds, metadata };
  const found = peers
    .flatMap(({ status }) => status?.conditions ?? [])
    .find(({ type, status }) => type === PEERING_REQUEST_CONDITIONS.kinds && status === 'False');
  if (found !== undefined) return condition(of, false, found.reason, found.message);
  const refused = complaintOf({ ...NO_KINDS, refused: judgeKinds(reflectableKinds).refused });
  if (refused !== undefined) return condition(of, false, REASONS.kindRefused, refused);
  return condition(of, true, REASONS.ok, 'peers may bring all kinds that are named');
}

/** Of those that it let in and no longer selects. One that is being deleted has no status to tell it in. */
function endingCondition(
  { metadata }: SharingPolicy,
  peers: readonly PeeringRequest[],
): WantedCondition | undefined {
  const leaving = peers.filter(({ status }) => status?.ends !== undefined);
  if (leaving.length === 0) return undefined;
  const first = leaving.map(({ status }) => status?.ends ?? '').toSorted()[0] ?? '';
  const shown = leaving.slice(0, MOST_NAMED).map(({ metadata: { name }, spec }) => spec.clusterName ?? name);
  const more = leaving.length > MOST_NAMED ? ', ...' : '';
  const message =
    `it no longer selects ${leaving.length} peer(s) that use this cluster: ${shown.join(', ')}${more}; their pods end from ` +
    `${first} on. To keep them, select them again; kubectl get peeringrequests shows each`;
  const of = { type: SHARING_POLICY_CONDITIONS.ending, metadata };
  return condition(of, true, REASONS.endsSoon, message);
}

const MOST_NAMED = 5;
const MOST_LENT = 16;

const condition = (
  { type, metadata: { generation } }: { type: string; metadata: SharingPolicy['metadata'] },
  isTrue: boolean,
  reason: string,
  message: string,
): WantedCondition => ({
  type,
  ...(generation !== undefined && { observedGeneration: generation }),
  status: isTrue ? 'True' : 'False',
  reason,
  message,
});
