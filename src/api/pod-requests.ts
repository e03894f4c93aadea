import { parseMilli } from '../lib/quantity.ts';
import { addTo, MILLI, raiseTo, type Sums } from './amounts.ts';
import type { Container, ContainerStatus, KubeObject, Pod } from './wire.ts';

export type ReadAmounts = (list: Readonly<Record<string, string | number>> | undefined) => Sums;

/** What counts at the level of the pod (KEP-2837). */
const isPodLevel = (resource: string): boolean =>
  resource === 'cpu' || resource === 'memory' || resource.startsWith('hugepages-');

/**
 * What the scheduler sets aside for a pod, and one of `pods`. Init containers run one after the other, beside the
 * sidecars that were started before them (KEP-753); requests of the pod as a whole stand in for the sum of its
 * containers' (KEP-2837); a resize under way holds the larger of what was and what is wanted (KEP-1287). `read` may throw what
 * it finds wrong.
 */
export function podRequests(pod: Pod, read: ReadAmounts = tolerantly): Sums {
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

/** An amount that cannot be read was not written by an API server that we know; it must not stop the count. */
export function tolerantly(list: Readonly<Record<string, string | number>> | undefined): Sums {
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

/** A pod that has not ended, as much of it as counts. */
export interface StockPod extends KubeObject {
  /** Empty: it waits for the scheduler, and takes nothing of any node. */
  node: string;
  /** Amounts as pairs, which take little room and compare as JSON does. */
  requests: readonly (readonly [resource: string, milli: bigint])[];
  /** Of one that is being deleted: when it should have been gone for as long again, milliseconds since the epoch. */
  overdueMs?: number;
}
