import { LABEL_HOME_UID } from '../../api/names.ts';
import { isFinished } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { isOlder } from '../../kube/resource-version.ts';
import { type JournalEntry, isResultPod } from './entry.ts';
import { podBody, bytesInMemory } from './slim-pod.ts';

/**
 * For the pods of one peer, in all its namespaces together. A pod with twenty variables takes 5 KiB of it, so there is room
 * for 13,000 of them, and for some 250 with as many annotations as a pod may have. The leader of role `cluster` has 512 MiB
 * for all that it does, and for all peers. Outlines come on top: a kilobyte for each pod that the quota lets in.
 */
export const HELD_BYTES: number = 64 * 1024 * 1024;

interface Slot {
  readonly namespace: string;
  readonly name: string;
  readonly homeUid: string;
  readonly created: string;
  readonly rank: string;
  /** As it was seen last; undefined when it is gone, and what became of it is in its entry. */
  pod: Pod | undefined;
  podBytes: number;
  entryBytes: number;
}

/** Of one tenant namespace. */
interface Share {
  readonly slots: Map<string, Slot>;
  readonly fell: (name: string) => void;
}

/**
 * What is held in memory of the pods of one peer whose home is away: their bodies as they were seen last, and the entries of
 * their journals, which are made of them. A peer says by itself when it is away and how large its pods are, and a leader
 * that has no memory left does nothing for anybody: so beyond a budget, pods fall out.
 *
 * Those that end by themselves are kept before those that have ended: a program that runs and is lost is missed by
 * whoever uses it, a result at worst is worked out again. Then the older before the younger: what was there when the home
 * went away is not pushed out by what appears in its absence. One that is made anew keeps the place of the one that was
 * lost. Then by name, so that two guardians keep the same.
 */
export class PodMemory {
  readonly #mostBytes: number;
  readonly #shares = new Map<string, Share>();
  /** The first is kept before all others. */
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

  /** `fell` is called with the name of a pod that is not kept any more, nor its entry. */
  open(namespace: string, fell: (name: string) => void): void {
    this.#shares.set(namespace, { slots: new Map(), fell });
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

  /** A pod as it is. */
  listed(pod: Pod): void {
    const { namespace = '', name, uid, resourceVersion } = pod.metadata;
    const share = this.#shares.get(namespace);
    if (share === undefined || homeUidOf(pod) === '') return;
    const known = share.slots.get(name);
    const before = known?.pod?.metadata;
    // The entry is made of the body that is held: another one that is the same would be held beside it.
    if (before?.uid === uid && before.resourceVersion === resourceVersion) return;
    if (known !== undefined) this.#remove(known);
    this.#insert(slotOf(pod, known));
  }

  /** The same, of a watch: it may be told again of what has been. */
  changed(pod: Pod): void {
    const { namespace = '', name, resourceVersion } = pod.metadata;
    const known = this.#slot(namespace, name)?.pod;
    if (known === undefined || !isOlder(resourceVersion, known.metadata.resourceVersion)) this.listed(pod);
  }

  /** As it was when it went. What is not kept by then is not taken in any more. */
  ended(pod: Pod): void {
    const { namespace = '', name, uid } = pod.metadata;
    if (this.pod(namespace, name, uid) !== undefined) this.changed(pod);
  }

  /** Nobody asks for its body any more. */
  gone(namespace: string, name: string, uid: string): void {
    const slot = this.#slot(namespace, name);
    if (slot?.pod?.metadata.uid === uid) this.#drop(slot);
  }

  /** After a whole list: those that were neither in it, nor are known from before, have gone meanwhile. */
  onlyThose(namespace: string, isThere: (name: string) => boolean): void {
    for (const slot of this.#slotsOf(namespace)) {
      if (slot.pod !== undefined && !isThere(slot.name)) this.#drop(slot);
    }
  }

  /** An entry of the journal. */
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
      this.#shares.get(last.namespace)?.fell(last.name);
    }
  }

  /** Where that rank is, or would be: by halves, since there may be ten thousands. */
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

/** `known`: what was under its name before. */
function slotOf(pod: Pod, known: Slot | undefined): Slot {
  const { namespace = '', name, creationTimestamp } = pod.metadata;
  const homeUid = homeUidOf(pod);
  const created = known?.homeUid === homeUid ? known.created : creationTimestamp;
  const rank = rankOf(isFinished(pod), created, `${namespace}/${name}`);
  const body = podBody(pod);
  const bytes = { podBytes: bytesInMemory(body), entryBytes: known?.entryBytes ?? 0 };
  return { namespace, name, homeUid, created, rank, pod: body, ...bytes };
}

/** Ends with what no other slot has. Times of an API server have one form, and sort as text. */
const rankOf = (isOver: boolean, created: string, key: string): string =>
  `${isOver ? 'over' : 'lives'} ${created} ${key}`;

/** An entry is made of parts of the pod; but not that of a result, of which only the entry knows what the pod was. */
const bytesOf = ({ pod, podBytes, entryBytes }: Slot): number =>
  pod !== undefined && isResultPod(pod) ? podBytes + entryBytes : Math.max(podBytes, entryBytes);
