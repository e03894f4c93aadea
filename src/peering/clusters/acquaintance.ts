import type { PeerSelector } from '../../api/peer-selector.ts';
import type { PeeringReport } from '../ports.ts';
import type { ClusterWish } from './ports.ts';
import { isDiscovered } from './same.ts';

const AGREED: ReadonlySet<PeeringReport['phase']> = new Set(['Accepted', 'Established', 'Ending']);

/**
 * Whether we deal with a cluster: somebody here means just it, or something is agreed on. That it has come in, and so
 * has an object, says nothing of a cluster, nor does a policy that means anyone: identities are free.
 */
export function isAcquainted(
  { subject, incoming, policy, sharingPolicy }: ClusterWish,
  reports: readonly PeeringReport[],
): boolean {
  if (reports.some(({ phase }) => AGREED.has(phase))) return true;
  if (subject === undefined) return false;
  const isMeant = !isDiscovered(subject) || subject.spec?.outgoing === 'Enabled' || incoming === 'Enabled';
  return isMeant || [policy, sharingPolicy].some((one) => one !== undefined && isChosen(one.spec.peers));
}

const isChosen = ({ anyone }: PeerSelector): boolean => anyone !== true;
