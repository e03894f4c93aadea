/** Whose data are in volumes of foreign clusters, and end with what was lent there. Pure. */
import type { persistentVolumes } from './resources.ts';

type Volume = NonNullable<(typeof persistentVolumes)['__object']>;

/**
 * Their claims, as `namespace/name`. Also of claims that are gone where somebody has said Retain, and so that the data are to stay.
 *
 * @param volumes those with LABEL_MANAGED_BY
 */
export const claimsAbroad = (volumes: readonly Volume[]): string[] =>
  volumes
    .filter(
      ({ spec, status }) =>
        status?.phase === 'Bound' ||
        (status?.phase === 'Released' && spec?.persistentVolumeReclaimPolicy === 'Retain'),
    )
    .map(({ spec }) => `${spec?.claimRef?.namespace}/${spec?.claimRef?.name}`)
    .toSorted();
