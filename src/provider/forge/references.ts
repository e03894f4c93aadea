import type {
  Container,
  EphemeralContainer,
  Pod,
  PodSpec,
  Volume,
  VolumeProjection,
} from '../../api/wire.ts';

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
 * cluster's travels under another name.
 */
export function remoteReferenceName(kind: ReferenceKind, name: string): string {
  return kind === 'ConfigMap' && name === ROOT_CA_CONFIG_MAP ? `${ROOT_CA_CONFIG_MAP}.tributary-home` : name;
}

export const ROOT_CA_CONFIG_MAP = 'kube-root-ca.crt';

export type AnyContainer = Container | EphemeralContainer;

function allContainers(spec: PodSpec): AnyContainer[] {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
}

/** Every ConfigMap and Secret that the pod names, each once; mandatory wins over optional. */
export function podReferences(pod: Pod): Reference[] {
  const spec = pod.spec;
  if (spec === undefined) return [];
  const found = [
    ...(spec.imagePullSecrets ?? []).flatMap((secret) =>
      // A missing pull secret is no obstacle to the kubelet: the image may be public or already there.
      secret.name === undefined
        ? []
        : [
            {
              kind: 'Secret' as const,
              name: secret.name,
              optional: true,
              usage: 'imagePull' as const,
              user: 'imagePullSecrets',
            },
          ],
    ),
    ...(spec.volumes ?? []).flatMap(volumeReferences),
    ...allContainers(spec).flatMap(containerReferences),
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
  const of = (kind: ReferenceKind, name: string | undefined, optional: boolean | undefined): Reference[] =>
    name === undefined
      ? []
      : [{ kind, name, optional: optional ?? false, usage: 'volume', user: volume.name }];
  if (configMap !== undefined) return of('ConfigMap', configMap.name, configMap.optional);
  if (secret !== undefined) return of('Secret', secret.secretName, secret.optional);
  return (projected?.sources ?? []).flatMap((source: VolumeProjection) => [
    ...of('ConfigMap', source.configMap?.name, source.configMap?.optional),
    ...of('Secret', source.secret?.name, source.secret?.optional),
  ]);
}

function containerReferences(container: AnyContainer): Reference[] {
  const of = (kind: ReferenceKind, from: { name?: string; optional?: boolean } | undefined): Reference[] =>
    from?.name === undefined
      ? []
      : [
          {
            kind,
            name: from.name,
            optional: from.optional ?? false,
            usage: 'environment',
            user: container.name,
          },
        ];
  return [
    ...(container.envFrom ?? []).flatMap((source) => [
      ...of('ConfigMap', source.configMapRef),
      ...of('Secret', source.secretRef),
    ]),
    ...(container.env ?? []).flatMap((variable) => [
      ...of('ConfigMap', variable.valueFrom?.configMapKeyRef),
      ...of('Secret', variable.valueFrom?.secretKeyRef),
    ]),
  ];
}

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
