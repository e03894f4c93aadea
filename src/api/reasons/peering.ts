/** What reasons of peering mean and what to do. */
import type { ADVERTISEMENT_REASONS, OfferDecision, SERVICE_REASONS } from '../advertisement.ts';
import type { CLUSTER_MODE_REASONS, ModePhase } from '../cluster-mode.ts';
import type { FOREIGN_CLUSTER_REASONS, PeeringPhase } from '../foreign-cluster.ts';
import type { POLICY_REASONS } from '../peer-selector.ts';
import type { PEERING_REQUEST_REASONS } from '../peering-request.ts';
import type { SEARCH_DOMAIN_REASONS } from '../search-domain.ts';
import type { SHARING_POLICY_REASONS } from '../sharing-policy.ts';
import { OK, text, type Texts, type TextsOf } from './text.ts';

const lasts = 'Nothing; if it lasts, look at the other side.';

/** Of `outgoing` and `incoming` of a ForeignCluster, and of a PeeringRequest. */
export const PEERING_PHASE_TEXTS: Texts<PeeringPhase> = {
  None: text('Nothing is wanted, or nobody has asked.'),
  Pending: text('It was asked, and there is no decision yet.'),
  Offered: text('There is an offer, which waits for acceptance.'),
  Accepted: text('Both have agreed, and it is being set up.'),
  Established: text('It is in use.'),
  Denied: text('The deciding side refused.', 'The reason says why.'),
  Ending: text('It is being taken down.'),
};

export const FOREIGN_CLUSTER_TEXTS: TextsOf<typeof FOREIGN_CLUSTER_REASONS> = {
  AsExpected: OK,
  NotWanted: text('Nobody here wants it.', 'Nothing, or `tributary peer`.'),
  NoPolicyMatches: text(
    'No policy selects this cluster.',
    'Write one, or look at its selector and at `discovery`.',
  ),
  IdentityUnconfirmed: text(
    'The ForeignCluster names no ClusterID.',
    '`tributary peer` again, and confirm; or set `spec.clusterID`.',
  ),
  WrongIdentity: text(
    'Another cluster answers at the endpoint.',
    'The endpoint is wrong, or somebody intercepts the connection.',
  ),
  NoEndpoint: text(
    'Neither side knows where to dial the other.',
    '`--advertise` there, or `tributary peer HOST:PORT`.',
  ),
  EndpointUnreachable: text(
    'Nobody answers.',
    'The message names the endpoint. Only one of the two sides needs to be reachable.',
  ),
  IncompatibleProtocol: text('There is no version that both speak.', 'Update one of them.'),
  LinkLost: text('The link broke; what runs goes on.', 'Nothing: it is dialled again.'),
  WaitingForDecision: text('The other side has not decided yet.', lasts),
  WaitingForApproval: text('A person has to decide.', '`tributary approve` on the deciding side.'),
  WaitingForOffer: text('The provider has not made an offer yet.', lasts),
  OfferRefused: text(
    'The offer does not pass our policy.',
    'The Advertisement says which resource, with both figures.',
  ),
  TokenRequired: text('The provider wants a join token.', '`tributary token create` there.'),
  TokenInvalid: text('The provider does not know the token.', 'Ask for a new one.'),
  TokenExpired: text('The token is too old.', 'Ask for a new one.'),
  TokenUsed: text('Another cluster has used the token.', 'Ask for a new one.'),
  DeniedByPeer: text('The other side refused.', 'Its message says why.'),
  DeniedHere: text(
    'A person here refused.',
    'Look at `incoming` or `outgoing` of the ForeignCluster, and at `spec.approval`.',
  ),
  Withdrawn: text('The offer, or the request, was taken back.', 'Ask the other side.'),
  SettingUp: text('Both have agreed, and it is being set up.', lasts),
  Revoked: text('The provider has taken back what it granted.', 'Ask its people.'),
  TetheringForbidden: text(
    'It wants to be tethered, and the policy for it does not allow that.',
    'Set `tethering: Allow` in the SharingPolicy, if you want it.',
  ),
  TetheredElsewhere: text(
    'The cluster that decides is tethered to another one, and lends to nobody else.',
    'End that tether first.',
  ),
  Fenced: text(
    'Nothing was heard of it for as long as was agreed, so its pods are stopped.',
    'Bring it back into contact; see tethering.md.',
  ),
  Suspended: text(
    'The provider has taken the rights of the peer for a while: it wrote too much, and did not wait as it was told.',
    'Look at what writes so much; the message says until when, and how people of the provider end it.',
  ),
  Ending: text('It is being taken down.', 'Nothing; if it lasts, look for pods that do not end.'),
  EndsSoon: text(
    'No policy selects the peer any more; it has time to move its pods.',
    'Nothing, or a policy that selects it; the message says until when.',
  ),
  Invalid: text('What a person wrote, or a peer sent, makes no sense.', 'The message names the field.'),
  Duplicate: text('Two ForeignClusters stand for one cluster.', 'Delete one.'),
};

