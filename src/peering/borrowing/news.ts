import type { Advertisement, AdvertisementStatus, OfferDecision } from '../../api/advertisement.ts';
import { ADVERTISEMENT_CONDITIONS, ADVERTISEMENT_REASONS } from '../../api/advertisement.ts';
import type { Condition } from '../../api/wire.ts';
import type { EventType } from '../../kube/events.ts';
import { BORROWING_EVENTS } from './names.ts';

export type News = [type: EventType, reason: string, message: string];

/** What is new to people in a status that has just been written. Pure. */
export function newsOf({ status: before = {} }: Advertisement, status: AdvertisementStatus): News[] {
  return [...decided(before, status), ...moved(before, status)];
}

function decided(
  before: AdvertisementStatus,
  { decision, reason, message = '' }: AdvertisementStatus,
): News[] {
  if (decision === undefined || (decision === before.decision && reason === before.reason)) return [];
  return [[EVENT_TYPE[decision], EVENT_REASON[decision], message]];
}

function moved(before: AdvertisementStatus, status: AdvertisementStatus): News[] {
  const [was, is] = [virtualNodeOf(before), virtualNodeOf(status)];
  if (is === undefined || (is.status === was?.status && is.reason === was.reason)) return [];
  if (is.status === 'True') return [['Normal', BORROWING_EVENTS.established, 'pods can be run over there']];
  return is.reason === ADVERTISEMENT_REASONS.ending ? [['Normal', BORROWING_EVENTS.ending, is.message]] : [];
}

const virtualNodeOf = ({ conditions = [] }: AdvertisementStatus): Condition | undefined =>
  conditions.find(({ type }) => type === ADVERTISEMENT_CONDITIONS.virtualNode);

const EVENT_REASON: Record<OfferDecision, string> = {
  Accepted: BORROWING_EVENTS.accepted,
  Pending: BORROWING_EVENTS.pending,
  Refused: BORROWING_EVENTS.refused,
  Expired: BORROWING_EVENTS.expired,
};
const EVENT_TYPE: Record<OfferDecision, EventType> = {
  Accepted: 'Normal',
  Pending: 'Normal',
  Refused: 'Warning',
  Expired: 'Warning',
};
