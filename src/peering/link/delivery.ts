import { Backoff, type Random } from '../../lib/backoff.ts';
import type { Basics } from '../../lib/basics.ts';
import { errorCode, errorMessage, hasCode } from '../../lib/errors.ts';
import { Pause } from '../../lib/pause.ts';
import type { BorrowingSide, LendingSide, NetworkSide, PeerIdentity, ServicesSide } from '../ports.ts';
import { DOCUMENT_KINDS, type DocumentChanges } from '../protocol/documents.ts';
import type { DocumentPaces } from './document-paces.ts';

export interface DeliveryOptions extends Basics {
  peer: PeerIdentity;
  /** Whether it can say everything again: it has a link. */
  isPresent: () => boolean;
  lending: Pick<LendingSide, 'received'>;
  borrowing: Pick<BorrowingSide, 'received'>;
  /** Absent: what is said of the network is passed over. */
  network?: Pick<NetworkSide, 'received'>;
  /** Likewise. */
  services?: Pick<ServicesSide, 'received'>;
  /** How often each of its documents may change. */
  paces: Pick<DocumentPaces, 'turn'>;
  random: Random;
}

/** Tells the sender that its words have arrived, and what is wrong with them. */
export type Acknowledge = (problem: string | undefined) => void;

type Side = 'lending' | 'borrowing' | 'network' | 'services';
/** In this order: first what makes a peering, then what comes with it. */
const SIDES: readonly Side[] = ['lending', 'borrowing', 'network', 'services'];
const KINDS = {
  lending: ['request', 'acceptance'],
  borrowing: ['offer', 'grant'],
  network: ['network'],
  services: ['services'],
} as const;
const RETRY_BASE_MS = 500;
const RETRY_CAP_MS = 60_000;
const MAX_ACKNOWLEDGES = 4;
const MIN_RETRY_MS = 50;

/**
 * Hands what one peer has said to lending, borrowing, the network and the Services, in order, one batch at a time,
 * whatever link it came by. While one batch is handed over, newer documents replace older ones of their kind. If the
 * failure is ours (the API server is away), it tries again by itself until it succeeds or something newer comes. If the
 * peer has gone since, it keeps only withdrawals, which must not be lost; the peer says the rest again when it comes
 * back, and strangers that come under ever new names leave nothing behind.
 *
 * A document that changes too often waits for its turn, and its last version is handed over. The sender is told at once
 * that it has arrived, since what else it has to say is not to wait; what is wrong with such a document is only logged.
 */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #abort = new AbortController();
  readonly #backoff: Backoff;
  #waiting: DocumentChanges = {};
  #acknowledges: Acknowledge[] = [];
  #running: Promise<void> | undefined;
  readonly #pause: Pause;
  #lastProblem: string | undefined;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    const { clock, random } = options;
    this.#backoff = new Backoff({ baseMs: RETRY_BASE_MS, capMs: RETRY_CAP_MS, random });
    this.#pause = new Pause(clock);
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** `idle` is called once all is done that was given up to then. */
  give(changes: DocumentChanges, acknowledge: Acknowledge, idle: () => void): void {
    this.#waiting = { ...this.#waiting, ...changes };
    this.#acknowledges.push(acknowledge);
    // Each link waits for one at most; of a peer that comes back faster than we work, the old links are gone.
    if (this.#acknowledges.length > MAX_ACKNOWLEDGES) this.#acknowledges.shift();
    this.#pause.end();
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      idle();
    });
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted && (this.#acknowledges.length > 0 || Object.keys(this.#waiting).length > 0)) {
      const [changes, acknowledges] = [this.#waiting, this.#acknowledges];
      [this.#waiting, this.#acknowledges] = [{}, []];
      const { due, later, waitMs } = this.#inTurn(
        acknowledges.length > 0 ? changes : this.#worthAnother(changes),
      );
      const { problem, again } = await this.#deliver(due);
      this.#tell(problem);
      for (const acknowledge of acknowledges) acknowledge(problem);
      // What has come meanwhile is newer.
      this.#waiting = { ...later, ...again, ...this.#waiting };
      const hasFailed = Object.keys(again).length > 0;
      if (!hasFailed) this.#backoff.reset();
      const pauseMs = Math.min(waitMs, hasFailed ? MIN_RETRY_MS + this.#backoff.next() : Infinity);
      if (pauseMs < Infinity && this.#acknowledges.length === 0) await this.#pause.for(pauseMs, signal);
    }
  }

  /** Those whose turn it is, those that have to wait, and how long until it is the turn of the first of them. */
  #inTurn(changes: DocumentChanges): { due: DocumentChanges; later: DocumentChanges; waitMs: number } {
    const { paces, peer } = this.#options;
    const [due, later]: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
    let soonestMs = Infinity;
    for (const kind of DOCUMENT_KINDS) {
      const document = changes[kind];
      if (document === undefined) continue;
      const waitMs = paces.turn(peer.clusterID, kind, document);
      (waitMs === 0 ? due : later)[kind] = document;
      if (waitMs > 0) soonestMs = Math.min(soonestMs, waitMs);
    }
    return { due, later, waitMs: soonestMs };
  }

  /** Returns what to tell the sender, and what to try again. */
  async #deliver(changes: DocumentChanges): Promise<{ problem: string | undefined; again: DocumentChanges }> {
    const problems: string[] = [];
    let again: DocumentChanges = {};
    for (const side of SIDES) {
      const part = pick(changes, side);
      if (Object.keys(part).length === 0) continue;
      try {
        await this.#options[side]?.received(this.#options.peer, part);
      } catch (error) {
        problems.push(toldOf(error));
        if (!isTheirs(error)) again = { ...again, ...this.#worthAnother(part) };
        if (errorCode(error) === undefined) {
          this.#options.log.error('cannot take what a peer said', { side, error: errorMessage(error) });
        }
      }
    }
    return { problem: problems.length === 0 ? undefined : problems.join('; '), again };
  }

  #worthAnother(part: DocumentChanges): DocumentChanges {
    if (this.#options.isPresent()) return part;
    return Object.fromEntries(Object.entries(part).filter(([, document]) => document === null));
  }

  #tell(problem: string | undefined): void {
    if (problem !== undefined && problem !== this.#lastProblem) {
      this.#options.log.warn('a peer sent what cannot be used', { problem });
    }
    this.#lastProblem = problem;
  }
}

function pick(changes: DocumentChanges, side: Side): DocumentChanges {
  const part: Record<string, unknown> = {};
  for (const kind of KINDS[side]) if (changes[kind] !== undefined) part[kind] = changes[kind];
  return part;
}

/** The text of an error that is meant for peers; of a bug we tell strangers nothing. */
const toldOf = (error: unknown): string =>
  errorCode(error) === undefined ? 'internal error' : (error as Error).message;

/** Whether the same documents would fail again until the peer changes something. */
const isTheirs = (error: unknown): boolean =>
  hasCode(error, 'Invalid', 'Forbidden', 'Unauthorized', 'NotFound', 'AlreadyExists', 'Expired');
