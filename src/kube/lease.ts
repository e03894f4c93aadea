import { ANNOTATION_CANDIDATE } from '../api/names.ts';
import { leases } from '../api/resources.ts';
import type { DraftMeta, Lease, OwnerReference } from '../api/wire.ts';
import type { Clock } from '../lib/clock.ts';
import { deepEqual } from '../lib/equality.ts';
import { hasCode } from '../lib/errors.ts';
import { withoutKeys } from '../lib/fields.ts';
import type { KubeClient } from './client.ts';
import { tellLostHistory } from './server-news.ts';

export interface LeaseOptions {
  client: KubeClient;
  clock: Clock;
  namespace: string;
  name: string;
  /** Who holds it: unique among all that compete. */
  identity: string;
  durationMs: number;
  /** Whether that holder certainly lives no more, so that nobody need wait until its Lease has lapsed. Default: never. */
  isOver?: (holder: string) => boolean;
  /** As it is made: an owner may have come anew. */
  ownerReferences?: () => OwnerReference[];
  labels?: Record<string, string>;
  /** What else the Lease bears. Default: nothing. */
  marks?: LeaseMarks;
}

/** Reads and writes annotations of a Lease along with its renewals. */
export interface LeaseMarks {
  /** Each state that was read; undefined: there is none. */
  read(lease: Lease | undefined): void;
  /** Annotations to set at the next renewal of this state. */
  next(lease: Lease | undefined): Record<string, string>;
  /** Each state that was written. */
  wrote(lease: Lease): void;
}

/** How a Lease is written where that is not the usual. */
export interface LeaseTerms {
  /** For how long it is valid; default that of the options. */
  durationMs?: number;
  /** Whether the mark of a candidate is taken away, so that one who is still there sets it again. */
  asksForCandidates?: boolean;
}

/** Whether we hold the Lease, it is free, or somebody else has it. */
export type LeaseView = { state: 'held' } | { state: 'free' } | { state: 'taken'; holder: string };

/**
 * One Lease object, read and written by its resourceVersion: of two that write at once, one gets a Conflict. Other
 * machines' clocks are never believed: whether a holder has lapsed is judged by how long, on our own monotonic
 * clock, its `spec` has not changed. What others write beside that is no sign of the holder.
 */
export class LeaseRecord {
  readonly #options: LeaseOptions;
  #known: Lease | undefined;
  /** Monotonic time at which the `spec` was first seen as it is. */
  #seenAt = -Infinity;
  /** As we wrote it last. */
  #written: Lease | undefined;
  #predecessorAt: number | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Reads the record, and says whether it is ours, free, or somebody else's. */
  async look(signal: AbortSignal): Promise<LeaseView> {
    const { client, clock, namespace, name } = this.#options;
    try {
      const lease = await client.get(leases, { namespace, name }, { signal });
      const isSame =
        lease.metadata.uid === this.#known?.metadata.uid && deepEqual(lease.spec, this.#known.spec);
      if (!isSame) this.#seenAt = clock.monotonic();
      this.#known = lease;
      this.#suspect(lease);
    } catch (error) {
      if (!hasCode(error, 'NotFound')) throw error;
      this.#known = undefined;
    }
    this.#options.marks?.read(this.#known);
    return this.view();
  }

  /** The same from memory. */
  view(): LeaseView {
    const { identity, clock, durationMs: ownMs, isOver } = this.#options;
    const spec = this.#known?.spec;
    const holder = spec?.holderIdentity;
    if (holder === undefined || holder === '') return { state: 'free' };
    if (holder === identity) return { state: 'held' };
    if (isOver?.(holder) === true) return { state: 'free' };
    const seconds = spec?.leaseDurationSeconds ?? 0;
    // A Lease knows whole seconds only. Where they are ours, rounded, the holder goes by the same finer duration.
    const durationMs = seconds === Math.ceil(ownMs / 1000) ? ownMs : seconds * 1000;
    const lapsed = clock.monotonic() - this.#seenAt >= durationMs;
    return lapsed ? { state: 'free' } : { state: 'taken', holder };
  }

  /** When whoever held it before us renewed it last, by their clock, in milliseconds since 1970; undefined: nobody, or unknown. */
  get predecessorAt(): number | undefined {
    return this.#predecessorAt;
  }

