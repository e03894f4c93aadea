import {
  type Direction,
  DIRECTIONS,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignCluster,
  peerIDOf,
  type PeeringState,
  takesNoNewPods,
} from '../../api/foreign-cluster.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Cure, type Finding, Findings, type Said } from '../finding.ts';
import { blame, titleOf } from '../subjects.ts';

/** Where each peering stands, and who has to decide. */
export function policyFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('policies');
  for (const cluster of itemsOf(facts.lists.foreignClusters)) {
    for (const direction of DIRECTIONS) judge(findings, cluster, { direction, facts });
  }
  return findings.all();
}

const FINE: ReadonlySet<string | undefined> = new Set([
  REASONS.ok,
  REASONS.notWanted,
  REASONS.settingUp,
  undefined,
]);

function judge(
  findings: Findings,
  cluster: ForeignCluster,
  { direction, facts }: { direction: Direction; facts: Facts },
): void {
  const subject = titleOf(cluster, facts);
  const state: Partial<PeeringState> = cluster.status?.[direction] ?? {};
  const { phase = 'None', reason } = state;
  const said = saidOf(subject, direction, state);
  if (takesNoNewPods(state)) return findings.warn(subject, said, closedCure(cluster));
  if (phase === 'Established' || FINE.has(reason)) return findings.ok(subject, said);
  const cure = cureOf(cluster, direction, reason);
  if (cure === undefined) return findings.unknown(subject, said);
  // Who lends nothing on purpose, or uses nobody, has no policy for that direction; both at once is hardly meant.
  const isHalf = reason === REASONS.noPolicy && phase === 'None' && isOneWay(cluster, direction);
  if (isHalf) findings.ok(subject, said);
  else blame(findings, { cluster, subject }, said, cure);
}

const saidOf = (
  subject: string,
  direction: Direction,
  { phase = 'None', reason, message = '' }: Partial<PeeringState>,
): Said => ({
  tried: direction === 'outgoing' ? `use ${subject}` : `let ${subject} use us`,
  cameBack: `${phase}${reason === undefined || reason === REASONS.ok ? '' : ` (${reason})`}: ${message}`,
});

/** Somebody wants or wanted the other direction, and no ForeignCluster asks for this one: a peering is usually one-way. */
function isOneWay({ spec, status }: ForeignCluster, direction: Direction): boolean {
  if (spec?.[direction] === 'Enabled') return false;
  const other = direction === 'outgoing' ? 'incoming' : 'outgoing';
  return spec?.[other] === 'Enabled' || (status?.[other]?.phase ?? 'None') !== 'None';
}

function cureOf(cluster: ForeignCluster, direction: Direction, reason: string | undefined): Cure | undefined {
  const { name } = cluster.metadata;
  const clusterID = peerIDOf(cluster) ?? 'CLUSTER_ID';
  switch (reason) {
    case REASONS.noPolicy:
      return direction === 'outgoing'
        ? outgoingCure(cluster)
        : {
            remedy:
              'no SharingPolicy is for it. This one lends it half of what is free, without further approval',
            run: `echo '${JSON.stringify(sharingPolicy(clusterID))}' | kubectl apply -f -`,
          };
    case REASONS.waitingForApproval:
      return approvalCure(cluster, direction, clusterID);
    case REASONS.tokenRequired:
    case REASONS.tokenInvalid:
    case REASONS.tokenExpired:
    case REASONS.tokenUsed:
      return {
        remedy: `over there: tributary token create; here: tributary peer ${cluster.spec?.endpoint ?? 'ENDPOINT'} --token -`,
      };
    default:
      return refusalCure(name, reason);
  }
}

function approvalCure({ status }: ForeignCluster, direction: Direction, clusterID: string): Cure {
  if (direction === 'incoming') {
    return {
      remedy: 'it asks to run pods here. Let it in by this command, or refuse it: tributary deny',
      run: `tributary approve peeringrequest ${clusterID}`,
    };
  }
  return status?.outgoing?.phase === 'Offered'
    ? {
        remedy: 'its offer waits for somebody here: take it',
        run: `tributary approve advertisement ${clusterID}`,
      }
    : {
        remedy:
          'its administrator has to approve, over there: tributary approve peeringrequest, with the ClusterID that tributary id shows here',
      };
}

const OFFER_CURE =
  'the AcceptancePolicy asks for more than is offered: lower minimum, raise maxPrices or take out requiredLabels, or ask the provider ' +
  'for a larger share or a lower price';

/** Pods that are there run on, and new ones wait, or run elsewhere. */
const closedCure = (cluster: ForeignCluster): Cure => ({
  remedy:
    cluster.status?.outgoing?.reason === REASONS.offerRefused
      ? OFFER_CURE
      : 'the provider has taken its offer back: ask its administrator, or end the peering with tributary unpeer',
  run: `kubectl describe advertisement ${peerIDOf(cluster) ?? cluster.metadata.name}`,
});

/** Somebody or something has said no. */
function refusalCure(name: string, reason: string | undefined): Cure | undefined {
  switch (reason) {
    case REASONS.denied:
    case REASONS.deniedHere:
      return {
        remedy:
          'a person or a policy has refused it. Ask its administrator, or take back what was denied here',
        run: `kubectl describe foreigncluster ${name}`,
      };
    case REASONS.offerRefused:
      return { remedy: OFFER_CURE };
    case REASONS.invalid:
    case REASONS.duplicate:
      return { remedy: 'this object has no effect; remove it', run: `kubectl delete foreigncluster ${name}` };
    default:
      return undefined;
  }
}

/** `None`: nobody here asks. Otherwise the provider has no policy. */
function outgoingCure({ metadata, status }: ForeignCluster): Cure {
  if (status?.outgoing?.phase === 'None') {
    return {
      remedy: 'nothing here asks for its offer: ask for it',
      run: `kubectl patch foreigncluster ${metadata.name} --type merge -p '{"spec":{"outgoing":"Enabled"}}'`,
    };
  }
  return {
    remedy:
      'it lends nothing to us: its administrator has to write a SharingPolicy; over there, tributary doctor prints one',
  };
}

const sharingPolicy = (clusterID: string): object => ({
  apiVersion: 'tributary.dev/v1alpha1',
  kind: 'SharingPolicy',
  metadata: { name: `for-${clusterID.toLowerCase()}` },
  spec: { peers: { clusterIDs: [clusterID] }, approval: 'Automatic', sharePercent: 50 },
});
