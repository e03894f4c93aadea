import { createHash } from 'node:crypto';

import type { Clock } from '../../lib/clock.ts';
import { Pace, type PaceLimits } from '../../lib/pace.ts';
import { remember } from '../../lib/remember.ts';
import { DOCUMENT_KINDS, type DocumentKind, type Documents } from '../protocol/documents.ts';

const NEGOTIATED: PaceLimits = { free: 40, baseMs: 1_000, quietMs: 15_000 };

/**
 * How often a document of one peer may change. What a peer says is written into objects, and etcd keeps each version of them
 * for minutes; so the budgets are here, where the words come in, and hold for all that follows from them. The free turns are
 * several times what two clusters say while a peering comes up, or while everything fails over.
 */
export const DOCUMENT_PACES: Readonly<Record<DocumentKind, PaceLimits>> = {
  request: NEGOTIATED,
  acceptance: NEGOTIATED,
  offer: NEGOTIATED,
  grant: NEGOTIATED,
  // Each change of a Tunnel is worked on by the gateway and by every node. A peering that comes and goes takes about five.
  network: { free: 40, baseMs: 1_000, quietMs: 30_000 },
  // Endpoints change with each pod that comes or goes behind a Service.
  services: { free: 120, baseMs: 1_000, quietMs: 5_000 },
};

/** A document of this size counts as one more change. */
const COST_BYTES = 16 * 1024;
const MAX_PEERS = 4096;

/** The budgets of all peers. It outlives links, so that a new link brings no new budget. */
export class DocumentPaces {
  readonly #paces: ReadonlyMap<DocumentKind, Pace>;
  /** By kind and peer: the digest of what was handed over last. */
  readonly #handed = new Map<string, string>();

  constructor(clock: Clock) {
    this.#paces = new Map(
      DOCUMENT_KINDS.map((kind) => [kind, new Pace({ clock, ...DOCUMENT_PACES[kind], maxKeys: MAX_PEERS })]),
    );
  }

  /** 0: it may be handed over now, and counts as that. Otherwise how long it has to wait, in milliseconds. */
  turn<Kind extends DocumentKind>(peer: string, kind: Kind, document: Documents[Kind] | null): number {
    const text = JSON.stringify(document);
    const digest = createHash('sha256').update(text).digest('base64');
    const key = `${kind}/${peer}`;
    // A peer says everything again on each new link.
    if (this.#handed.get(key) === digest) return 0;
    const waitMs = this.#paces.get(kind)?.turn(peer, 1 + Math.floor(text.length / COST_BYTES)) ?? 0;
    if (waitMs === 0) remember(this.#handed, key, digest, MAX_PEERS * DOCUMENT_KINDS.length);
    return waitMs;
  }
}
