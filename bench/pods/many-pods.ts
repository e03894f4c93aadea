/** Pods that are bound from the start, made and removed without a controller. */
import { setTimeout as sleep } from 'node:timers/promises';

import { pods } from '../../src/api/resources.ts';
import type { Bed } from './bed.ts';
import { remoteGone } from './burst.ts';
import { boundPod, type Mirror } from './contender.ts';

const TIMEOUT_MS = 900_000;

/** At a steady pace, whatever becomes of them: a slow cluster is not spared. Resolves when all exist. */
export async function createSteadily(
  bed: Bed,
  mirror: Mirror,
  { count, perSecond }: { count: number; perSecond: number },
): Promise<void> {
  const began = performance.now();
  const creating: Promise<unknown>[] = [];
  for (let index = 0; index < count; index++) {
    const dueMs = began + (index * 1000) / perSecond - performance.now();
    if (dueMs > 0) await sleep(dueMs);
    creating.push(bed.clients.home.create(pods, boundPod(mirror, `steady-${index}`)));
  }
  await Promise.all(creating);
}

/** As fast as the API server takes them from so many at a time. */
export async function createMany(bed: Bed, mirror: Mirror, count: number, atOnce = 32): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await bed.clients.home.create(pods, boundPod(mirror, `many-${next++}`));
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** All pods of the contender; resolves when they are gone on both sides. */
export async function removeAll(bed: Bed, mirror: Mirror): Promise<void> {
  const path = `/api/v1/namespaces/${mirror.namespace}/pods`;
  const { status, body } = await bed.cluster('home').api.call('DELETE', path);
  if (status > 299) throw new Error(`DELETE ${path}: ${status} ${body}`);
  await bed.until(`no pods left in ${mirror.namespace}`, TIMEOUT_MS, async () => {
    const { items } = await bed.clients.home.list(pods, { namespace: mirror.namespace, limit: 1 });
    return items.length === 0;
  });
  await remoteGone(bed, mirror);
}
