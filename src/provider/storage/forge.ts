/** Claims over there, and volumes here that stand for them. Pure. */
import {
  ANNOTATION_FOREIGN_CLASS,
  ANNOTATION_FOREIGN_VOLUME,
  ANNOTATION_HOME_NAMESPACE,
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
  STORAGE_PROVISIONER,
} from '../../api/names.ts';
import type { Draft } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { parseMilli } from '../../lib/quantity.ts';
import type { Claim, StorageClass, Volume } from './claims.ts';
import { ANNOTATION_PROVISIONED_BY, volumeName } from './claims.ts';

/** Where the volumes of one foreign cluster are, as both clusters see it. */
export interface StoragePlace {
  tenantNamespace: string;
  /** Marks what is made here and there: virtual nodes of one foreign cluster share its volumes. */
  owner: string;
  /** A label that exactly those nodes have from which the volumes can be reached. */
  nodeLabel: { key: string; value: string };
}

/** No real directory. The API requires a source; only virtual nodes, which mount nothing, match the volume's affinity. */
const PLACEHOLDER = '/var/lib/tributary/remote';
const NAME = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/u;

/** Nothing else of the home claim means anything over there; see `unsupported`. */
export function forgeRemoteClaim(
  home: Claim,
  { place, foreignClass }: { place: StoragePlace; foreignClass: string },
): Draft<Claim> {
  const { accessModes, volumeMode, resources } = home.spec ?? {};
  const storage = resources?.requests?.['storage'];
  return {
    metadata: {
      name: home.metadata.name,
      namespace: place.tenantNamespace,
      labels: { [LABEL_MANAGED_BY]: place.owner, [LABEL_HOME_UID]: home.metadata.uid },
      annotations: { [ANNOTATION_HOME_NAMESPACE]: home.metadata.namespace ?? '' },
    },
    spec: {
      ...(accessModes && { accessModes }),
      ...(volumeMode !== undefined && { volumeMode }),
      ...(storage !== undefined && { resources: { requests: { storage } } }),
      storageClassName: foreignClass,
    },
  };
}

/** What the claim asks for and cannot travel: the volume would not be the one that was asked for. */
export function unsupported({ spec = {} }: Claim): string | undefined {
  const { dataSource, dataSourceRef, selector, volumeAttributesClassName } = spec;
  const asked = Object.entries({ dataSource, dataSourceRef, selector, volumeAttributesClassName })
    .filter(([, value]) => value !== undefined)
    .map(([key]) => key);
  return asked.length === 0 ? undefined : asked.join(', ');
}

export function forgeVolume(
  home: Claim,
  { homeClass, remote, place }: { homeClass: StorageClass; remote: Claim; place: StoragePlace },
): Draft<Volume> {
  const { name, namespace = '', uid } = home.metadata;
  const { accessModes, volumeMode, resources } = home.spec ?? {};
  const { key, value } = place.nodeLabel;
  const draft: Draft<Volume> = {
    metadata: {
      name: volumeName(uid),
      labels: { [LABEL_MANAGED_BY]: place.owner },
      annotations: { [ANNOTATION_PROVISIONED_BY]: STORAGE_PROVISIONER },
    },
    spec: {
      capacity: { storage: resources?.requests?.['storage'] ?? '0' },
      ...(accessModes && { accessModes }),
      ...(volumeMode !== undefined && { volumeMode }),
      persistentVolumeReclaimPolicy: homeClass.reclaimPolicy ?? 'Delete',
      storageClassName: homeClass.metadata.name,
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      local: { path: `${PLACEHOLDER}/${uid}` },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }] },
      },
    },
  };
  return withFacts(draft, remote);
}

/** Adds what is known of the real volume; returns the same object where nothing is new. */
export function withFacts<T extends Draft<Volume>>(volume: T, remote: Claim): T {
  const { volumeName: foreignVolume, storageClassName: foreignClass } = remote.spec ?? {};
  const facts = {
    ...(named(foreignVolume) && { [ANNOTATION_FOREIGN_VOLUME]: foreignVolume }),
    ...(named(foreignClass) && { [ANNOTATION_FOREIGN_CLASS]: foreignClass }),
  };
  const { metadata, spec } = volume;
  const storage = largerOf(spec?.capacity?.['storage'], remote.status?.capacity?.['storage']);
  const next = {
    ...volume,
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...facts } },
    spec: { ...spec, ...(storage !== undefined && { capacity: { storage } }) },
  };
  return deepEqual(next, volume) ? volume : next;
}

const named = (value: unknown): value is string => typeof value === 'string' && NAME.test(value);

/** A smaller size, or one that cannot be read, is ignored: the claim is bound to what it asked for. */
function largerOf(known: string | undefined, said: unknown): string | undefined {
  if (typeof said !== 'string' || said.length > 32) return known;
  const [before, now] = [amountOf(known), amountOf(said)];
  return now !== undefined && (before === undefined || now > before) ? said : known;
}

export function amountOf(quantity: string | undefined): bigint | undefined {
  try {
    return quantity === undefined ? undefined : parseMilli(quantity);
  } catch {
    return undefined;
  }
}