export const ADVERTISEMENT_TEXTS: TextsOf<typeof ADVERTISEMENT_REASONS> = {
  AsExpected: OK,
  NoPolicyMatches: text('No AcceptancePolicy selects the provider.', 'Write one, or `tributary approve`.'),
  WaitingForApproval: text('A person here has to decide.', '`tributary approve`.'),
  DeniedHere: text('A person here refused.', 'Look at `spec.approval`.'),
  BelowMinimum: text(
    'Less is offered than `minimum` asks for.',
    'Lower it, or wait for a better offer: it is judged by itself.',
  ),
  PriceAboveMaximum: text(
    'The price is higher than `maxPrices`, or in another currency.',
    'Raise it, or ask for another price.',
  ),
  LabelMissing: text(
    'The offer does not bear one of `requiredLabels`.',
    'Correct them, or the provider’s `labels`.',
  ),
  Expired: text('The offer was not renewed.', 'Look at the link; a new offer comes with it.'),
  Withdrawn: text('The provider has taken the offer back.', 'Ask its people.'),
  WaitingForProvider: text(
    'Signed by us, not yet by the provider.',
    'Look at the PeeringRequest at the provider.',
  ),
  ApiServerUnreachable: text(
    'No way leads to the provider’s API server.',
    'The message names what was tried.',
  ),
  NoLink: text('The token is renewed over a link, and there is none.', 'Look at the ForeignCluster.'),
  SettingUp: text('Both have agreed, and it is being set up.', lasts),
  Ending: text('The peering is being taken down.', 'Nothing; if it lasts, look for pods that do not end.'),
};

/** Of `decision`. */
export const OFFER_DECISION_TEXTS: Texts<OfferDecision> = {
  Accepted: text('The offer is taken.'),
  Pending: text('There is no decision yet.', 'The reason says who has to decide.'),
  Refused: text('The offer is not taken.', 'The reason says why.'),
  Expired: text('The offer does not hold any more.', 'The reason says why.'),
};

/** Of one Service of the provider. */
export const SERVICE_TEXTS: TextsOf<typeof SERVICE_REASONS> = {
  NameTaken: text(
    'A Service or EndpointSlice of somebody else has the name and is left alone.',
    'Choose a `homeName`.',
  ),
  HomeNamespaceNotFound: text('The namespace does not exist here.', 'Make the namespace.'),
  HomeNamespaceNotAllowed: text(
    'A Service of others is not put into `kube-*`, `tributary-*` and namespaces of peers.',
    'Choose another `homeNamespace`.',
  ),
  Refused: text(
    'The API server, a policy or a webhook refuses it; what was there stays.',
    'The message says what to correct.',
  ),
  NoNetwork: text('No network joins the two clusters.', 'See the Tunnel.'),
  TunnelDown: text('Packets do not go through the tunnel.', 'See the Tunnel.'),
  LinkDown: text(
    'Nothing was heard from the provider for a minute, so nobody knows where its pods are.',
    'Look at the ForeignCluster.',
  ),
  NoEndpointsReady: text('No endpoint over there is ready.', 'Look at the pods of the provider.'),
};

const KIND_REFUSED = text(
  'No peer may ever bring this kind, since it governs the cluster.',
  'Take it out of `reflectableKinds`.',
);
const KIND_NOT_SERVED = text(
  'This cluster serves no namespaced kind of that name and version, or not yet.',
  'Install its CustomResourceDefinition, or take it out of `reflectableKinds`.',
);
const RIGHTS_MISSING = text(
  'The role `cluster` does not hold the rights to a kind, and so cannot pass them on.',
  'Apply the ClusterRole that peering.md shows.',
);

export const PEERING_REQUEST_TEXTS: TextsOf<typeof PEERING_REQUEST_REASONS> = {
  AsExpected: OK,
  HomeAway: text(
    'Nothing was heard from the peer’s cluster; its pods are looked after.',
    'Nothing; if the home is up, see the log of its agent and the Lease `tributary-home`.',
  ),
  HomeGone: text(
    'It was away for longer than was agreed on; its pods were ended.',
    'Nothing; a longer `keepForSeconds` for the next contract.',
  ),
  ContractExceeded: text(
    'The peer’s pods request more than was agreed on, or than is lent now.',
    'Nothing: no pod is ended, and the quota refuses new ones.',
  ),
  NamespaceTaken: text('Namespaces of others have all possible names.', 'Rename or remove one of them.'),
  NamespaceStuck: text(
    'A tenant namespace does not go.',
    '`kubectl get namespace NAME -o yaml`: its conditions name what is left.',
  ),
  KindRefused: KIND_REFUSED,
  KindNotServed: KIND_NOT_SERVED,
  RightsMissing: RIGHTS_MISSING,
  WritesTooMuch: text(
    'The peer asks on and on for writes that are refused, and does not wait as it is told; its rights are off for a while.',
    'Ask its people. To let it go on: `kubectl annotate peeringrequest NAME tributary.dev/resume=true`.',
  ),
};

