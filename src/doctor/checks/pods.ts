import {
  CONDITION_OFFLOADED,
  LABEL_PROVIDER,
  OFFLOADED_REASONS,
  type OffloadedReason,
} from '../../api/names.ts';
import { OFFLOADED_TEXTS } from '../../api/reasons/pods.ts';
import { homeAdvice, isKeptAway, isNotOffloaded } from '../../api/sent-abroad.ts';
import type { Pod } from '../../api/wire.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Finding, Findings, remedyOf, THIS_CLUSTER } from '../finding.ts';
import { titleOfID } from '../subjects.ts';

/** So many pods are named one by one. */
const MOST = 20;

const todoOf = (reason: OffloadedReason): string => remedyOf(OFFLOADED_TEXTS[reason]);

/** A new reason without a remedy does not compile. */
const REMEDIES: Readonly<Record<OffloadedReason, string>> = {
  [OFFLOADED_REASONS.namespaceNotOffloaded]: 'offload its namespace, or let the pod run here',
  [OFFLOADED_REASONS.tenantNamespace]: 'the provider has no namespace for it: over there, tributary doctor',
  [OFFLOADED_REASONS.daemonSet]: 'keep the DaemonSet off virtual nodes: take its toleration off',
  [OFFLOADED_REASONS.missingReference]: 'make the ConfigMap or Secret that the message names',
  [OFFLOADED_REASONS.volumeNotHere]: 'its volume is in another cluster: let the pod go there',
  [OFFLOADED_REASONS.nameTaken]:
    'if a pod of that name is still ending over there, wait, and see its node there if that lasts; else rename what the message names',
  [OFFLOADED_REASONS.forbidden]:
    'change the pod as the message says, or have the provider allow it in its SharingPolicy',
  [OFFLOADED_REASONS.exceededQuota]:
    'ask the provider for more (over there, tributary doctor has the command), or end other pods',
  [OFFLOADED_REASONS.invalid]: 'correct the field that the message names',
  [OFFLOADED_REASONS.unschedulable]:
    'no node over there has room for it: ask for less, or the provider for more',
  [OFFLOADED_REASONS.placementNotPossible]: todoOf('PlacementNotPossible'),
  [OFFLOADED_REASONS.placementNowhere]: todoOf('PlacementNowhere'),
  [OFFLOADED_REASONS.networkPolicy]: todoOf('NetworkPolicyNotInForce'),
  [OFFLOADED_REASONS.writesTooMuch]: todoOf('WriteBudgetSpent'),
  [OFFLOADED_REASONS.namespaceBeingMade]: todoOf('NamespaceBeingMade'),
  [OFFLOADED_REASONS.lost]: todoOf('RemotePodLost'),
};

/** What passes by itself, as a rule. */
const PASSING: ReadonlySet<string> = new Set([
  OFFLOADED_REASONS.networkPolicy,
  OFFLOADED_REASONS.writesTooMuch,
  OFFLOADED_REASONS.namespaceBeingMade,
  OFFLOADED_REASONS.lost,
]);

const isKnown = (reason: string): reason is OffloadedReason => Object.hasOwn(REMEDIES, reason);

/** Offloaded pods that do not run, and why. */
export function podFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('pods');
  const { lists } = facts;
  const nodes = new Map(
    itemsOf(lists.virtualNodes).map((node) => [node.status?.nodeName ?? node.metadata.name, node]),
  );
  const waiting = itemsOf(lists.pods).filter(({ spec, status }) => {
    const condition = status?.conditions?.find(({ type }) => type === CONDITION_OFFLOADED);
    return nodes.has(spec?.nodeName ?? '') && condition?.status === 'False';
  });
  for (const pod of waiting.slice(0, MOST)) {
    const { nodeName = '' } = pod.spec ?? {};
    const provider = nodes.get(nodeName)?.metadata.labels?.[LABEL_PROVIDER];
    judgePod(findings, pod, provider === undefined ? nodeName : titleOfID(facts, provider));
  }
  judgeSentAway(findings, facts);
  return findings.all();
}

/** No node takes them, so no agent speaks of them. */
function judgeSentAway(findings: Findings, { lists }: Facts): void {
  const offloaded = new Set(itemsOf(lists.offloadings).map(({ metadata }) => metadata.namespace));
  const sent = itemsOf(lists.pods).filter(
    (pod) => (pod.spec?.nodeName ?? '') === '' && !offloaded.has(pod.metadata.namespace) && isKeptAway(pod),
  );
  for (const pod of sent.slice(0, MOST)) {
    const { namespace = '', name } = pod.metadata;
    const cameBack =
      'it waits for a virtual node that takes it, since its own template sends it there; its namespace is not offloaded';
    const remedy = `offload its namespace, or let the pod run here: ${homeAdvice(pod)}`;
    findings.problem(THIS_CLUSTER, { tried: `pod ${namespace}/${name}`, cameBack }, { remedy });
  }
}

function judgePod(findings: Findings, pod: Pod, subject: string): void {
  const { metadata, status } = pod;
  const condition = status?.conditions?.find(({ type }) => type === CONDITION_OFFLOADED);
  const { reason = '', message = '' } = condition ?? {};
  const said = {
    tried: `pod ${metadata.namespace ?? ''}/${metadata.name}`,
    cameBack: `${reason}: ${message}`,
  };
  // An agent of another version may know more of them.
  if (!isKnown(reason)) return findings.unknown(subject, said);
  const general = REMEDIES[reason];
  const remedy = isNotOffloaded(pod) ? `${general}: ${homeAdvice(pod)}` : general;
  if (PASSING.has(reason)) findings.warn(subject, said, { remedy });
  else findings.problem(subject, said, { remedy });
}
