/** The one policy over pods in tenant namespaces, of the bounds that several files hold. */
import { type PolicyPair, writes } from '../../api/fence.ts';
import { celList, forgeTenantAdmission, unless, type Validations } from './admission.ts';

/** What is done: a pod is made, a pod is changed, or an ephemeral container is put into it (KEP-277). */
type Moment = 'Create' | 'Update' | 'Debug';

const MOMENTS: readonly Moment[] = ['Create', 'Update', 'Debug'];

/** Bounds of what anybody does with pods there: whoever makes a pod for a peer is bound as the peer is. */
export interface PodBounds {
  /** Default: `Create` alone. */
  at?: readonly Moment[];
  /** CEL, by name; a name means the same in all bounds. */
  variables?: Record<string, string>;
  validations: Validations;
}

const moment =
  "request.operation == 'CREATE' ? 'Create' : (request.?subResource.orValue('') == '' ? 'Update' : 'Debug')";

const guarded = ({ at = ['Create'], validations }: PodBounds): Validations => {
  if (MOMENTS.every((one) => at.includes(one))) return validations;
  return unless(`!(variables.moment in ${celList(at)})`, validations);
};

/**
 * One policy for all bounds: for each policy, an API server turns the pod and the namespace into maps again, three times. That
 * took a third of its time when each of these bounds was a policy of its own (decision 73).
 */
export const forgeTenantPodsPolicy = (bounds: readonly PodBounds[]): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-pods', {
    resourceRules: [
      writes('', ['pods'], 'CREATE', 'UPDATE'),
      writes('', ['pods/ephemeralcontainers'], 'UPDATE'),
    ],
    variables: Object.entries(
      Object.assign({ moment }, ...bounds.map(({ variables }) => variables)) as Record<string, string>,
    ).map(([name, expression]) => ({ name, expression })),
    validations: bounds.flatMap((one) => guarded(one)),
  });