  /** Whether somebody waits for it, as it was last seen. */
  get hasCandidate(): boolean {
    return this.#known?.metadata.annotations?.[ANNOTATION_CANDIDATE] !== undefined;
  }

  /** Tells its holder that we wait for it, unless somebody has already. Throws Conflict if it was renewed meanwhile. */
  async standBy(signal: AbortSignal): Promise<void> {
    const { client, identity } = this.#options;
    const known = this.#known;
    if (known === undefined || this.hasCandidate) return;
    const { metadata } = known;
    const annotations = { ...metadata.annotations, [ANNOTATION_CANDIDATE]: identity };
    this.#known = await client.replace(
      leases,
      { ...known, metadata: { ...metadata, annotations } },
      { signal },
    );
  }

  /** Takes or renews it, if it has the version last seen. Throws Conflict or AlreadyExists if somebody was faster. */
  async write(signal: AbortSignal, terms: LeaseTerms = {}): Promise<void> {
    const { client, clock, marks } = this.#options;
    const known = terms.asksForCandidates === true ? withoutCandidate(this.#known) : this.#known;
    const { holderIdentity, renewTime } = known?.spec ?? {};
    const renewedAt = Date.parse(renewTime ?? '');
    const spec = this.#renewed(terms.durationMs);
    const next = marks?.next(known);
    const marked = <M extends DraftMeta>(metadata: M): M =>
      next === undefined ? metadata : { ...metadata, annotations: { ...metadata.annotations, ...next } };
    this.#known =
      known === undefined
        ? await client.create(leases, { metadata: marked(this.#metadata()), spec }, { signal })
        : await client.replace(leases, { ...known, metadata: marked(known.metadata), spec }, { signal });
    if (holderIdentity !== this.#options.identity)
      this.#predecessorAt = Number.isNaN(renewedAt) ? undefined : renewedAt;
    marks?.wrote(this.#known);
    this.#written = this.#known;
    this.#seenAt = clock.monotonic();
  }

  /** Gives it up if it is ours, so that a successor need not wait until it lapses. */
  async release(signal: AbortSignal): Promise<void> {
    const { client, identity } = this.#options;
    const known = this.#known;
    if (known?.spec?.holderIdentity !== identity) return;
    const spec = { ...known.spec, holderIdentity: '', leaseDurationSeconds: 1 };
    this.#known = await client.replace(leases, { ...known, spec }, { signal });
  }

  /**
   * Our own record, but older than we wrote it: the server has lost that write. With clocks that are apart, two programs of one
   * name may look so; then everything is merely listed once more. Whoever sets marks knows better.
   */
  #suspect(lease: Lease): void {
    const { client, identity, marks } = this.#options;
    const written = this.#written;
    if (marks !== undefined || written === undefined || lease.spec?.holderIdentity !== identity) return;
    const isOlder = (lease.spec.renewTime ?? '') < (written.spec?.renewTime ?? '');
    if (lease.metadata.uid !== written.metadata.uid || !isOlder) return;
    this.#written = undefined;
    tellLostHistory(client, `Lease ${lease.metadata.name} is older than it was written`);
  }

  #renewed(durationMs = this.#options.durationMs): NonNullable<Lease['spec']> {
    const { clock, identity } = this.#options;
    const now = microTime(clock.now());
    const before = this.#known?.spec;
    const keeps = before?.holderIdentity === identity;
    return {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(durationMs / 1000),
      renewTime: now,
      acquireTime: keeps ? (before.acquireTime ?? now) : now,
      leaseTransitions: (before?.leaseTransitions ?? -1) + (keeps ? 0 : 1),
    };
  }

  #metadata(): DraftMeta {
    const { namespace, name, ownerReferences, labels } = this.#options;
    return {
      namespace,
      name,
      ...(ownerReferences === undefined ? {} : { ownerReferences: ownerReferences() }),
      ...(labels === undefined ? {} : { labels }),
    };
  }
}

function withoutCandidate(lease: Lease | undefined): Lease | undefined {
  const annotations = lease?.metadata.annotations;
  if (lease === undefined || annotations === undefined) return lease;
  return {
    ...lease,
    metadata: { ...lease.metadata, annotations: withoutKeys(annotations, [ANNOTATION_CANDIDATE]) },
  };
}

/** `metav1.MicroTime`; we know milliseconds only. */
export const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');
