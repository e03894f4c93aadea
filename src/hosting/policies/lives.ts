/**
 * What peers do to pods that are there. A pod that is deleted without grace is gone from the API at once, and from every
 * quota, while its containers run on for as long as its own spec says (kubelet, calculateEffectiveGracePeriod): up to a day.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { type Validations, forgeTenantAdmission, ofPeers } from './admission.ts';

/** What the gates of a pod are called; in an order that never changes. */
const gates = (pod: string): string => `${pod}.spec.?schedulingGates.orValue([]).map(g, g.name)`;

const validations: Validations = [
  {
    // As it is in effect: 0, too, for a pod that no node has or that has ended, or wants none itself.
    expression:
      "request.operation != 'DELETE' || request.?options.?gracePeriodSeconds.orValue(1) != 0 || " +
      "oldObject.spec.?nodeName.orValue('') == '' || oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed'] || " +
      'oldObject.spec.?terminationGracePeriodSeconds.orValue(30) == 0',
    message:
      'peers may not delete pods by force: gracePeriodSeconds is 1 at least; without it the pod would run on unseen, ' +
      'beyond all quotas',
  },
  {
    // What bears a result for a home that is away was admitted as a pod that never runs.
    expression: `request.operation != 'UPDATE' || ${gates('oldObject')} == ${gates('object')}`,
    message: 'peers may not lift scheduling gates of pods: they are put there by this cluster',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantLivesPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-lives', {
    ...ofPeers('', 'pods', ['UPDATE', 'DELETE']),
    validations,
  });
