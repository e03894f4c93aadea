/** What reasons of pods, of virtual nodes and of their Nodes mean, and what to do. */
import type {
  DISRUPTION_REASONS,
  NODE_REASONS,
  OFFLOADED_REASONS,
  REACH_REASONS,
  REQUEST_REASONS,
} from '../names.ts';
import type { HOME_REACH_REASONS } from '../tunnel.ts';
import type { VIRTUAL_NODE_REASONS } from '../virtual-node.ts';
import { OK, text, type TextsOf } from './text.ts';

export const VIRTUAL_NODE_TEXTS: TextsOf<typeof VIRTUAL_NODE_REASONS> = {
  AsExpected: OK,
  Closed: text(
    'The Node is Ready for the pods that it has, and takes no new ones (taint `tributary.dev/closed`).',
    'The message says why: our policy refuses the offer, the provider has withdrawn it or lends that node no more, or the peering ends.',
  ),
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
    'The token has expired or its account is gone. Run `tributary tenant-kubeconfig` again, and replace the Secret; no restart is needed.',
  ),
  NotAuthorized: text(
    'The credential is valid but has no rights in the tenant namespace.',
    'The provider applies `tributary tenant` again.',
  ),
  ForeignClusterUnreachable: text(
    'There was no answer within 5 s, three times.',
    'Address, firewall, certificate: the message has the cause. Try `kubectl --kubeconfig` with the same file.',
  ),
  ForeignClusterUnhealthy: text(
    'It answers that it cannot serve.',
    'The provider has to look at its control plane.',
  ),
  HomeRestored: text(
    'Of `Restored`: the etcd of this cluster was restored from a backup. Pods over there whose pods here are lost are kept for a while.',
    'See operations/backup.md; until the time in the message, look which of them you need.',
  ),
  ForeignClusterRestored: text(
    'Of `Restored`: the etcd of the foreign cluster was restored from a backup.',
    'Nothing: pods that it has lost fail with `RemotePodLost`, and their controllers make others.',
  ),
};

export const OFFLOADED_TEXTS: TextsOf<typeof OFFLOADED_REASONS> = {
  NamespaceNotOffloaded: text(
    'The virtual node does not have the namespace of the pod, or no longer.',
    'Label the namespace, or take out of the pod template what the message names.',
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
  WriteBudgetSpent: text(
    'The provider lets this cluster write no more for now; the pod is made when there is room again.',
    'Nothing; if it lasts, find what changes so often, or ask the provider for a higher `writes.kibPerMinute`.',
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
  NetworkPolicyNotInForce: text(
    'A NetworkPolicy selects the pod, and the provider has not put it in force yet; the pod waits, and is not left open.',
    'Nothing, it takes a moment. If it lasts: the message says why; a provider of an earlier version knows no policies of its guests. A rule of the NamespaceOffloading with `policy: None` for networkpolicies lets pods run without.',
  ),
  PlacementNotPossible: text(
    'A hard rule of the pod about other pods cannot be said in the foreign cluster.',
    'The message names the rule. Change it, or give the pod the annotation `tributary.dev/placement: Soft`.',
  ),
  PlacementNowhere: text(
    'A hard rule of the pod about other pods can be said in no foreign cluster, so the pod goes to no other one: only home may take it.',
    'The message names the rule. Change it, or give the pod the annotation `tributary.dev/placement: Soft`.',
  ),
  RemotePodLost: text(
    'The remote pod was evicted or deleted at the provider. A pod that a controller has made is deleted here while its containers end over there; another one fails when they have.',
    'Nothing: its controller makes another one. Without one: make it anew.',
  ),
};

export const REACH_TEXTS: TextsOf<typeof REACH_REASONS> = {
  ForeignClusterAway: text(
    'Nothing has answered in the foreign cluster for `awayAfterSeconds`. The pod may well run on; nobody knows.',
    'See the Node. What becomes of the pod says `whenAway` of its NamespaceOffloading; it is Ready again by itself when contact is back.',
  ),
  TunnelDown: text(
    'The pod runs, but the tunnel to its cluster does not carry packets.',
    'See the Tunnel: its reason says why.',
  ),
  NoViewOfAddress: text(
    'The pod runs, but its address is in none of the `views` of the Tunnel.',
    'See `status.refused` of the Tunnel.',
  ),
};

export const DISRUPTION_TEXTS: TextsOf<typeof DISRUPTION_REASONS> = {
  DeletionByForeignCluster: text(
    'The remote pod was evicted or deleted at the provider.',
    'Nothing: its controller makes another one.',
  ),
  RefusedByForeignCluster: text(
    'The foreign cluster has no room for the pod.',
    'Nothing: its controller makes another one.',
  ),
  ReleasedFromVirtualNode: text(
    'The virtual node could not place the pod, and it may go elsewhere.',
    'Nothing; see the event `Released`.',
  ),
};

export const HOME_REACH_TEXTS: TextsOf<typeof HOME_REACH_REASONS> = {
  NoNetwork: text(
    'No network joins the two clusters.',
    'See the Tunnel; for the API server, `--home-api-server` can name another way.',
  ),
  ForbiddenByProvider: text(
    'The SharingPolicy of the provider says `homeApiServer: Forbid`.',
    'Ask the people of the provider.',
  ),
  NotAllowed: text(
    'The ForeignCluster here says `apiServer: None` or `access: None`, or no API server is known.',
    'Nothing, or change `spec.network` of the ForeignCluster.',
  ),
  NoClusterDNS: text(
    'The agent knows no nameserver within the ClusterIPs, or no domain.',
    '`--cluster-dns`, `--cluster-domain`.',
  ),
  NotChosen: text(
    'ClusterIPs of home are not reached from there.',
    '`services: OffloadedPods`, and `access` other than `None`.',
  ),
  SeenElsewhere: text(
    'One cluster sees a range of the other at other addresses.',
    'The message names it; give the clusters ranges that do not overlap.',
  ),
  PeerHasNoViewOfUs: text(
    'The provider has not told yet where it sees us; new pods wait.',
    'If it lasts, its own Tunnel says why, in `status.refused`.',
  ),
  PrefixRefused: text(
    'Home has no addresses for the provider’s pods; new pods wait.',
    'The Tunnel of home says why, in `status.refused`.',
  ),
};

export const NODE_TEXTS: TextsOf<typeof NODE_REASONS> = {
  ForeignClusterReady: text('The foreign cluster takes pods.'),
  ForeignClusterClosed: text(
    'Pods that are there run on, and no new ones are sent (taint `tributary.dev/closed`).',
    'The message says why.',
  ),
  NotApplicable: text('Home does not see the pressure on nodes of the foreign cluster.'),
  TunnelReady: text('The tunnel to the foreign cluster works.'),
};

export const REQUEST_TEXTS: TextsOf<typeof REQUEST_REASONS> = {
  TributaryPolicy: text(
    'It was approved or denied as the serving certificate of an agent.',
    'The message says why.',
  ),
};
