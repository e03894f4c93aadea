import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { isConditionTrue } from '../../api/conditions.ts';
import { PEERING_REQUEST_CONDITIONS, type PeeringRequest } from '../../api/peering-request.ts';
import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { PeerIdentity } from '../ports.ts';
import type { AcceptanceDocument, DocumentChanges, RequestDocument } from '../protocol/documents.ts';
import { judgeAcceptance } from './acceptance.ts';
import type { Inbox } from './inbox.ts';

export interface IntakeOptions {
  clock: Clock;
  inbox: Inbox;
  /** Our own ClusterID. */
  own: string;
  /** By ClusterID. */
  requests: { get(name: string): PeeringRequest | undefined; list(): Iterable<PeeringRequest> };
  isLinked: (clusterID: string) => boolean;
  /** There is news of that peer. */
  heard: (clusterID: string) => void;
}

/** Home namespaces of one peer. */
const MAX_NAMESPACES = 64;
/** Requests that nobody has let in: IDs cost nothing, objects do. */
const MAX_STRANGERS = 200;

/** What peers say, checked before anything is made of it. */
export class Intake {
  readonly #options: IntakeOptions;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Takes what is in order; throws what is wrong with the rest, in one line for the peer. */
  take(peer: PeerIdentity, changes: Pick<DocumentChanges, 'request' | 'acceptance'>): void {
    const { clock, inbox, heard } = this.#options;
    const { request, acceptance } = changes;
    const problems: unknown[] = [];
    const passes = (check: () => void): boolean => {
      try {
        check();
        return true;
      } catch (error) {
        problems.push(error);
        return false;
      }
    };
    const taken = {
      ...(request !== undefined && passes(() => this.#checkRequest(peer, request)) && { request }),
      ...(acceptance !== undefined &&
        passes(() => this.#checkAcceptance(peer, acceptance)) && { acceptance }),
    };
    if (Object.keys(taken).length > 0) {
      inbox.hear(peer, taken, clock.monotonic());
      heard(peer.clusterID);
    }
    // The link tells the peer, and the log once.
    if (problems.length > 0) throw problems[0];
  }

  #checkRequest({ clusterID }: PeerIdentity, request: RequestDocument | null): void {
    if (clusterID === this.#options.own) {
      throw new TributaryError('Invalid', 'a cluster does not lend to itself');
    }
    if (request === null) return;
    const namespaces = new Set(request.namespaces);
    if (namespaces.size > MAX_NAMESPACES) {
      throw new TributaryError(
        'Invalid',
        `${namespaces.size} namespaces are asked for, at most ${MAX_NAMESPACES} are lent to one peer`,
      );
    }
    for (const namespace of namespaces) checkHomeNamespace(namespace);
    this.#refuseFlood(clusterID);
  }

  #refuseFlood(clusterID: string): void {
    const { inbox, requests, heard } = this.#options;
    if (requests.get(clusterID) !== undefined) return;
    const strangers = this.#strangers();
    strangers.delete(clusterID);
    if (strangers.size < MAX_STRANGERS) return;
    const gone = [...strangers].find((it) => this.#mayBeForgotten(it));
    if (gone === undefined) {
      throw new TributaryError(
        'TooManyRequests',
        `${strangers.size} clusters wait to be let in here; no more are taken down until some are decided about`,
        { retryAfterMs: 60_000 },
      );
    }
    inbox.withdraw(gone);
    heard(gone);
  }

  /** Who has asked and was not let in, or not yet. */
  #strangers(): Set<string> {
    const { inbox, requests } = this.#options;
    const strangers = new Set(inbox.asking());
    for (const { metadata, status } of requests.list()) {
      if (isConditionTrue(status?.conditions, PEERING_REQUEST_CONDITIONS.approved)) {
        strangers.delete(metadata.name);
      } else if (inbox.get(metadata.name).request !== null) {
        strangers.add(metadata.name);
      }
    }
    return strangers;
  }

  /** A stranger that has gone again, and about whom nobody has said a word. */
  #mayBeForgotten(clusterID: string): boolean {
    const { isLinked, requests } = this.#options;
    return !isLinked(clusterID) && requests.get(clusterID)?.spec.approval === undefined;
  }

  #checkAcceptance(peer: PeerIdentity, acceptance: AcceptanceDocument | null): void {
    const { clock, requests } = this.#options;
    const status = requests.get(peer.clusterID)?.status ?? {};
    if (acceptance !== null) judgeAcceptance(acceptance, peer, { status, nowMs: clock.now() });
  }
}

/** Names that would be reserved here as well, whatever is put behind them. */
function checkHomeNamespace(namespace: string): void {
  const isName = namespace.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace);
  if (isName && !isClusterNamespace(namespace)) return;
  throw new TributaryError(
    'Invalid',
    `namespace ${JSON.stringify(namespace.slice(0, 80))} is not one that can be offloaded`,
  );
}
