import type { EventReason } from '../../api/reasons/events.ts';
import {
  type Advertisement,
  ADVERTISEMENT_CONDITIONS,
  ADVERTISEMENT_REASONS,
  type AdvertisementStatus,
  type ApiServerAccess,
  type OfferDecision,
} from '../../api/advertisement.ts';
import {
  conditionOf,
  isConditionTrue,
  timestamp,
  type WantedCondition,
  withCondition,
  withoutCondition,
} from '../../api/conditions.ts';
import { MAX_MESSAGE_LENGTH } from '../../api/limits.ts';
import type { SignedContract } from '../../api/offer.ts';
import type { Condition } from '../../api/wire.ts';
import type { EventType } from '../../kube/events.ts';
import { present } from '../../lib/fields.ts';
import type { OfferAssessment } from './facts.ts';
import { readContract } from './own-contract.ts';

/** Reasons of events of Advertisements; a closed list. */
export const BORROWING_EVENTS = {
  accepted: 'OfferAccepted',
  pending: 'OfferPending',
  refused: 'OfferRefused',
  expired: 'OfferExpired',
  invalid: 'OfferInvalid',
  established: 'PeeringEstablished',
  ending: 'PeeringEnding',
} as const;

/** How far setting up has come. */
export interface Progress {
  /** VirtualNodes that there are or will be; recorded before the first is made, so that none is ever forgotten. */
  names: string[];
  access?: ApiServerAccess;
  /** The token in use; milliseconds since the epoch. */
  credentialExpiresMs?: number;
  /** Why there is no valid token, or no way to use it. */
  obstacle?: { reason: string; message: string };
  nodes: NodesState;
}

export interface NodesState {
  /** Whether all desired VirtualNodes exist. */
  complete: boolean;
  /** How many of them have a Node that is Ready. */
  ready: number;
  /** Why one is not ready. */
  message: string;
}

export interface StatusInputs {
  advertisement: Advertisement;
  /** Absent: what was decided before stays. */
  assessment?: OfferAssessment | undefined;
  contract?: SignedContract | undefined;
  /** Absent: nothing is set up, or no longer. */
  progress?: Progress | undefined;
  /** Another contract is being agreed on: what is set up stays, and the status of it, too. */
  goesOn?: boolean;
  nowMs: number;
}

const { ok, waitingForProvider, settingUp } = ADVERTISEMENT_REASONS;
const CONDITIONS = ADVERTISEMENT_CONDITIONS;

/** The whole status of the Advertisement; conditions of others are kept. Pure. */
export function forgeStatus(inputs: StatusInputs): AdvertisementStatus {
  const { advertisement, assessment, contract, progress, goesOn = false } = inputs;
  const { status: before = {}, metadata } = advertisement;
  return {
    observedGeneration: metadata.generation ?? 1,
    ...(assessment === undefined ? decisionIn(before) : decisionOf(assessment)),
    ...(contract && { contract }),
    ...(goesOn ? placesIn(before) : placesOf(progress)),
    // src/peering/services writes this.
    ...(before.services && { services: before.services }),
    conditions: [...conditionsOf(inputs)],
  };
}

const decisionIn = ({ decision, reason, message, policy }: AdvertisementStatus): AdvertisementStatus =>
  present({ decision, reason, message, policy });

const placesIn = ({ access, credentialExpires, virtualNodes }: AdvertisementStatus): AdvertisementStatus =>
  present({ access, credentialExpires, virtualNodes });

const placesOf = ({
  access,
  credentialExpiresMs: end,
  names = [],
}: Partial<Progress> = {}): AdvertisementStatus => ({
  ...(access !== undefined && { access }),
  ...(end !== undefined && { credentialExpires: timestamp(end) }),
  ...(names.length > 0 && { virtualNodes: names.toSorted() }),
});

const decisionOf = ({ decision, reason, message, policy }: OfferAssessment): AdvertisementStatus => ({
  decision,
  reason,
  message: message.slice(0, MAX_MESSAGE_LENGTH),
  ...(policy !== undefined && { policy }),
});

