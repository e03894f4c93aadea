import { LABEL_HOME_UID } from '../../api/names.ts';
import { isFinished } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { isOlder } from '../../kube/resource-version.ts';
import { type JournalEntry, isResultPod } from './journal-entry.ts';
import { podBody, bytesInMemory } from './slim-pod.ts';

/**
 * For the pods of one peer, in all its namespaces together. A pod with twenty variables takes 5 KiB, so there is room for 13,000
 * of those, or for some 250 with as many annotations as a pod may have. The leader of role `cluster` has 512 MiB for all its
 * work and all peers. Slim pods come in addition: a kilobyte for each pod that the quota lets in.
 */
const HELD_BYTES: number = 64 * 1024 * 1024;

interface Slot {
  readonly namespace: string;
  readonly name: string;
  readonly homeUid: string;
  readonly created: string;
  readonly rank: string;
  /** As last seen; undefined when it is gone, and its entry says how it ended. */
  pod: Pod | undefined;
  podBytes: number;
  entryBytes: number;
}

/** The pods of one tenant namespace. */
interface Share {
  readonly slots: Map<string, Slot>;
  readonly dropped: (name: string) => void;
}

/**
 * What is held in memory of the pods of one peer whose home is away: their bodies as last seen, and the entries of their
 * journals, which are made of them. A peer itself decides when it is away and how large its pods are, and a leader without free
 * memory does nothing for anybody. So beyond a budget, pods are dropped.
 *
 * Pods that run are kept before those that have ended: a running program that is lost is missed by its users, while a result can
 * be computed again. Then older pods before younger ones: what was there when the home went away is not displaced by what
 * appears in its absence. A pod that is made anew keeps the place of the one that was lost. Then by name, so that two guardians
 * keep the same pods.
 */
export class PodMemory {
  readonly #mostBytes: number;
  readonly #shares = new Map<string, Share>();
  /** The last is dropped first. */
  readonly #order: Slot[] = [];
  #bytes = 0;

  constructor(mostBytes: number = HELD_BYTES) {
    this.#mostBytes = mostBytes;
  }

  get mostBytes(): number {
    return this.#mostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `dropped` is called with the name of a pod that is no longer kept, nor its entry. */
  open(namespace: string, dropped: (name: string) => void): void {
    this.#shares.set(namespace, { slots: new Map(), dropped });
  }

  close(namespace: string): void {
    for (const slot of this.#slotsOf(namespace)) this.#remove(slot);
    this.#shares.delete(namespace);
  }

  /** The body of that pod, if it is kept. */
  pod(namespace: string, name: string, uid: string): Pod | undefined {
    const pod = this.#slot(namespace, name)?.pod;
    return pod?.metadata.uid === uid ? pod : undefined;
  }

  /** Takes in a pod as it is now. */
  listed(pod: Pod): void {
    const { namespace = '', name, uid, resourceVersion } = pod.metadata;
    const share = this.#shares.get(namespace);
    if (share === undefined || homeUidOf(pod) === '') return;
    const known = share.slots.get(name);
    const before = known?.pod?.metadata;
    // The entry shares parts with the body that is held; an equal one would be held in addition.
    if (before?.uid === uid && before.resourceVersion === resourceVersion) return;
    if (known !== undefined) this.#remove(known);
    this.#insert(slotOf(pod, known));
  }

  /** The same for a pod from a watch, which may repeat older states. */
  changed(pod: Pod): void {
    const { namespace = '', name, resourceVersion } = pod.metadata;
    const known = this.#slot(namespace, name)?.pod;
    if (known === undefined || !isOlder(resourceVersion, known.metadata.resourceVersion)) this.listed(pod);
  }

  /** Takes in the last state of a deleted pod, if it is still kept. */
  ended(pod: Pod): void {
    const { namespace = '', name, uid } = pod.metadata;
    if (this.pod(namespace, name, uid) !== undefined) this.changed(pod);
  }

  /** Its body is no longer needed. */
  gone(namespace: string, name: string, uid: string): void {
    const slot = this.#slot(namespace, name);
    if (slot?.pod?.metadata.uid === uid) this.#drop(slot);
  }

  /** After a complete list: pods for which `isThere` is false have gone meanwhile. */
  onlyThose(namespace: string, isThere: (name: string) => boolean): void {
    for (const slot of this.#slotsOf(namespace)) {
      if (slot.pod !== undefined && !isThere(slot.name)) this.#drop(slot);
    }
  }

  /** Takes in an entry of the journal. */
  hold(namespace: string, entry: JournalEntry): void {
    const share = this.#shares.get(namespace);
    const { name, homeUid, created } = entry;
    const slot = share?.slots.get(name);
    const entryBytes = bytesInMemory(entry);
    if (slot !== undefined) {
      this.#weigh(slot, { entryBytes });
      this.#shrink();
    } else if (share !== undefined) {
      const rank = rankOf(entry.result !== undefined, created, `${namespace}/${name}`);
      this.#insert({ namespace, name, homeUid, created, rank, pod: undefined, podBytes: 0, entryBytes });
    }
  }

  /** The journal has no entry of that name any more. */
  letGo(namespace: string, name: string): void {
    const slot = this.#slot(namespace, name);
    if (slot === undefined) return;
    this.#weigh(slot, { entryBytes: 0 });
    if (slot.pod === undefined) this.#remove(slot);
  }

  #slot(namespace: string, name: string): Slot | undefined {
    return this.#shares.get(namespace)?.slots.get(name);
  }

  #slotsOf(namespace: string): Slot[] {
    return [...(this.#shares.get(namespace)?.slots.values() ?? [])];
  }

  #drop(slot: Slot): void {
    slot.pod = undefined;
    this.#weigh(slot, { podBytes: 0 });
    if (slot.entryBytes === 0) this.#remove(slot);
  }

  #weigh(slot: Slot, weights: { podBytes?: number; entryBytes?: number }): void {
    this.#bytes -= bytesOf(slot);
    Object.assign(slot, weights);
    this.#bytes += bytesOf(slot);
  }

