import type { PeeringWish } from '../../api/foreign-cluster.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { LendingSide, PeerIdentity, PeeringReport } from '../ports.ts';
import type { Credential, DocumentChanges, Documents } from '../protocol/documents.ts';
import type { PeerFacts } from '../policy/match.ts';

/** What people and policies of this cluster say about a peer; answered by src/peering/clusters. */
export interface LendingWish {
  incoming: PeeringWish;
  facts: PeerFacts;
}

export class Lending implements LendingSide {
  components(): Component[] {
    return [];
  }

  documents(_clusterID: string): Pick<Documents, 'offer' | 'grant'> {
    return {};
  }

  async received(
    _peer: PeerIdentity,
    _changes: Pick<DocumentChanges, 'request' | 'acceptance'>,
  ): Promise<void> {
    await Promise.resolve();
  }

  async credential(_peer: PeerIdentity, _signal: AbortSignal): Promise<Credential> {
    await Promise.resolve();
    throw new Error('not yet');
  }

  report(_clusterID: string): PeeringReport {
    return { phase: 'None' };
  }

  /** ClusterIDs of peers that have asked. */
  reports(): Iterable<[string, PeeringReport]> {
    return [];
  }

  onChange(_listener: (clusterID: string) => void): () => void {
    return () => undefined;
  }
}