function conditionsOf(inputs: StatusInputs): readonly Condition[] {
  const { advertisement, nowMs, goesOn = false } = inputs;
  const observedGeneration = advertisement.metadata.generation ?? 1;
  let conditions: readonly Condition[] = advertisement.status?.conditions ?? [];
  const wanted: [string, Wanted][] = [
    [CONDITIONS.accepted, acceptedOf(inputs)],
    [CONDITIONS.contract, contractOf(inputs)],
    ...(goesOn ? [] : setupOf(inputs)),
  ];
  for (const [type, condition] of wanted) {
    conditions =
      condition === undefined
        ? withoutCondition(conditions, type)
        : withCondition(conditions, { type, ...condition, observedGeneration }, nowMs);
  }
  return conditions;
}

type Wanted = Omit<WantedCondition, 'type'> | undefined;

const setupOf = (inputs: StatusInputs): [string, Wanted][] => [
  [CONDITIONS.credential, credentialOf(inputs)],
  [CONDITIONS.virtualNode, virtualNodeOf(inputs)],
];

function acceptedOf({ assessment, advertisement }: StatusInputs): Wanted {
  if (assessment === undefined) return conditionOf(advertisement, CONDITIONS.accepted) as Wanted;
  const { decision, reason, message } = assessment;
  const status = decision === 'Accepted' ? 'True' : decision === 'Pending' ? 'Unknown' : 'False';
  return { status, reason, message };
}

function contractOf({ contract }: StatusInputs): Wanted {
  if (contract === undefined) return undefined;
  if (contract.providerSignature === undefined) {
    return { status: 'False', reason: waitingForProvider, message: 'the provider has not signed yet' };
  }
  const terms = readContract(contract);
  const kept = terms && `; without contact, pods and nodes are kept for ${terms.keepForSeconds} s`;
  return { status: 'True', reason: ok, message: `signed by both${kept ?? ''}` };
}

function credentialOf({ progress, nowMs }: StatusInputs): Wanted {
  if (progress === undefined) return undefined;
  const { credentialExpiresMs: end, obstacle } = progress;
  if (end !== undefined && end > nowMs) {
    return { status: 'True', reason: ok, message: 'a token of the provider is in the Secret' };
  }
  const { reason, message } = obstacle ?? { reason: settingUp, message: 'a token is being asked for' };
  return { status: 'False', reason, message };
}

/** Once it was Ready it is in place: if its Node is away for a while, the VirtualNode tells so. */
function virtualNodeOf({ progress, advertisement }: StatusInputs): Wanted {
  if (progress === undefined) return undefined;
  const { complete, ready, message } = progress.nodes;
  const was = isConditionTrue(advertisement.status?.conditions, CONDITIONS.virtualNode);
  if (complete && (ready > 0 || was)) return { status: 'True', reason: ok, message };
  return { status: 'False', ...(progress.obstacle ?? { reason: settingUp, message }) };
}

type News = [type: EventType, reason: EventReason, message: string];

/** The events for a status that has just been written. Pure. */
export const newsOf = ({ status: before = {} }: Advertisement, status: AdvertisementStatus): News[] => [
  ...decided(before, status),
  ...moved(before, status),
];

function decided(
  before: AdvertisementStatus,
  { decision, reason, message = '' }: AdvertisementStatus,
): News[] {
  if (decision === undefined || (decision === before.decision && reason === before.reason)) return [];
  return [[...EVENT_OF[decision], message]];
}

function moved(before: AdvertisementStatus, status: AdvertisementStatus): News[] {
  const [was, is] = [before, status].map((one) => conditionOf({ status: one }, CONDITIONS.virtualNode));
  if (is === undefined || (is.status === was?.status && is.reason === was.reason)) return [];
  if (is.status === 'True') return [['Normal', BORROWING_EVENTS.established, 'pods can be run over there']];
  return is.reason === ADVERTISEMENT_REASONS.ending ? [['Normal', BORROWING_EVENTS.ending, is.message]] : [];
}

const EVENT_OF: Record<OfferDecision, [type: EventType, reason: EventReason]> = {
  Accepted: ['Normal', BORROWING_EVENTS.accepted],
  Pending: ['Normal', BORROWING_EVENTS.pending],
  Refused: ['Warning', BORROWING_EVENTS.refused],
  Expired: ['Warning', BORROWING_EVENTS.expired],
};