  #insert(slot: Slot): void {
    this.#shares.get(slot.namespace)?.slots.set(slot.name, slot);
    this.#order.splice(this.#placeOf(slot.rank), 0, slot);
    this.#bytes += bytesOf(slot);
    this.#shrink();
  }

  #remove(slot: Slot): void {
    this.#shares.get(slot.namespace)?.slots.delete(slot.name);
    this.#order.splice(this.#placeOf(slot.rank), 1);
    this.#bytes -= bytesOf(slot);
  }

  #shrink(): void {
    for (
      let last = this.#order.at(-1);
      last !== undefined && this.#bytes > this.#mostBytes;
      last = this.#order.at(-1)
    ) {
      this.#remove(last);
      this.#shares.get(last.namespace)?.dropped(last.name);
    }
  }

  /** The index of that rank, by binary search, since there may be ten thousand. */
  #placeOf(rank: string): number {
    let from = 0;
    let to = this.#order.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#order[middle]?.rank ?? '') < rank) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

const homeUidOf = ({ metadata }: Pod): string => metadata.labels?.[LABEL_HOME_UID] ?? '';

/** `known`: the slot of that name so far. */
function slotOf(pod: Pod, known: Slot | undefined): Slot {
  const { namespace = '', name, creationTimestamp } = pod.metadata;
  const homeUid = homeUidOf(pod);
  const created = known?.homeUid === homeUid ? known.created : creationTimestamp;
  const rank = rankOf(isFinished(pod), created, `${namespace}/${name}`);
  const body = podBody(pod);
  const bytes = { podBytes: bytesInMemory(body), entryBytes: known?.entryBytes ?? 0 };
  return { namespace, name, homeUid, created, rank, pod: body, ...bytes };
}

/** Unique, because it ends with the key. Times of an API server have one form, and sort as text. */
const rankOf = (isOver: boolean, created: string, key: string): string =>
  `${isOver ? 'over' : 'lives'} ${created} ${key}`;

/** An entry shares its parts with the pod, but not with a pod that bears a result: there only the entry knows what ran. */
const bytesOf = ({ pod, podBytes, entryBytes }: Slot): number =>
  pod !== undefined && isResultPod(pod) ? podBytes + entryBytes : Math.max(podBytes, entryBytes);
