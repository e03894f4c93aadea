/** What was made for a peering and is still there, on one side. */
import { advertisements } from '../../api/advertisement.ts';
import type { Direction } from '../../api/foreign-cluster.ts';
import { LABEL_PROVIDER } from '../../api/names.ts';
import { peeringRequests } from '../../api/peering-request.ts';
import { namespaces, type ResourceType } from '../../api/resources.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import { virtualNodes } from '../../api/virtual-node.ts';
import type { Condition, KubeObject } from '../../api/wire.ts';
import { ignoring } from '../../lib/errors.ts';
import type { Session } from './environment.ts';
import { followObject } from './foreign-clusters.ts';

/** In a message. */
export const MOST_NAMED = 5;

export interface Remnant {
  kind: string;
  what: string;
  /** What is known of it, with what is before it; empty: nothing. */
  why: string;
  /** It goes by itself, and soon. */
  isEnding: boolean;
}

/**
 * A request that a person has approved outlives one whose word that it wants nothing was not heard: after this it is taken to
 * stay. The role cluster looks every 15 s.
 */
const APPROVED_MS = 20_000;

export interface RemnantsOf {
  clusterID: string;
  directions: readonly Direction[];
  /** The other side has ended it before, so that its request goes, too. */
  peerHasEnded: boolean;
}

/** Looks again each time that it is called. */
export function remnantsOf(
  { clusterID, directions, peerHasEnded }: RemnantsOf,
  { client, clock, signal }: Session,
): () => Promise<Remnant[]> {
  const patientUntil = clock.monotonic() + APPROVED_MS;
  const listed = async <T extends KubeObject>(
    type: ResourceType<T>,
    labelSelector: string,
  ): Promise<Remnant[]> => {
    const { items } = await client.list(type, { labelSelector, signal });
    return items.map((object) => remnant(type.kind, object));
  };
  const one = async <T extends KubeObject>(
    type: ResourceType<T>,
    goes: (object: T) => boolean = () => false,
  ): Promise<Remnant[]> => {
    const object = await client.get(type, { name: clusterID }, { signal }).catch(ignoring('NotFound'));
    if (object === undefined) return [];
    const found = remnant(type.kind, object);
    return [{ ...found, isEnding: found.isEnding || goes(object) }];
  };
  return async () => [
    ...(directions.includes('outgoing')
      ? [...(await one(advertisements)), ...(await listed(virtualNodes, `${LABEL_PROVIDER}=${clusterID}`))]
      : []),
    ...(directions.includes('incoming')
      ? [
          ...(await one(
            peeringRequests,
            ({ spec }) =>
              peerHasEnded &&
              spec.approval !== 'Denied' &&
              (spec.approval === undefined || clock.monotonic() < patientUntil),
          )),
          ...(await listed(namespaces, `${LABEL_PEER}=${clusterID}`)),
        ]
      : []),
  ];
}

/** Waits until nothing goes by itself any more; returns what still does when the time is up. */
export async function terminated(
  look: () => Promise<Remnant[]>,
  { untilMs, shown }: { untilMs: number; shown: (line: string) => void },
  session: Session,
): Promise<readonly Remnant[]> {
  let left: Remnant[] = [];
  await followObject(session, {
    untilMs,
    read: look,
    look: (now) => {
      left = now.filter(({ isEnding }) => isEnding);
      if (left.length === 0) return true;
      const names = left.slice(0, MOST_NAMED).map(({ what, why }) => what + why);
      shown(`ended; still terminating: ${names.join(', ')}${left.length > MOST_NAMED ? ', ...' : ''}`);
      return undefined;
    },
  });
  return left;
}

/** A namespace says what is left in it: `Some resources are remaining: pods. has 2 resource instances`. */
function remnant(kind: string, object: KubeObject & { status?: object }): Remnant {
  const { name, deletionTimestamp } = object.metadata;
  const isEnding = deletionTimestamp !== undefined;
  const { conditions = [] } = (object.status ?? {}) as { conditions?: readonly Partial<Condition>[] };
  const told = conditions.find(
    ({ type, status }) => type === 'NamespaceContentRemaining' && status === 'True',
  );
  const kept = kind === 'Namespace' && !isEnding ? ' (its SharingPolicy keeps it for a while: onEnd)' : '';
  const why = told?.message === undefined ? kept : ` (${told.message})`;
  return { kind, what: `${kind} ${name}`, why, isEnding };
}
