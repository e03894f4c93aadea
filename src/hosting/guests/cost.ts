import { parseAmounts, STORAGE, type Sums } from '../../api/amounts.ts';
import { type CountedPod, podRequests, readableAmounts } from '../../api/pod-requests.ts';
import { isFinished } from '../../api/pod.ts';
import type { persistentVolumeClaims } from '../../api/resources.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import { identityOf } from '../../kube/objects.ts';

/**
 * What a pod costs, as a ResourceQuota counts it (pkg/quota/v1/evaluator/core/pods.go): what the scheduler sets aside, and one
 * of `pods`; nothing when it has finished. Throws Invalid for an amount that cannot be read, because a pod that cannot be
 * counted must not be let in.
 */
export const costOf = (pod: Pod): Sums => (isFinished(pod) ? new Map() : podRequests(pod, strictly));

const strictly = (list: Readonly<Record<string, string | number>> | undefined): Sums =>
  new Map([...parseAmounts(list ?? {})].filter(([, milli]) => milli > 0n));

type Claim = NonNullable<(typeof persistentVolumeClaims)['__object']>;

/** What a claim costs, as `requests.storage` of a ResourceQuota counts it. Throws Invalid for an amount that cannot be read. */
export function costOfClaim({ spec }: Pick<Claim, 'spec'>): Sums {
  const storage = spec?.resources?.requests?.[STORAGE];
  return storage === undefined ? new Map() : parseAmounts({ [STORAGE]: storage });
}

/** A claim as the ledger counts it, until it is gone. Other fields are left out, because there may be many claims. */
export function keepClaim(object: CountedPod): CountedPod {
  const { spec, status } = object as KubeObject as Claim;
  const asked = readableAmounts(spec?.resources?.requests);
  const allocated = readableAmounts(status?.allocatedResources);
  // A volume that grows counts as what it grows to (KEP-1790).
  const milli = [asked, allocated]
    .map((amounts) => amounts.get(STORAGE) ?? 0n)
    .toSorted((a, b) => (a < b ? 1 : -1))[0];
  return {
    metadata: identityOf(object.metadata),
    node: '',
    requests: [[STORAGE, milli ?? 0n]],
  };
}
