/** Claims and volumes as this folder sees them: what is ours, and under which names. Pure. */
import { LABEL_HOME_UID, LABEL_MANAGED_BY, STORAGE_PROVISIONER } from '../../api/names.ts';
import type { persistentVolumeClaims, persistentVolumes, storageClasses } from '../../api/resources.ts';

export type Claim = NonNullable<(typeof persistentVolumeClaims)['__object']>;
export type Volume = NonNullable<(typeof persistentVolumes)['__object']>;
export type StorageClass = NonNullable<(typeof storageClasses)['__object']>;

/** On a claim, by the scheduler: the node for which a volume is to be made. Taken away: choose again. */
export const ANNOTATION_SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** On a claim, by the volume controller: who is to make the volume. Only now is it certain that none that exists will do. */
export const ANNOTATION_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
/** On a volume: who made it, and is to end it. With a name that no volume plugin has, Kubernetes leaves both to us. */
export const ANNOTATION_PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';

/** The UID makes it one name for one claim, whoever provisions: a second volume for it cannot come to be. */
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