const POLICY_INVALID = text('Something in the policy makes no sense.', 'The message names the field.');

export const SHARING_POLICY_TEXTS: TextsOf<typeof SHARING_POLICY_REASONS> = {
  AsExpected: OK,
  Invalid: POLICY_INVALID,
  KindRefused: KIND_REFUSED,
  KindNotServed: KIND_NOT_SERVED,
  RightsMissing: RIGHTS_MISSING,
  RuntimeClassMissing: text(
    'There is no RuntimeClass of the name in `runtimeClassName`, so every pod of a peer is refused.',
    'Make it, or correct the name.',
  ),
  PriorityClassNotLent: text(
    'A PriorityClass in `priorityClasses` is not there, or pods of it could push out those of others. It is not offered.',
    'Make it with `preemptionPolicy: Never` and a value that is not below `maxPriority`, or take it off the list.',
  ),
  PricedNotLent: text(
    'A name in `prices` is of no resource that is lent now: no node counts it, or `withhold` keeps it back. Nobody is asked that price.',
    'Correct the name (the message says what is lent), or nothing where the resource is lent later.',
  ),
  PodSecurityPrivileged: text(
    'It says `podSecurity: privileged`: pods of its peers may take over the nodes that they run on.',
    'Nothing, if these clusters have the same owner; otherwise say `baseline`.',
  ),
  EndsSoon: text(
    'It no longer selects peers that use this cluster; they have time to move their pods.',
    'Nothing, or select them again; the message says until when.',
  ),
};

export const ACCEPTANCE_POLICY_TEXTS: TextsOf<typeof POLICY_REASONS> = {
  AsExpected: OK,
  Invalid: POLICY_INVALID,
};

export const SEARCH_DOMAIN_TEXTS: TextsOf<typeof SEARCH_DOMAIN_REASONS> = {
  AsExpected: OK,
  NoServerAnswered: text(
    'None of the DNS servers answered.',
    'Check `servers`; UDP and TCP port 53 must be open.',
  ),
  InvalidSpec: text('The domain or a server is malformed.', 'Correct it.'),
  MalformedAnswer: text('What DNS says of a cluster makes no sense.', 'The message names the record.'),
  TooManyClusters: text('The domain lists more clusters than are kept.', 'Split it.'),
};

export const MODE_PHASE_TEXTS: Texts<ModePhase> = {
  Autonomous: text('There is no tether; this cluster decides.'),
  Entering: text('The other cluster is asked; this one decides.', 'Wait.'),
  Refused: text('Something is in the way, or the other cluster does not agree.', 'The reason says what.'),
  Tethered: text('The other cluster decides.'),
  Lost: text(
    'The other cluster was not heard for too long, and this one decides.',
    'Nothing; with `afterLoss: Autonomous` the tether is not taken up again by itself.',
  ),
  Ending: text('What was made for the tether is being removed; this cluster decides.', 'Wait.'),
};

export const CLUSTER_MODE_TEXTS: TextsOf<typeof CLUSTER_MODE_REASONS> = {
  AsExpected: OK,
  NotWanted: text('There is no tether.'),
  WaitingForPeer: text('The other cluster has not agreed yet.', 'Wait; the message says what for.'),
  ClusterUnknown: text(
    'There is no ForeignCluster of that name, or nothing has proved its identity.',
    'Make it, or correct its endpoint.',
  ),
  Ourselves: text('The cluster that is named is this one.', 'Name another cluster.'),
  Disabled: text(
    'A person has said in the ForeignCluster not to peer, as `tributary unpeer` does.',
    '`tributary tether NAME` lifts that.',
  ),
  PeeringInTheWay: text(
    'This cluster offers to others, or the other one is tethered to it.',
    'End what the message names.',
  ),
  RefusedByPeer: text(
    'The other cluster has said no.',
    'Ask its people; the message has its reason, such as `TetheringForbidden`, `TokenUsed` or `TetheredElsewhere`.',
  ),
  ContactLost: text(
    'The other cluster was not heard for `lostAfterSeconds`.',
    'Nothing; with `afterLoss: Retether` the tether is taken up again when it is back.',
  ),
  Ending: text('The tether is being taken down.', 'Wait.'),
};
