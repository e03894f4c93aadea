import { containersOf } from '../../api/pod.ts';
import type { Container, EphemeralContainer, Pod, Volume, VolumeProjection } from '../../api/wire.ts';

export type ReferenceKind = 'ConfigMap' | 'Secret';

/** A ConfigMap or Secret that a pod refers to; it cannot run without it unless it is optional. */
export interface Reference {
  kind: ReferenceKind;
  name: string;
  optional: boolean;
  /** The kubelet starts no container before all volumes are there; a missing environment holds up only its container. */
  usage: 'environment' | 'volume' | 'imagePull';
  /** Volume or container name, for messages. */
  user: string;
}

/**
 * Name over there. Every namespace has a `kube-root-ca.crt`, which belongs to its cluster's own controller, so the home
 * cluster's travels under another name. So does a Secret that is called like the tokens that we keep over there. A home pod may
 * itself be somebody's pod, placed back into the cluster that it came from: then both names have been given before, and each is
 * extended once more, so that no two objects of home get one name.
 */
export function remoteReferenceName(kind: ReferenceKind, name: string): string {
  if (kind === 'Secret') return TOKEN_SECRET.test(name) ? `${CARRIED}${name.slice(OURS.length)}` : name;
  return ROOT_CA.test(name) ? `${name}${OF_HOME}` : name;
}

/** The name at home of a copy's name over there. */
export function homeReferenceName(kind: ReferenceKind, remoteName: string): string {
  if (kind === 'Secret') {
    const isCarried = remoteName.startsWith(CARRIED) && TOKEN_SECRET.test(remoteName);
    return isCarried ? `${OURS}${remoteName.slice(CARRIED.length)}` : remoteName;
  }
  const isOfHome = remoteName.endsWith(OF_HOME) && ROOT_CA.test(remoteName);
  return isOfHome ? remoteName.slice(0, -OF_HOME.length) : remoteName;
}

export const ROOT_CA_CONFIG_MAP = 'kube-root-ca.crt';
const OF_HOME = '.tributary-home';
const ROOT_CA = /^kube-root-ca\.crt(?:\.tributary-home)*$/u;
const OURS = 'tributary-';
const CARRIED = 'tributary-carried-';
const TOKEN_SECRET = /^tributary-(?:carried-)*token-[0-9a-f-]{36}$/u;

export type AnyContainer = Container | EphemeralContainer;

/** Every ConfigMap and Secret that the pod names, each once; mandatory wins over optional. */
export function podReferences(pod: Pod): Reference[] {
  const { spec } = pod;
  if (spec === undefined) return [];
  const found = [
    // A missing pull secret is no obstacle to the kubelet: the image may be public or already there.
    ...(spec.imagePullSecrets ?? []).flatMap(({ name }) =>
      referenceTo('Secret', { name, optional: true }, { usage: 'imagePull', user: 'imagePullSecrets' }),
    ),
    ...(spec.volumes ?? []).flatMap(volumeReferences),
    ...containersOf(pod).flatMap(containerReferences),
  ];
  const unique = new Map<string, Reference>();
  for (const one of found) {
    const key = `${one.kind}/${one.name}`;
    const known = unique.get(key);
    if (known === undefined || (known.optional && !one.optional)) unique.set(key, one);
  }
  return [...unique.values()];
}

function volumeReferences(volume: Volume): Reference[] {
  const { configMap, secret, projected } = volume;
  const by = { usage: 'volume', user: volume.name } as const;
  if (configMap !== undefined) return referenceTo('ConfigMap', configMap, by);
  if (secret !== undefined) return referenceTo('Secret', { ...secret, name: secret.secretName }, by);
  return (projected?.sources ?? []).flatMap((source: VolumeProjection) => [
    ...referenceTo('ConfigMap', source.configMap, by),
    ...referenceTo('Secret', source.secret, by),
  ]);
}

function referenceTo(
  kind: ReferenceKind,
  object: { name?: string | undefined; optional?: boolean | undefined } | undefined,
  by: Pick<Reference, 'usage' | 'user'>,
): Reference[] {
  const { name, optional = false } = object ?? {};
  return name === undefined ? [] : [{ kind, name, optional, ...by }];
}

function containerReferences(container: AnyContainer): Reference[] {
  const by = { usage: 'environment', user: container.name } as const;
  return [
    ...(container.envFrom ?? []).flatMap((source) => [
      ...referenceTo('ConfigMap', source.configMapRef, by),
      ...referenceTo('Secret', source.secretRef, by),
    ]),
    ...(container.env ?? []).flatMap((variable) => [
      ...referenceTo('ConfigMap', variable.valueFrom?.configMapKeyRef, by),
      ...referenceTo('Secret', variable.valueFrom?.secretKeyRef, by),
    ]),
  ];
}

/** Whether the pod needs that object of its own cluster. */
export const refersTo = (pod: Pod, kind: ReferenceKind, name: string): boolean =>
  podReferences(pod).some((used) => used.kind === kind && used.name === name);

/** The claims that a pod mounts, each once. Those of `ephemeral` volumes are made at home, by its controller. */
export function claimNames(pod: Pod): string[] {
  const names = (pod.spec?.volumes ?? []).flatMap((volume) => {
    if (volume.ephemeral !== undefined) return [ephemeralClaimName(pod, volume)];
    return volume.persistentVolumeClaim?.claimName ?? [];
  });
  return [...new Set(names)];
}

/** As the ephemeral volume controller names them (KEP-1698). */
export const ephemeralClaimName = ({ metadata }: Pod, volume: Volume): string =>
  `${metadata.name}-${volume.name}`;
