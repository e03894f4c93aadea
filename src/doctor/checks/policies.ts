import {
  type Direction,
  DIRECTIONS,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignCluster,
  type ForeignClusterReason,
  peerIDOf,
  type PeeringState,
  takesNoNewPods,
} from '../../api/foreign-cluster.ts';
import { FOREIGN_CLUSTER_TEXTS } from '../../api/reasons/peering.ts';
import { type Facts, itemsOf } from '../facts.ts';
import { type Cure, type Finding, Findings, type Level, remedyOf, type Said } from '../finding.ts';
import { blame, titleOf } from '../subjects.ts';

/** Where each peering stands, and who has to decide. */
export function policyFindings(facts: Facts): readonly Finding[] {
  const findings = new Findings('policies');
  for (const cluster of itemsOf(facts.lists.foreignClusters)) {
    for (const direction of DIRECTIONS) judge(findings, cluster, { direction, facts });
  }
  return findings.all();
}

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
  const verdict = verdictOf(reason);
  const isInUse = phase === 'Established' && reason !== REASONS.endsSoon;
  if (isInUse || verdict === 'fine') return findings.ok(subject, said);
  // A cluster of another version may know more of them.
  if (verdict === undefined) return findings.unknown(subject, said);
  const cure = verdict.cureOf({ cluster, direction, clusterID: peerIDOf(cluster) ?? 'CLUSTER_ID' });
  if (verdict.level !== 'problem') return findings.add(subject, verdict.level, said, cure);
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

function approvalCure({ cluster: { status }, direction, clusterID }: About): Cure {
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

interface About {
  cluster: ForeignCluster;
  direction: Direction;
  clusterID: string;
}

type CureOf = (about: About) => Cure;
/** `fine`: nothing is to be done. Unknown: the lines about the link say whether it is wrong, or the next minutes do. */
type Verdict = 'fine' | { cureOf: CureOf; level: Exclude<Level, 'ok'> };

const wrong = (cureOf: CureOf): Verdict => ({ cureOf, level: 'problem' });
const asTold = (reason: ForeignClusterReason): CureOf => {
  const remedy = remedyOf(FOREIGN_CLUSTER_TEXTS[reason]);
  return () => ({ remedy });
};
const told = (reason: ForeignClusterReason): Verdict => wrong(asTold(reason));
const open = (reason: ForeignClusterReason): Verdict => ({ cureOf: asTold(reason), level: 'unknown' });

const policyCure = ({ cluster, direction, clusterID }: About): Cure =>
  direction === 'outgoing'
    ? outgoingCure(cluster)
    : {
        remedy:
          'no SharingPolicy is for it. This one lends it half of what is free, without further approval',
        run: sharingCommand(clusterID),
      };

const sharingCommand = (clusterID: string): string =>
  `echo '${JSON.stringify(sharingPolicy(clusterID))}' | kubectl apply -f -`;

const endsSoonCure = ({ clusterID }: About): Cure => ({
  remedy:
    'no SharingPolicy is for it any more, and its pods here have until then to leave. To go on with it, write one; this one lends it ' +
    'half of what is free',
  run: sharingCommand(clusterID),
});

const tokenCure = wrong(({ cluster }) => ({
  remedy: `over there: tributary token create; here: tributary peer ${cluster.spec?.endpoint ?? 'ENDPOINT'} --token -`,
}));

/** Somebody or something has said no. */
const refusalCure = wrong(({ cluster }) => ({
  remedy: 'a person or a policy has refused it. Ask its administrator, or take back what was denied here',
  run: `kubectl describe foreigncluster ${cluster.metadata.name}`,
}));

const uselessCure = wrong(({ cluster }) => ({
  remedy: 'this object has no effect; remove it',
  run: `kubectl delete foreigncluster ${cluster.metadata.name}`,
}));

/** A new reason without a verdict does not compile. */
const VERDICTS: Readonly<Record<ForeignClusterReason, Verdict>> = {
  AsExpected: 'fine',
  NotWanted: 'fine',
  SettingUp: 'fine',
  NoPolicyMatches: wrong(policyCure),
  WaitingForApproval: wrong(approvalCure),
  TokenRequired: tokenCure,
  TokenInvalid: tokenCure,
  TokenExpired: tokenCure,
  TokenUsed: tokenCure,
  DeniedByPeer: refusalCure,
  DeniedHere: refusalCure,
  OfferRefused: wrong(() => ({ remedy: OFFER_CURE })),
  Invalid: uselessCure,
  Duplicate: uselessCure,
  EndsSoon: { cureOf: endsSoonCure, level: 'warning' },
  Revoked: told('Revoked'),
  Fenced: told('Fenced'),
  Suspended: told('Suspended'),
  TetheringForbidden: told('TetheringForbidden'),
  TetheredElsewhere: told('TetheredElsewhere'),
  IdentityUnconfirmed: open('IdentityUnconfirmed'),
  WrongIdentity: open('WrongIdentity'),
  NoEndpoint: open('NoEndpoint'),
  EndpointUnreachable: open('EndpointUnreachable'),
  IncompatibleProtocol: open('IncompatibleProtocol'),
  LinkLost: open('LinkLost'),
  WaitingForDecision: open('WaitingForDecision'),
  WaitingForOffer: open('WaitingForOffer'),
  Withdrawn: open('Withdrawn'),
  Ending: open('Ending'),
};

function verdictOf(reason: string | undefined): Verdict | undefined {
  if (reason === undefined) return 'fine';
  return Object.hasOwn(VERDICTS, reason) ? VERDICTS[reason as ForeignClusterReason] : undefined;
}
