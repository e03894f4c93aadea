import { OFFLOADED_REASONS } from '../../api/names.ts';
import type { Refusal } from '../pods/refusal.ts';
import type { Claim, Volume } from './claims.ts';
import { ANNOTATION_SELECTED_NODE, homeUidOf } from './claims.ts';

/** What is known of one claim that a pod on the virtual node mounts. */
export interface MountedClaim {
  name: string;
  home: Claim | undefined;
  remote: Claim | undefined;
  /** The volume here that is ours and was made for the claim. */
  volume: Volume | undefined;
  /** Whether the claim's class is one of volumes in foreign clusters; undefined where it names none. */
  isOurClass: boolean | undefined;
  nodeName: string;
}

/** Why a pod with this claim cannot begin over there; undefined where the claim is there for it. Pure. */
export function claimRefusal(claim: MountedClaim): Refusal | undefined {
  const { name, home, remote, volume } = claim;
  if (home === undefined) return missing(`persistentvolumeclaim "${name}" not found`);
  if (home.metadata.deletionTimestamp !== undefined) {
    return missing(`persistentvolumeclaim "${name}" is being deleted`);
  }
  const isBound = home.spec?.volumeName !== undefined;
  if (isBound ? home.spec?.volumeName !== volume?.metadata.name : claim.isOurClass === false) {
    return {
      reason: OFFLOADED_REASONS.volumeNotHere,
      message: `claim "${name}" is a volume of this cluster, or of another one, and cannot follow the pod; use a StorageClass with provisioner tributary.dev/storage`,
    };
  }
  if (!isBound) return missing(unboundMessage(claim, home));
  if (remote !== undefined && homeUidOf(remote) === home.metadata.uid) return undefined;
  return missing(`claim "${name}", where its data were, is gone from the foreign cluster`);
}

/** The scheduler binds claims before pods; a pod that it has never seen has claims that nobody chose a node for. */
function unboundMessage({ name, nodeName }: MountedClaim, { metadata }: Claim): string {
  const isChosen = metadata.annotations?.[ANNOTATION_SELECTED_NODE] === nodeName;
  const what = `persistentvolumeclaim "${name}" is not bound`;
  return isChosen
    ? what
    : `${what}: no node is chosen for it; let the scheduler place the pod (no spec.nodeName)`;
}

const missing = (message: string): Refusal => ({ reason: OFFLOADED_REASONS.missingReference, message });
