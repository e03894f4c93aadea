import { parseMilli } from '../lib/quantity.ts';
import { addTo, MILLI, raiseTo, type Sums } from './amounts.ts';
import type { Container, ContainerStatus, KubeObject, Pod } from './wire.ts';

export type ReadAmounts = (list: Readonly<Record<string, string | number>> | undefined) => Sums;

/** Whether requests of the pod as a whole can name this resource (KEP-2837). */
const isPodLevel = (resource: string): boolean =>
  resource === 'cpu' || resource === 'memory' || resource.startsWith('hugepages-');

/**
 * What the scheduler sets aside for a pod, and one of `pods`. Init containers run one after the other, beside the
 * sidecars that were started before them (KEP-753). Requests of the pod as a whole replace the sum of the requests of
 * its containers (KEP-2837). While a pod is resized, the larger of the old and the new amount counts (KEP-1287). `read`
 * may throw when it finds an amount that is wrong.
 */
export function podRequests(pod: Pod, read: ReadAmounts = readableAmounts): Sums {
  const { spec, status } = pod;
  const statuses = new Map(
    [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].map((one) => [
      one.name,
      one,
    ]),
  );
  const requestsOf = (container: Container): Sums =>
    containerRequests(container, statuses.get(container.name), read);
  const [starting, sidecars] = initRequests(spec?.initContainers ?? [], requestsOf);
  const total: Sums = new Map(sidecars);
  for (const container of spec?.containers ?? []) addTo(total, requestsOf(container));
  raiseTo(total, starting);
  for (const [resource, milli] of podLevelRequests(pod, read)) total.set(resource, milli);
  addTo(total, read(spec?.overhead));
  return total.set('pods', MILLI);
}

/** The most that is needed while init containers run, and what the sidecars among them need from then on. */
function initRequests(
  containers: readonly Container[],
  requestsOf: (container: Container) => Sums,
): [starting: Sums, sidecars: Sums] {
  const [starting, sidecars]: [Sums, Sums] = [new Map(), new Map()];
  for (const container of containers) {
    const requests = requestsOf(container);
    if (container.restartPolicy === 'Always') {
      addTo(sidecars, requests);
      raiseTo(starting, sidecars);
    } else {
      addTo(requests, sidecars);
      raiseTo(starting, requests);
    }
  }
  return [starting, sidecars];
}

function containerRequests(
  { resources }: Container,
  status: ContainerStatus | undefined,
  read: ReadAmounts,
): Sums {
  const requests = read(resources?.requests);
  raiseTo(requests, read(status?.allocatedResources));
  raiseTo(requests, read(status?.resources?.requests));
  return requests;
}

function podLevelRequests({ spec, status }: Pod, read: ReadAmounts): Sums {
  const requests = read(spec?.resources?.requests);
  if (requests.size === 0) return requests;
  raiseTo(requests, read(status?.allocatedResources));
  for (const resource of requests.keys()) if (!isPodLevel(resource)) requests.delete(resource);
  return requests;
}

/** The amounts that can be read. One that cannot be read comes from no API server that we know, and must not stop the count. */
export function readableAmounts(list: Readonly<Record<string, string | number>> | undefined): Sums {
  const sums: Sums = new Map();
  for (const [resource, amount] of Object.entries(list ?? {})) {
    try {
      const milli = parseMilli(String(amount));
      if (milli > 0n) sums.set(resource, milli);
    } catch {
      continue;
    }
  }
  return sums;
}

/**
 * A pod that has not ended, reduced to what counts for amounts: a cluster has very many pods, and caches keep no more
 * of each. A PersistentVolumeClaim is counted in the same form, without a node.
 */
export interface CountedPod extends KubeObject {
  /** Empty: the pod waits for the scheduler, and takes nothing of any node. */
  node: string;
  /** Pairs, since they take little memory and can be compared like JSON. */
  requests: readonly (readonly [resource: string, milli: bigint])[];
  /**
   * Only of a pod that is being deleted: one more grace period after its deletionTimestamp, in milliseconds since the
   * epoch. From then on a ResourceQuota does not count the pod.
   */
  overdueMs?: number;
}
