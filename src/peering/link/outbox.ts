import { createHash } from 'node:crypto';
import type { Basics } from '../../lib/basics.ts';
import { errorMessage } from '../../lib/errors.ts';
import {
  DOCUMENT_KINDS,
  type DocumentChanges,
  type DocumentKind,
  type Documents,
} from '../protocol/documents.ts';
import { MAX_MESSAGE_BYTES } from './message.ts';

export interface OutboxOptions extends Basics {
  /** All that we have to say now; throws while that is not known. */
  documents: () => Documents;
  send: (id: number, changes: DocumentChanges) => void;
}

/** Of a message, for what is around the documents. */
const ENVELOPE_BYTES = 1_024;
const RETRY_MS = 1_000;

/**
 * Sends one peer our documents whenever they change. The first message names every kind, so that it takes back what was
 * said on an earlier link and no longer holds; later ones name only what differs. One message at a time is under way:
 * what changes meanwhile is sent once, in its latest state.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  /** Digest of what was sent last, by kind; null where that was nothing. */
  readonly #sent = new Map<DocumentKind, string | null>();
  readonly #tooLarge = new Set<string>();
  #lastID = 0;
  #underWay: number | undefined;
  #cancelRetry: (() => void) | undefined;
  #lastProblem: string | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** The peer has acknowledged the last word, and that was: nothing. */
  get isSilent(): boolean {
    const said = [...this.#sent.values()];
    return (
      this.#underWay === undefined &&
      said.length === DOCUMENT_KINDS.length &&
      said.every((digest) => digest === null)
    );
  }

  /** Sends what differs, now or once the message under way is acknowledged. */
  pump(): void {
    if (this.#underWay !== undefined) return;
    const changes = this.#differences();
    if (changes === undefined) return;
    this.#lastID += 1;
    this.#underWay = this.#lastID;
    this.#options.send(this.#lastID, changes);
  }

  acknowledged(id: number, problem: string | undefined): void {
    if (id !== this.#underWay) return;
    this.#underWay = undefined;
    if (problem !== this.#lastProblem && problem !== undefined) {
      this.#options.log.warn('the peer cannot use what we sent', { problem });
    }
    this.#lastProblem = problem;
    this.pump();
  }

  stop(): void {
    this.#cancelRetry?.();
  }

  /** As many kinds as fit in one message; undefined when nothing differs, or nothing is known. */
  #differences(): DocumentChanges | undefined {
    const documents = this.#read();
    if (documents === undefined) return undefined;
    const changes: Record<string, unknown> = {};
    let room = MAX_MESSAGE_BYTES - ENVELOPE_BYTES;
    for (const kind of DOCUMENT_KINDS) {
      const text = textOf(documents, kind);
      const digest = text === undefined ? null : createHash('sha256').update(text).digest('base64');
      if (this.#sent.get(kind) === digest) continue;
      const bytes = text === undefined ? 0 : Buffer.byteLength(text);
      if (this.#isTooLarge(kind, bytes, digest) || bytes > room) continue;
      room -= bytes;
      changes[kind] = documents[kind] ?? null;
      this.#sent.set(kind, digest);
    }
    return Object.keys(changes).length === 0 ? undefined : changes;
  }

  #read(): Documents | undefined {
    const { documents, clock, log } = this.#options;
    try {
      return documents();
    } catch (error) {
      // We send nothing: to send null would take back what was granted.
      log.warn('cannot tell the peer yet', { error: errorMessage(error) });
      this.#cancelRetry?.();
      this.#cancelRetry = clock.after(RETRY_MS, () => this.pump());
      return undefined;
    }
  }

  #isTooLarge(kind: DocumentKind, bytes: number, digest: string | null): boolean {
    if (bytes <= MAX_MESSAGE_BYTES - ENVELOPE_BYTES || digest === null) return false;
    if (!this.#tooLarge.has(digest)) {
      this.#tooLarge.clear();
      this.#tooLarge.add(digest);
      this.#options.log.error('a document is too large to be sent; the peer keeps the one before', {
        kind,
        bytes,
        limit: MAX_MESSAGE_BYTES,
      });
    }
    return true;
  }
}

function textOf(documents: Documents, kind: DocumentKind): string | undefined {
  const document = documents[kind];
  return document === undefined ? undefined : JSON.stringify(document);
}
