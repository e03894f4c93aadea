/**
 * What reasons mean and what to do, one text for each: a new reason without a text does not compile. docs/reference/reasons.md is
 * made from this.
 */
import type { ADVERTISEMENT_REASONS } from './advertisement.ts';
import type { FOREIGN_CLUSTER_REASONS } from './foreign-cluster.ts';
import type { OFFLOADED_REASONS } from './names.ts';
import type { VIRTUAL_NODE_REASONS } from './virtual-node.ts';

export interface ReasonText {
  readonly means: string;
  /** Empty where there is nothing to do. */
  readonly todo: string;
}
type TextsOf<List extends Readonly<Record<string, string>>> = Readonly<Record<List[keyof List], ReasonText>>;

const text = (means: string, todo = ''): ReasonText => ({ means, todo });
const OK = text('All is well.');
const lasts = 'Nothing; if it lasts, look at the other side.';

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

export const VIRTUAL_NODE_TEXTS: TextsOf<typeof VIRTUAL_NODE_REASONS> = {
  AsExpected: OK,
  Starting: text('The foreign cluster has not been asked yet.', 'Wait a few seconds.'),
  AgentNotRunning: text(
    'The agent is starting, or has stopped and said so.',
    'Look whether its Deployment is there, and its pod runs.',
  ),
  CachesNotSynced: text(
    'A namespace, here or at the provider, has not been read completely.',
    'If it stays: a namespace of the mapping does not exist, or the credential has no rights in it; see the log of the agent.',
  ),
  NodeRefused: text(
    'The home API server does not take the Node.',
    'The message names the field, often a label or taint of the spec.',
  ),
  KubeconfigSecretNotFound: text(
    'There is no such Secret, or no such key in it.',
    'Compare `spec.kubeconfigSecretRef`; the key is `kubeconfig` unless said otherwise.',
  ),
  KubeconfigInvalid: text(
    'The kubeconfig does not parse, or asks for files or programs.',
    'Use what `tributary tenant-kubeconfig` prints.',
  ),
  CredentialsRejected: text(
    'The foreign API server answers Unauthorized.',
    'The token has expired or its account is gone. Put a new kubeconfig into the Secret; no restart is needed.',
  ),
  NotAuthorized: text(
    'The credential is valid but has no rights in the tenant namespace.',
    'The provider applies `tributary tenant` again.',
  ),
  ForeignClusterUnreachable: text(
    'There was no answer within 5 s, three times.',
    'Address, firewall, certificate: the message has the cause.',
  ),
  ForeignClusterUnhealthy: text(
    'It answers that it cannot serve.',
    'The provider has to look at its control plane.',
  ),
};

export const OFFLOADED_TEXTS: TextsOf<typeof OFFLOADED_REASONS> = {
  NamespaceNotOffloaded: text(
    'The virtual node does not have the namespace of the pod.',
    'Label the namespace, or take the toleration off the pod.',
  ),
  NamespaceBeingMade: text(
    'The provider has been asked for the namespace and has not given it yet.',
    'Nothing; if it lasts, `kubectl describe namespaceoffloading` says why.',
  ),
  TenantNamespaceNotFound: text(
    'The tenant namespace does not exist at the provider.',
    'The provider applies `tributary tenant` again; compare its `--namespace` with `tenantNamespace`.',
  ),
  DaemonSetNotOffloaded: text(
    'A DaemonSet tolerates everything; the pod runs nothing, and counts as ready.',
    'Give the DaemonSet a node affinity: `tributary.dev/node-type` `NotIn` `[virtual-node]`.',
  ),
  MissingReference: text(
    'Something that the pod needs is not there at home: a ConfigMap, a Secret, or a bound claim.',
    'Create it; the pod goes on by itself.',
  ),
  VolumeNotHere: text(
    'A claim of the pod is a volume of another cluster; data do not follow pods.',
    'Use a StorageClass of provisioner `tributary.dev/storage`, or keep the pod where its volume is.',
  ),
  NameTaken: text(
    'The object of somebody else has that name there, or the pod that had it is still ending.',
    'Wait for the end; else ask the provider what it is.',
  ),
  Forbidden: text(
    'Admission at the provider refuses the pod.',
    'The message is that of the provider’s API server, with the field of its SharingPolicy; see sharing.md.',
  ),
  ExceededQuota: text(
    'The quota of the tenant, or the contract, is used up.',
    'Smaller requests, fewer pods, or a larger share from the provider.',
  ),
  Invalid: text(
    'The foreign API server does not accept the object, or home cannot show what it reports.',
    'The message names the field; often one of the two versions lacks a feature.',
  ),
  Unschedulable: text(
    'The provider has accepted the pod, but no node there has room.',
    'Smaller requests, or ask the provider; the message is that of the foreign scheduler.',
  ),
  RemotePodLost: text(
    'The remote pod was evicted or deleted at the provider.',
    'Nothing: its controller makes another one.',
  ),
};
