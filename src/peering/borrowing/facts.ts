import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { Advertisement, OfferDecision } from '../../api/advertisement.ts';
import type { OffloadedNamespace } from '../../api/namespace-offloading.ts';
import type { Contract, SignedContract } from '../../api/offer.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { ResourceList } from '../../api/wire.ts';
import type { EventSubject } from '../../kube/events.ts';
import type { PeeringReport } from '../ports.ts';
import type { GrantDocument, OfferDocument } from '../protocol/documents.ts';

/** All that is known of one provider, at one moment. */
export interface Facts {
  nowMs: number;
  wish: BorrowingWish;
  wanted: WantedNamespaces;
  heard: Heard;
  /** It is at the other end of a link now. */
  isLinked: boolean;
  /** The contract that the provider has proved, in its last word, to have signed. */
  proved?: { text: string; signature: string };
  advertisement: Advertisement | undefined;
  /** A VirtualNode, a Secret, or what its Advertisement names: something may be there because of it. */
  hasBelongings: boolean;
}

/** What is to be thought of the offer as it stands now. */
export interface Verdict {
  decision: OfferDecision;
  /** One of ADVERTISEMENT_REASONS. */
  reason: string;
  message: string;
  /** What is taken of it, where it is accepted. */
  resources?: ResourceList;
  policy?: string;
  /** The offer no longer covers what was agreed on: nothing new is to be placed there. */
  closes?: true;
}

/** What one provider has said last; undefined: nothing yet, null: that there is none. */
export interface Heard {
  readonly offer?: OfferDocument | null;
  readonly grant?: GrantDocument | null;
  readonly publicKey?: Uint8Array;
  /** Why its last offer or grant was not taken. */
  readonly refusal?: string;
}

/** Which home namespaces are to be at one provider, and how. */
export interface WantedNamespaces {
  /** Sorted; no more than a provider takes. */
  readonly names: readonly string[];
  /** Named by people, and not there or the cluster's own. */
  readonly leftOut: readonly string[];
  /** By name: what a NamespaceOffloading says of it besides. */
  readonly offloaded: ReadonlyMap<string, OffloadedNamespace>;
}

/** What people and policies here want of one provider. */
export interface BorrowingWish {
  wanted: boolean;
  /** Home namespaces that the ForeignCluster names; those of the policy come on top. */
  namespaces: readonly string[];
  /** The one that decides about this provider's offers. */
  policy?: AcceptancePolicy;
  /** The provider's one-time token. */
  joinToken?: string;
  /** Take it down without waiting for pods to end well. */
  force?: boolean;
  /** The ForeignCluster, for events that concern no Advertisement yet. */
  subject?: EventSubject;
}

/** What is to be done next; each is safe to begin again after a kill. */
export type Course =
  /** Nothing but to say how it stands. */
  | { kind: 'rest'; report: PeeringReport; verdict?: Verdict; contract?: SignedContract }
  /** The last offer has to be kept as an Advertisement, before anything is made of it. */
  | { kind: 'keep' }
  /** Sign this, keep it, and only then say it. */
  | { kind: 'sign'; verdict: Verdict; contract: Contract }
  /** Run pods over there. */
  | {
      kind: 'use';
      verdict: Verdict;
      contract: SignedContract;
      /** Absent while a newer contract waits for the provider: what is there stays as it is. */
      terms?: Contract;
      /** Nothing new is to be placed there, and why. */
      closed?: string;
    }
  /** Take down what was made. */
  | {
      kind: 'end';
      report: PeeringReport;
      verdict?: Verdict;
      /** The provider keeps its side until we are done. */
      contract?: SignedContract;
      /** The Advertisement goes, too. */
      forget: boolean;
      /** The agent can do nothing over there any more. */
      revoked: boolean;
    };

/** One provider whose pods are to run, as it stands now. */
export interface Work {
  clusterID: string;
  facts: Facts;
  course: Extract<Course, { kind: 'use' }>;
  advertisement: Advertisement;
  /** VirtualNodes that were made because of it. */
  ours: readonly VirtualNode[];
  signal: AbortSignal;
}

export const hasReason = ({ status }: VirtualNode, type: string, reason: string): boolean =>
  status?.conditions?.some((one) => one.type === type && one.status === 'False' && one.reason === reason) ??
  false;
