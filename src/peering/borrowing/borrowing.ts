import type { Component } from '../../lib/lifecycle.ts';
import type { BorrowingSide, PeerIdentity, PeeringReport } from '../ports.ts';
import type { Documents, DocumentChanges } from '../protocol/documents.ts';
import type { BorrowingOptions } from './ports.ts';

/** We as consumer: from an offer to a virtual node, and back. */
export class Borrowing implements BorrowingSide {
  readonly #options: BorrowingOptions;

  constructor(options: BorrowingOptions) {
    this.#options = options;
  }

  components(): Component[] {
    return [];
  }

  documents(clusterID: string): Pick<Documents, 'request' | 'acceptance'> {
    const { wanted } = this.#options.wishes.wish(clusterID);
    return wanted ? { request: { clusterName: this.#options.clusterName, namespaces: [] } } : {};
  }

  async received(_peer: PeerIdentity, _changes: Pick<DocumentChanges, 'offer' | 'grant'>): Promise<void> {
    await Promise.resolve();
  }

  report(_clusterID: string): PeeringReport {
    return { phase: 'None' };
  }

  onChange(_listener: (clusterID: string) => void): () => void {
    return () => undefined;
  }
}
