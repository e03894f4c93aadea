import { parseAmounts, type Sums } from '../../api/amounts.ts';
import { type StockPod, tolerantly } from '../../api/pod-requests.ts';
import { STORAGE } from '../../api/resource-names.ts';
import type { persistentVolumeClaims } from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';

type Claim = NonNullable<(typeof persistentVolumeClaims)['__object']>;

/** Pure: what a claim costs, as `requests.storage` of a ResourceQuota counts it. Throws Invalid for an amount that cannot be read. */
export function costOfClaim({ spec }: Pick<Claim, 'spec'>): Sums {
  const storage = spec?.resources?.requests?.[STORAGE];
  return storage === undefined ? new Map() : parseAmounts({ [STORAGE]: storage });
}

/** A claim as the ledger counts it: until it is gone, and be it on its way out. Other members are left out; there may be many. */
export function keepClaim(object: StockPod): StockPod {
  const { spec, status } = object as KubeObject as Claim;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const asked = tolerantly(spec?.resources?.requests);
  const allocated = tolerantly(status?.allocatedResources);
  // A volume that grows counts as what it grows to (KEP-1790).
  const milli = [asked, allocated]
    .map((amounts) => amounts.get(STORAGE) ?? 0n)
    .toSorted((a, b) => (a < b ? 1 : -1))[0];
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      uid,
      resourceVersion,
      creationTimestamp,
    },
    node: '',
    requests: [[STORAGE, milli ?? 0n]],
  };
}
