import type { PeerIdentity } from '../ports.ts';
import type { DocumentChanges } from '../protocol/documents.ts';
import { contest } from './contest.ts';
import { type Acknowledge, Delivery, type DeliveryOptions } from './delivery.ts';
import { CLOSE, type Link } from './link.ts';

export interface PeerSlotOptions {
  peer: PeerIdentity;
  own: string;
  delivery: Omit<DeliveryOptions, 'peer' | 'isPresent'>;
  /** Another link is in use, or none any more, or all is done. */
  changed: () => void;
}

/** One in use, one that is to take its place, and one that comes while those two are compared. */
const MAX_LINKS = 4;
/** When another link has come, the link in use has so long to prove that it lives. */
const PROBE_MS = 2_000;

/** The place for the one link to a peer, and those that want to be it. */
export class PeerSlot {
  readonly peer: PeerIdentity;
  readonly #options: PeerSlotOptions;
  readonly #delivery: Delivery;
  readonly #links = new Set<Link>();
  #active: Link | undefined;
  #isProbing = false;

  constructor(options: PeerSlotOptions) {
    this.#options = options;
    this.peer = options.peer;
    const isPresent = (): boolean => this.#links.size > 0;
    this.#delivery = new Delivery({ ...options.delivery, peer: options.peer, isPresent });
  }

  get active(): Link | undefined {
    return this.#active;
  }

  get isFull(): boolean {
    return this.#links.size >= MAX_LINKS;
  }

  /** Nothing would be lost with it. */
  get isEmpty(): boolean {
    return this.#links.size === 0 && this.#delivery.isIdle;
  }

  opened(link: Link): void {
    this.#links.add(link);
  }

  greeted(link: Link): void {
    const first = this.#active;
    if (first === undefined) return this.#use(link);
    const own = this.#options.own;
    const verdict = contest(first.dialledBy, link.dialledBy, { own, peer: this.peer.clusterID });
    if (verdict === 'probe') {
      void this.#probe(first);
      return;
    }
    this.#use(link);
    first.close(CLOSE.replaced, 'another link takes its place');
  }

  received(link: Link, changes: DocumentChanges, acknowledge: Acknowledge): void {
    if (link === this.#active) this.#delivery.give(changes, acknowledge, this.#options.changed);
  }

  ended(link: Link): void {
    this.#links.delete(link);
    if (link !== this.#active) return;
    this.#active = undefined;
    const next = [...this.#links].findLast((other) => other.isGreeted);
    if (next === undefined) this.#options.changed();
    else this.#use(next);
  }

  describe(): void {
    for (const link of this.#links) link.describe();
  }

  close(code: number, reason: string): void {
    for (const link of this.#links) link.close(code, reason);
  }

  async stop(): Promise<void> {
    await this.#delivery.stop();
  }

  #use(link: Link): void {
    this.#active = link;
    link.activate();
    this.#options.changed();
  }

  /** If the link answers, it stays and the others are closed; if not, we end it and the next one takes its place. */
  async #probe(first: Link): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    const isAlive = await first.probe(PROBE_MS);
    this.#isProbing = false;
    if (first !== this.#active) return;
    if (!isAlive) return first.terminate('no answer when another link had come');
    for (const link of this.#links) {
      if (link !== first && link.isGreeted) link.close(CLOSE.duplicate, 'there is a link already');
    }
  }
}
