import type { Contract } from '../../api/offer.ts';
import type { PeeringRequestStatus } from '../../api/peering-request.ts';
import { TributaryError } from '../../lib/errors.ts';
import { checkContract, isSignedBy } from '../contract.ts';
import type { PeerIdentity } from '../ports.ts';
import type { AcceptanceDocument } from '../protocol/documents.ts';

/** A contract is kept in a status beside the offer; both together stay far below the limit of etcd. */
const MAX_STORED_CONTRACT = 65_536;

/**
 * What an acceptance is worth. `same`: it is the contract that we have. `outdated`: it accepts an offer that has
 * been replaced since; the peer answers the newer one as soon as it has read it, so nothing is wrong.
 */
export type AcceptanceWorth = 'same' | 'outdated' | Contract;

/**
 * Judges an acceptance by what we have offered. Throws Invalid with one line for the peer when it is forged, or
 * accepts what was never offered.
 */
export function judgeAcceptance(
  { text, signature }: AcceptanceDocument,
  peer: PeerIdentity,
  { status, nowMs }: { status: PeeringRequestStatus; nowMs: number },
): AcceptanceWorth {
  const { offer, contract } = status;
  if (text.length > MAX_STORED_CONTRACT) {
    throw new TributaryError(
      'Invalid',
      `the contract has ${text.length} characters, at most ${MAX_STORED_CONTRACT} are kept`,
    );
  }
  if (!isSignedBy(peer, text, signature)) {
    throw new TributaryError('Invalid', `the contract does not bear the signature of ${peer.clusterID}`);
  }
  if (contract?.text === text) return 'same';
  if (offer === undefined) throw new TributaryError('Invalid', 'nothing is offered that could be accepted');
  const generation = generationOf(text);
  if (generation < offer.generation) return 'outdated';
  if (generation > offer.generation) {
    throw new TributaryError('Invalid', `offer ${generation} was never made; today's is ${offer.generation}`);
  }
  if (Date.parse(offer.expires) <= nowMs) return 'outdated';
  return checkContract(text, offer);
}

/** This is read before the rest is checked: an older contract cannot be compared with an offer that is gone. */
function generationOf(text: string): number {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TributaryError('Invalid', 'the contract is not JSON', { cause: error });
  }
  const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, 'generation');
  const generation = isObject ? (value as { generation: unknown }).generation : undefined;
  if (typeof generation === 'number' && Number.isSafeInteger(generation)) return generation;
  throw new TributaryError('Invalid', 'the contract does not say which offer it accepts');
}
