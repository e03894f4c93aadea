import { ANNOTATION_RELEASED_FROM, ANNOTATION_REMADE_FOR, LABEL_REMAKE } from '../../api/names.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import type { Draft, ObjectMeta, Pod, Secret } from '../../api/wire.ts';
import { TributaryError, errorMessage } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { remadePod } from './remade-pod.ts';

const KEY = 'journal';
/** Where a pod comes from that has had no node. No VirtualNode is called so. */
export const NO_NODE = 'no-node';

/** A pod that is about to be deleted and made anew. Stored before the deletion, removed after the creation. */
export interface Journal {
  /** UID of the pod that goes. */
  uid: string;
  /** The pod to make. */
  pod: Draft<Pod> & { metadata: { name: string; namespace: string } };
  /** A pod that has started in the meantime is left alone. */
  unlessStarted: boolean;
  /** Until then it is evicted, as its budget allows; after that it is deleted. Milliseconds since the epoch. */
  budgetsUntil?: number;
  /** UID of its namespace: nothing is made in another namespace of that name. Undefined: not known. */
  namespaceUid?: string;
}

export interface RemakeOptions {
  /** The VirtualNode that the pod leaves. */
  from: string;
  /** False: a running pod is ended and made anew, too. */
  unlessStarted: boolean;
  /** Of its NamespaceOffloading: the webhook has added it to the pod's node affinity. */
  clusterSelector?: LabelSelector;
  /** See Journal; absent: budgets are ignored. */
  budgetsUntil?: number;
}

export function journalOf(
  pod: Pod,
  { from, unlessStarted, clusterSelector, budgetsUntil }: RemakeOptions,
  namespaceUid?: string,
): Journal {
  const { uid, name, namespace = '' } = pod.metadata;
  const made = remadePod(pod, clusterSelector);
  const annotations = {
    ...made.metadata.annotations,
    [ANNOTATION_RELEASED_FROM]: from,
    [ANNOTATION_REMADE_FOR]: uid,
  };
  return {
    uid,
    pod: { ...made, metadata: { ...made.metadata, name, namespace, annotations } },
    unlessStarted,
    ...present({ budgetsUntil, namespaceUid }),
  };
}

export const journalName = (uid: string): string => `tributary-remake-${uid}`;

export function journalSecret(journal: Journal, namespace: string): Draft<Secret> {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: journalName(journal.uid), namespace, labels: { [LABEL_REMAKE]: 'pod' } },
    type: 'Opaque',
    data: { [KEY]: Buffer.from(JSON.stringify(journal)).toString('base64') },
  };
}

const withBudgets = (until: unknown): Pick<Journal, 'budgetsUntil'> =>
  typeof until === 'number' ? { budgetsUntil: until } : {};

/** Throws Invalid, with nothing of its content in the message. */
export function readJournal({ metadata, data }: Pick<Secret, 'data'> & { metadata: ObjectMeta }): Journal {
  try {
    const journal = JSON.parse(Buffer.from(data?.[KEY] ?? '', 'base64').toString('utf8')) as Partial<Journal>;
    const { uid, pod, unlessStarted = true, budgetsUntil, namespaceUid } = journal;
    const { name, namespace } = pod?.metadata ?? {};
    if (typeof uid !== 'string' || journalName(uid) !== metadata.name) throw new Error('another UID');
    if (pod === undefined || typeof name !== 'string' || typeof namespace !== 'string') {
      throw new Error('no pod');
    }
    return {
      uid,
      pod,
      unlessStarted,
      // A journal of an earlier version lacks the field.
      ...withBudgets(budgetsUntil),
      ...(typeof namespaceUid === 'string' && { namespaceUid }),
    };
  } catch (error) {
    const why = error instanceof SyntaxError ? 'not JSON' : errorMessage(error);
    throw new TributaryError(
      'Invalid',
      `Secret "${metadata.name}" does not hold a pod to make anew (${why}); delete it`,
    );
  }
}
