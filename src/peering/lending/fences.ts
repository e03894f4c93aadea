import { randomBytes } from 'node:crypto';

import type { FenceTerms } from '../../api/cluster-mode.ts';
import type { PeeringPhase } from '../../api/foreign-cluster.ts';
import { type PeeringRequest, peeringRequests } from '../../api/peering-request.ts';
import { leases } from '../../api/resources.ts';
import type { Lease } from '../../api/wire.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { microTime } from '../../kube/lease.ts';
import { deleteByUid } from '../../kube/write.ts';
import { hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { RenewParams, RenewResult } from '../protocol/documents.ts';

interface FencesOptions extends ClusterBasics {
  /** Where the Leases are. */
  systemNamespace: string;
  requests: { get(clusterID: string): PeeringRequest | undefined };
  /** Called with a peer whose fence has closed or opened. */
  changed: (clusterID: string) => void;
}

/** A ticket, or what is left of the last one that was shown. */
interface Issued extends FenceTerms {
  /** Monotonic. */
  atMs: number;
}

interface Fence {
  /** By their text; the last few. */
  tickets: Map<string, Issued & { wallMs: number }>;
  /** The latest that was shown; undefined: none was. */
  shown: Issued | undefined;
  /** As last read or written. */
  lease: Lease | undefined;
  cancel: () => void;
}

/** A peer asks again before the last ticket is of use; more than one is under way only where links change. */
const MOST_TICKETS = 4;
const MS = 1000;
/** Those whose request was approved. One that is denied may still be ending. */
const LET_IN: ReadonlySet<PeeringPhase | undefined> = new Set([
  'Offered',
  'Accepted',
  'Established',
  'Ending',
]);

/** Between two writes of a Lease. A device shows a ticket each quarter of its time. */
const spacingMs = ({ afterSeconds }: FenceTerms): number => Math.min(1, afterSeconds / 8) * MS;

const isClosed = ({ shown }: Fence, nowMs: number): boolean =>
  shown !== undefined && nowMs >= shown.atMs + shown.afterSeconds * MS;

/**
 * Whether pods of devices may run here although their home may run them itself. A device shows a ticket that we have issued, and
 * our own clock counts from that issue: whatever is delayed on the way makes us stop earlier, and never later, than the device
 * believes. A fence that has closed opens only for a ticket that was issued after that, of a device that says it runs none of
 * these pods. The Lease keeps the issue time for the next process, whose clock may be another one; the device's margin is for that.
 */
export class Fences {
  readonly #options: FencesOptions;
  readonly #fences = new Map<string, Promise<Fence>>();

  constructor(options: FencesOptions) {
    this.#options = options;
  }

  /** Throws Forbidden where no fence was agreed on: a peer that nobody has let in can say that it wants one. */
  async renew(clusterID: string, params: RenewParams, signal: AbortSignal): Promise<RenewResult> {
    const { clock, requests } = this.#options;
    const { spec, metadata, status } = requests.get(clusterID) ?? {};
    const isLetIn = LET_IN.has(status?.phase);
    if (spec?.fence === undefined || !isLetIn || metadata?.deletionTimestamp !== undefined) {
      throw new TributaryError('Forbidden', 'nothing is to be renewed: no fence was agreed on');
    }
    const terms = spec.fence;
    const fence = await this.#of(clusterID, signal);
    const ticket = params.ticket === undefined ? undefined : fence.tickets.get(params.ticket);
    if (ticket !== undefined)
      await this.#show(clusterID, fence, { ticket, ...(params.resume && { resume: true }) }, signal);
    const state =
      fence.shown === undefined ? 'Waiting' : isClosed(fence, clock.monotonic()) ? 'Closed' : 'Held';
    return { ...terms, ticket: this.#issue(fence, terms), state };
  }

  /** Whether its pods must not run here now. */
  async isClosed(clusterID: string, signal: AbortSignal): Promise<boolean> {
    return isClosed(await this.#of(clusterID, signal), this.#options.clock.monotonic());
  }

  /** No fence is agreed on any more. `isDevice`: there may be one of before this process. */
  async drop(clusterID: string, isDevice: boolean, signal: AbortSignal): Promise<void> {
    if (!isDevice && !this.#fences.has(clusterID)) return;
    const fence = await this.#of(clusterID, signal);
    if (fence.lease !== undefined) await deleteByUid(this.#options.client, leases, fence.lease, { signal });
    fence.cancel();
    Object.assign(fence, { lease: undefined, shown: undefined });
    fence.tickets.clear();
    if (!isDevice) this.#fences.delete(clusterID);
  }

  #issue({ tickets }: Fence, { afterSeconds, stopSeconds }: FenceTerms): string {
    const { clock } = this.#options;
    const text = randomBytes(18).toString('base64url');
    tickets.set(text, { afterSeconds, stopSeconds, atMs: clock.monotonic(), wallMs: clock.now() });
    for (const old of [...tickets.keys()].slice(0, -MOST_TICKETS)) tickets.delete(old);
    return text;
  }

  async #show(
    clusterID: string,
    fence: Fence,
    { ticket, resume }: { ticket: Issued & { wallMs: number }; resume?: true },
    signal: AbortSignal,
  ): Promise<void> {
    const { shown } = fence;
    const wasClosed = isClosed(fence, this.#options.clock.monotonic());
    const opensMs = shown === undefined ? -Infinity : shown.atMs + shown.afterSeconds * MS;
    if (wasClosed && !(resume === true && ticket.atMs > opensMs)) return;
    if (shown !== undefined && ticket.atMs <= shown.atMs) return;
    // Who shows more of them is held by the last that was written: we would stop earlier, never later.
    if (shown !== undefined && !wasClosed && ticket.atMs - shown.atMs < spacingMs(ticket)) return;
    // First: what the device is told to be held must be held by the next process, too.
    fence.lease = await this.#write(clusterID, fence.lease, ticket, signal).catch(async (error: unknown) => {
      // It has gone with an earlier request, or the process before this one has written it once more.
      if (!hasCode(error, 'NotFound', 'Conflict', 'AlreadyExists')) throw error;
      return this.#write(clusterID, await this.#stored(clusterID, signal), ticket, signal);
    });
    fence.shown = ticket;
    this.#arm(clusterID, fence);
    if (wasClosed) this.#options.changed(clusterID);
  }

  #arm(clusterID: string, fence: Fence): void {
    const { clock, changed } = this.#options;
    fence.cancel();
    const { shown } = fence;
    if (shown === undefined) return;
    const leftMs = shown.atMs + shown.afterSeconds * MS - clock.monotonic();
    fence.cancel = clock.after(Math.max(0, leftMs), () => changed(clusterID));
  }

  async #write(
    clusterID: string,
    lease: Lease | undefined,
    { wallMs, afterSeconds }: { wallMs: number; afterSeconds: number },
    signal: AbortSignal,
  ): Promise<Lease> {
    const { client, requests, systemNamespace: namespace } = this.#options;
    const renewTime = microTime(wallMs);
    const spec = { holderIdentity: clusterID, renewTime, leaseDurationSeconds: afterSeconds };
    if (lease !== undefined) return client.replace(leases, { ...lease, spec }, { signal });
    const owner = requests.get(clusterID);
    const { group, version, kind } = peeringRequests;
    const metadata = {
      namespace,
      name: nameOf(clusterID),
      ownerReferences: owner
        ? [{ apiVersion: `${group}/${version}`, kind, name: clusterID, uid: owner.metadata.uid }]
        : [],
    };
    return client.create(leases, { metadata, spec }, { signal });
  }

  /** One read for each process and peer; a read that fails is made again. */
  async #of(clusterID: string, signal: AbortSignal): Promise<Fence> {
    const known = this.#fences.get(clusterID);
    if (known !== undefined) return known;
    const reading = this.#read(clusterID, signal);
    this.#fences.set(clusterID, reading);
    try {
      return await reading;
    } catch (error) {
      this.#fences.delete(clusterID);
      throw error;
    }
  }

  async #stored(clusterID: string, signal: AbortSignal): Promise<Lease | undefined> {
    const { client, systemNamespace: namespace } = this.#options;
    const ref = { namespace, name: nameOf(clusterID) };
    return client.get(leases, ref, { signal }).catch(ignoring('NotFound'));
  }

  async #read(clusterID: string, signal: AbortSignal): Promise<Fence> {
    const { clock, requests } = this.#options;
    const lease = await this.#stored(clusterID, signal);
    const fence: Fence = { tickets: new Map(), shown: undefined, lease, cancel: () => undefined };
    if (lease === undefined) return fence;
    const { renewTime = '', leaseDurationSeconds: afterSeconds = 0 } = lease.spec ?? {};
    // One that cannot be read, or has no time, counts as lapsed; one from the future as new.
    const ageMs = Math.max(0, clock.now() - (Date.parse(renewTime) || 0));
    const { stopSeconds = 0 } = requests.get(clusterID)?.spec.fence ?? {};
    fence.shown = { atMs: clock.monotonic() - ageMs, afterSeconds, stopSeconds };
    this.#arm(clusterID, fence);
    return fence;
  }
}

const nameOf = (clusterID: string): string => `tributary-fence-${clusterID}`;
