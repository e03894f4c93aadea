import { LABEL_HOME_UID, LABEL_MANAGED_BY, OFFLOADED_REASONS, STORAGE_PROVISIONER } from '../../api/names.ts';
import type { persistentVolumeClaims, persistentVolumes, storageClasses } from '../../api/resources.ts';
import type { Refusal } from '../pods/refusal.ts';

/** Claims and volumes: which are ours, under which names, and why a claim keeps its pod from running. Pure. */

export type Claim = NonNullable<(typeof persistentVolumeClaims)['__object']>;
export type Volume = NonNullable<(typeof persistentVolumes)['__object']>;
export type StorageClass = NonNullable<(typeof storageClasses)['__object']>;

/** On a claim, by the scheduler: the node for which a volume is to be made. Taken away: choose again. */
export const ANNOTATION_SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** On a claim, by the volume controller: who is to make the volume. Before that, an existing volume may still be bound. */
export const ANNOTATION_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
/** On a volume: who made it and is to delete it. No volume plugin has our name, so Kubernetes leaves both to us. */
export const ANNOTATION_PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';

/** One name for one claim, by its UID, whoever provisions it: so there can be no second volume for it. */
export const volumeName = (claimUid: string): string => `tributary-${claimUid}`;

export const isOurClass = (one: StorageClass | undefined): one is StorageClass =>
  one?.provisioner === STORAGE_PROVISIONER;

export const isOf = ({ metadata }: Pick<Claim | Volume, 'metadata'>, owner: string): boolean =>
  metadata.labels?.[LABEL_MANAGED_BY] === owner;

/** UID of the home claim that a remote one stands for. */
export const homeUidOf = ({ metadata }: Claim): string | undefined => metadata.labels?.[LABEL_HOME_UID];

export const claimKey = (namespace: string, name: string): string => `${namespace}/${name}`;

/** Key of the home claim that a volume of ours was made for. */
export function claimKeyOf({ spec }: Volume): string | undefined {
  const { namespace, name } = spec?.claimRef ?? {};
  return namespace === undefined || name === undefined ? undefined : claimKey(namespace, name);
}

/** UID of that claim. */
export const claimUidOf = ({ spec }: Volume): string | undefined => spec?.claimRef?.uid;

export const isGoing = ({ metadata }: Claim): boolean => metadata.deletionTimestamp !== undefined;

export const isBound = ({ status }: Claim): boolean => status?.phase === 'Bound';

/** The volume that a home claim is bound to, or is about to be, for good. */
export const boundTo = ({ spec }: Claim): string | undefined => spec?.volumeName;

/** What is known of one claim that a pod on the virtual node mounts. */
interface MountedClaim {
  name: string;
  home: Claim | undefined;
  remote: Claim | undefined;
  /** Our volume here that was made for the claim. */
  volume: Volume | undefined;
  /** Whether the claim's class is for volumes in foreign clusters; undefined where the claim names no class. */
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

/** The scheduler chooses a node for claims before it binds a pod; for a pod that it has not seen, nobody has. */
function unboundMessage({ name, nodeName }: MountedClaim, { metadata }: Claim): string {
  const isChosen = metadata.annotations?.[ANNOTATION_SELECTED_NODE] === nodeName;
  const what = `persistentvolumeclaim "${name}" is not bound`;
  return isChosen
    ? what
    : `${what}: no node is chosen for it; let the scheduler place the pod (no spec.nodeName)`;
}

const missing = (message: string): Refusal => ({ reason: OFFLOADED_REASONS.missingReference, message });
