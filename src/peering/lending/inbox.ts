import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import { isConditionTrue } from '../../api/conditions.ts';
import { PEERING_REQUEST_CONDITIONS, type PeeringRequest } from '../../api/peering-request.ts';
import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';
import { LastWords } from '../../lib/last-words.ts';
import type { TokenCheckResult } from '../identity/join-tokens.ts';
import type { PeerIdentity, PeerLinks } from '../ports.ts';
import type { AcceptanceDocument, DocumentChanges, RequestDocument } from '../protocol/documents.ts';
import { judgeAcceptance } from './acceptance.ts';

/** What a peer said last, checked in form and signature. */
export interface Heard {
  readonly request?: RequestDocument | null;
  readonly acceptance?: AcceptanceDocument | null;
  /** The time since which each has been null; monotonic milliseconds. */
  readonly requestSince?: number;
  readonly acceptanceSince?: number;
  /** Who said so; TLS has proved it. */
  readonly peer?: PeerIdentity;
  /** What became of the join token in that request, where it was refused. */
  readonly refusedToken?: TokenCheckResult;
  /** End of the last token that was handed out, RFC 3339. */
  readonly credentialExpires?: string;
}

export interface InboxOptions {
  clock: Clock;
  /** Our own ClusterID. */
  own: string;
  /** By ClusterID. */
  requests: { get(name: string): PeeringRequest | undefined; list(): Iterable<PeeringRequest> };
  links: Pick<PeerLinks, 'view'>;
  /** Called when that peer has said something new. */
  heard: (clusterID: string) => void;
}

type Changes = Pick<DocumentChanges, 'request' | 'acceptance'>;

/** How many home namespaces one peer may ask for. */
const MAX_NAMESPACES = 64;
/** How many peers that nobody has let in may have a PeeringRequest: IDs cost nothing, objects do. */
const MAX_STRANGERS = 200;

/** Checks what peers say, and keeps the last word of each. */
export class Inbox {
  readonly #options: InboxOptions;
  readonly #words = new LastWords<Heard>();

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  of(clusterID: string): Heard {
    return this.#words.of(clusterID);
  }

  /** Peers that want something. */
  *asking(): Iterable<string> {
    for (const [clusterID, { request }] of this.#words.entries()) if (request) yield clusterID;
  }

  note(clusterID: string, news: Pick<Heard, 'refusedToken' | 'credentialExpires'>): void {
    this.#words.update(clusterID, news);
  }

  forget(clusterID: string): void {
    this.#words.forget(clusterID);
  }

  /** Takes the documents that are in order. Throws what is wrong with the others, in one line for the peer. */
  take(peer: PeerIdentity, changes: Changes): void {
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
      this.#hear(peer, taken);
      this.#options.heard(peer.clusterID);
    }
    // The link tells the peer, and logs it once.
    if (problems.length > 0) throw problems[0];
  }

  #hear(peer: PeerIdentity, { request, acceptance }: Changes): void {
    const { clusterID } = peer;
    const { refusedToken, ...before } = this.of(clusterID);
    const isSameToken = request === undefined || request?.joinToken === before.request?.joinToken;
    const nowMs = this.#options.clock.monotonic();
    this.#words.replace(clusterID, {
      ...before,
      peer,
      ...(isSameToken && refusedToken !== undefined && { refusedToken }),
      ...(request !== undefined && { request }),
      ...(request === null && before.request !== null && { requestSince: nowMs }),
      ...(acceptance !== undefined && { acceptance }),
      ...(acceptance === null && before.acceptance !== null && { acceptanceSince: nowMs }),
    });
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
    this.#makeRoom(clusterID);
  }

  /** If too many strangers wait, removes one whose link has gone. Throws TooManyRequests if there is none. */
  #makeRoom(clusterID: string): void {
    const { requests, heard } = this.#options;
    if (requests.get(clusterID) !== undefined) return;
    const strangers = this.#strangers();
    strangers.delete(clusterID);
    if (strangers.size < MAX_STRANGERS) return;
    const gone = [...strangers].find((it) => this.#mayBeForgotten(it));
    if (gone === undefined) {
      throw new TributaryError(
        'TooManyRequests',
        `${strangers.size} clusters wait to be let in here; no further requests are taken until some of these are decided`,
        { retryAfterMs: 60_000 },
      );
    }
    // Treat it as if it had said long ago that it wants nothing.
    this.#words.replace(gone, { request: null });
    heard(gone);
  }

  /** Peers that have asked and were not let in, or not yet. */
  #strangers(): Set<string> {
    const strangers = new Set<string>();
    for (const clusterID of this.asking()) strangers.add(clusterID);
    for (const { metadata, status } of this.#options.requests.list()) {
      if (isConditionTrue(status?.conditions, PEERING_REQUEST_CONDITIONS.approved)) {
        strangers.delete(metadata.name);
      } else if (this.of(metadata.name).request !== null) {
        strangers.add(metadata.name);
      }
    }
    return strangers;
  }

  /** A stranger that has gone again, and about which no person has decided. */
  #mayBeForgotten(clusterID: string): boolean {
    const { links, requests } = this.#options;
    return links.view(clusterID) === undefined && requests.get(clusterID)?.spec.approval === undefined;
  }

  #checkAcceptance(peer: PeerIdentity, acceptance: AcceptanceDocument | null): void {
    const { clock, requests } = this.#options;
    const status = requests.get(peer.clusterID)?.status ?? {};
    if (acceptance !== null) judgeAcceptance(acceptance, peer, { status, nowMs: clock.now() });
  }
}

/** Namespaces that Kubernetes or Tributary reserve cannot be offloaded, whatever suffix their tenant would get. */
function checkHomeNamespace(namespace: string): void {
  const isName = namespace.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace);
  if (isName && !isClusterNamespace(namespace)) return;
  throw new TributaryError(
    'Invalid',
    `namespace ${JSON.stringify(namespace.slice(0, 80))} is not one that can be offloaded`,
  );
}
