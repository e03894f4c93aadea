import type { FenceTerms } from '../../api/cluster-mode.ts';
import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { Advertisement, OfferDecision } from '../../api/advertisement.ts';
import type { OffloadedNamespace } from '../../api/namespace-offloading.ts';
import type { Contract, SignedContract } from '../../api/offer.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { ResourceList } from '../../api/wire.ts';
import type { EventSubject } from '../../kube/events.ts';
import type { PeeringReport } from '../ports.ts';
import type { GrantDocument, OfferDocument } from '../protocol/documents.ts';

/** What people and policies here want of one provider. */
export interface BorrowingIntent {
  wanted: boolean;
  /** Home namespaces that the ForeignCluster names; those of the policy are added. */
  namespaces: readonly string[];
  /** The one that decides about this provider's offers. */
  policy?: AcceptancePolicy;
  /** The provider's one-time token. */
  joinToken?: string;
  /** Tether: we hand ourselves over to it. Device: it has handed itself over to us. */
  tie?: 'Tether' | 'Device';
  /** Of a tether: when it is to stop what we forward to it. */
  fence?: FenceTerms;
  /** Take it down without waiting for pods to end well. */
  force?: boolean;
  /** The ForeignCluster, for events while there is no Advertisement yet. */
  subject?: EventSubject;
}

/** Which home namespaces are to be at one provider, and how. */
export interface DesiredNamespaces {
  /** Sorted; no more than a provider takes. */
  readonly names: readonly string[];
  /** Named by people, but absent here or the cluster's own. */
  readonly leftOut: readonly string[];
  /** By name: what a NamespaceOffloading says of it. */
  readonly offloaded: ReadonlyMap<string, OffloadedNamespace>;
}

/** What one provider has said last. Undefined: nothing yet; null: that there is none. */
export interface ReceivedDocuments {
  readonly offer?: OfferDocument | null;
  readonly grant?: GrantDocument | null;
  readonly publicKey?: Uint8Array;
  /** Why its last offer or grant was not taken. */
  readonly refusal?: string;
}

/** All that is known of one provider, at one moment. */
export interface BorrowingFacts {
  nowMs: number;
  intent: BorrowingIntent;
  desired: DesiredNamespaces;
  received: ReceivedDocuments;
  /** There is a link to it now. */
  isLinked: boolean;
  /** For how long this process has known of no link to it, milliseconds of the monotonic clock; 0 while there is one. */
  silentForMs: number;
  /** The contract that the provider has signed, as its last word proves. */
  proved?: { text: string; signature: string };
  advertisement: Advertisement | undefined;
  /** There is a VirtualNode, a Secret or something that its Advertisement names: something may exist because of it. */
  hasBelongings: boolean;
}

/** What is thought of the offer as it is now. */
export interface OfferAssessment {
  decision: OfferDecision;
  /** One of ADVERTISEMENT_REASONS. */
  reason: string;
  message: string;
  /** What is taken of it, where it is accepted. */
  resources?: ResourceList;
  /** Pods are to be kept for so long at most; absent: as offered. */
  maxKeepForSeconds?: number;
  policy?: string;
  /** The offer no longer covers what was agreed on: nothing new is to be placed there. */
  closes?: true;
}

/** What is to be done next. Each step may safely begin again after a crash. */
export type Step =
  /** Nothing is to be done, but the status is written. */
  | { kind: 'rest'; report: PeeringReport; assessment?: OfferAssessment; contract?: SignedContract }
  /** Keep the last offer as an Advertisement, before anything is made of it. */
  | { kind: 'keep' }
  /** Sign this contract and keep it; only then it is sent. */
  | { kind: 'sign'; assessment: OfferAssessment; contract: Contract }
  /** Run pods over there. */
  | {
      kind: 'use';
      assessment: OfferAssessment;
      contract: SignedContract;
      /** Absent while a newer contract waits for the provider: what is there stays as it is. */
      terms?: Contract;
      /** Why nothing new is to be placed there. */
      closed?: string;
    }
  /** Take down what was made. */
  | {
      kind: 'end';
      report: PeeringReport;
      assessment?: OfferAssessment;
      /** The provider keeps its side until we are done. */
      contract?: SignedContract;
      /** The Advertisement is deleted, too. */
      forget: boolean;
      /** The agent can do nothing over there any more. */
      revoked: boolean;
      /** When the provider ends it, whatever we do; milliseconds since 1970. */
      untilMs?: number;
    };

/** One provider whose pods are to run, as it is now. */
export interface ActiveProvider {
  clusterID: string;
  facts: BorrowingFacts;
  step: Extract<Step, { kind: 'use' }>;
  advertisement: Advertisement;
  /** VirtualNodes that were made because of it. */
  ours: readonly VirtualNode[];
  signal: AbortSignal;
}
