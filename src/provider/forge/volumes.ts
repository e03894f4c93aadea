import {
  ANNOTATION_CARRIED_NAMESPACE,
  ANNOTATION_CARRIED_UID,
  ANNOTATION_HOME_NAMESPACE,
  LABEL_HOME_UID,
} from '../../api/names.ts';
import { isApiAccessVolume } from '../../api/pod-before-admission.ts';
import type { Pod, Volume, VolumeProjection } from '../../api/wire.ts';
import type { ForgeContext } from './context.ts';
import { ephemeralClaimName, remoteReferenceName } from './references.ts';
import { tokenKey, tokenSecretName } from './tokens.ts';

/** The pod's volumes as they are requested over there; volumes that mean nothing there are left out. */
export function forgeVolumes(home: Pod, context: ForgeContext): Volume[] {
  return (home.spec?.volumes ?? [])
    .filter((volume) => !isDropped(volume, context))
    .map((volume) => forgeVolume(volume, home));
}

/** Names of volumes that do not travel: their mounts must go with them. */
export function droppedVolumes(home: Pod, context: ForgeContext): Set<string> {
  return new Set(
    (home.spec?.volumes ?? []).filter((volume) => isDropped(volume, context)).map((volume) => volume.name),
  );
}

const isDropped = (volume: Volume, context: ForgeContext): boolean =>
  isApiAccessVolume(volume) && context.homeApiServer === undefined;

function forgeVolume(volume: Volume, home: Pod): Volume {
  if (volume.configMap?.name !== undefined) {
    const name = remoteReferenceName('ConfigMap', volume.configMap.name);
    return { ...volume, configMap: { ...volume.configMap, name } };
  }
  if (volume.secret?.secretName !== undefined) {
    const secretName = remoteReferenceName('Secret', volume.secret.secretName);
    return { ...volume, secret: { ...volume.secret, secretName } };
  }
  if (volume.ephemeral !== undefined) {
    // Its claim is made at home, with a class of home, and carried across like any other.
    const { ephemeral: _template, ...rest } = volume;
    return { ...rest, persistentVolumeClaim: { claimName: ephemeralClaimName(home, volume) } };
  }
  if (volume.downwardAPI?.items !== undefined) {
    return {
      ...volume,
      downwardAPI: { ...volume.downwardAPI, items: volume.downwardAPI.items.map(forgeDownwardItem) },
    };
  }
  if (volume.projected?.sources === undefined) return volume;
  const sources = volume.projected.sources.map((source) => forgeProjection(source, volume.name, home));
  return { ...volume, projected: { ...volume.projected, sources } };
}

function forgeProjection(source: VolumeProjection, volume: string, home: Pod): VolumeProjection {
  if (source.serviceAccountToken !== undefined) {
    const { path } = source.serviceAccountToken;
    return {
      secret: {
        name: tokenSecretName(home.metadata.uid),
        items: [{ key: tokenKey(volume, path), path }],
      },
    };
  }
  if (source.configMap?.name !== undefined) {
    const name = remoteReferenceName('ConfigMap', source.configMap.name);
    return { configMap: { ...source.configMap, name } };
  }
  if (source.secret?.name !== undefined) {
    return { secret: { ...source.secret, name: remoteReferenceName('Secret', source.secret.name) } };
  }
  if (source.downwardAPI?.items !== undefined) {
    return { downwardAPI: { ...source.downwardAPI, items: source.downwardAPI.items.map(forgeDownwardItem) } };
  }
  return source;
}

type DownwardItem = NonNullable<NonNullable<Volume['downwardAPI']>['items']>[number];

const HOME_NAMESPACE = `metadata.annotations['${ANNOTATION_HOME_NAMESPACE}']`;
const HOME_UID = `metadata.labels['${LABEL_HOME_UID}']`;
/** Fields of a home pod, and where the remote pod has their values. The last two are of a pod that comes back to its own cluster. */
const DOWNWARD_FIELDS: ReadonlyMap<string, string> = new Map([
  ['metadata.namespace', HOME_NAMESPACE],
  ['metadata.uid', HOME_UID],
  [HOME_NAMESPACE, `metadata.annotations['${ANNOTATION_CARRIED_NAMESPACE}']`],
  [HOME_UID, `metadata.annotations['${ANNOTATION_CARRIED_UID}']`],
]);

/**
 * A file of the downward API can only show the pod's own metadata. The remote pod has the home cluster's values as a label and
 * an annotation, and the file shows those.
 */
function forgeDownwardItem(item: DownwardItem): DownwardItem {
  const fieldPath = DOWNWARD_FIELDS.get(item.fieldRef?.fieldPath ?? '');
  return fieldPath === undefined ? item : { ...item, fieldRef: { fieldPath } };
}
