/** What reasons of offloaded namespaces mean and what to do. */
import type { NAMESPACE_OFFLOADING_REASONS, OffloadedPhase } from '../namespace-offloading.ts';
import { OK, text, type Texts, type TextsOf } from './text.ts';

/** Of one foreign cluster. */
export const OFFLOADED_PHASE_TEXTS: Texts<OffloadedPhase> = {
  Pending: text('The namespace is not there yet.', 'The reason says what is waited for.'),
  Ready: text('Pods of the namespace can run there.'),
  Failed: text('The namespace is not there, and a person has to do something.', 'The reason says what.'),
  Ending: text('The namespace is leaving that cluster.'),
};

export const NAMESPACE_OFFLOADING_TEXTS: TextsOf<typeof NAMESPACE_OFFLOADING_REASONS> = {
  AsExpected: OK,
  NoClusterSelected: text(
    'No virtual node has the labels, or there is none.',
    'The message says which; see `tributary peerings`.',
  ),
  InProgress: text(
    'Some clusters do not have the namespace yet.',
    'Wait. If an entry stays `WaitingForProvider`, is the provider connected?',
  ),
  SomeClustersFailed: text('Some clusters do not have it; the others are used.', 'See the entries.'),
  AllClustersFailed: text('No cluster has it.', 'See the entries.'),
  PodsAtHome: text(
    'Pods that were made before the namespace was offloaded stay on real nodes.',
    'Make them anew, or set `existingPods: Move`.',
  ),
  PolicyStricterAbroad: text(
    'Something that a NetworkPolicy opens at home stays closed for pods over there.',
    'The message names policies and first causes; `status.stricterPolicies` of the VirtualNode names all; see network.md.',
  ),
  Moving: text('The same pods are being moved (`existingPods: Move`).', 'Wait.'),
  SystemNamespace: text(
    'It holds parts of the cluster itself, and never leaves it.',
    'Put applications into a namespace of their own.',
  ),
  Ending: text(
    'The namespace is leaving, or the object is being deleted.',
    'Wait, at most two minutes and the grace of the pods.',
  ),
  WaitingForProvider: text(
    'The provider has not given a namespace yet, or its virtual node does not have it yet.',
    'If it lasts, see the ForeignCluster.',
  ),
  NameTaken: text(
    'Another namespace there has the name, or an earlier tenant has not ended yet.',
    'Wait: it is given as soon as it is free. Or delete the object and make another with another `naming`, or exclude the cluster.',
  ),
  NamingNotAllowed: text(
    'The provider chooses names itself, the name is reserved, or its version does not know `naming`.',
    '`naming: Suffixed`, or another provider.',
  ),
  NotMapped: text(
    'The VirtualNode was made by hand, and does not name the namespace.',
    'Add the namespace to its `spec.namespaces`.',
  ),
  VirtualNodeClosed: text(
    'The namespace is there, and its virtual node takes no new pods.',
    'The message says why; see peering.md, under When no new pods are sent.',
  ),
  VirtualNodeNotReady: text('The virtual node is not Ready.', '`kubectl describe virtualnode`.'),
};
