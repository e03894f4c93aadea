import { createHash } from 'node:crypto';
import { isApiAccessVolume } from '../../api/pod-before-admission.ts';
import type { Container, Pod, Volume } from '../../api/wire.ts';
import type { ForgeContext } from './context.ts';

/** One projected service-account token that the agent must fetch at home and keep fresh over there. */
export interface TokenNeed {
  /** Key in the token Secret. */
  key: string;
  audience: string | undefined;
  /** Seconds, as the pod asks for; the API server may shorten it. */
  expirationSeconds: number;
}

/** Kubernetes' default for projected tokens (core/v1 ServiceAccountTokenProjection). */
const DEFAULT_EXPIRATION_SECONDS = 3600;

/** Name of the Secret over there that holds the tokens of one home pod. */
export const tokenSecretName = (homePodUid: string): string => `tributary-token-${homePodUid}`;

const TOKEN_SECRET = /^tributary-token-([0-9a-f-]{36})$/u;

/** UID of the home pod for which the Secret of that name over there was made; undefined: it holds no tokens of ours. */
export const tokenSecretUid = (name: string): string | undefined => TOKEN_SECRET.exec(name)?.[1];

export function tokenKey(volume: string, path: string): string {
  return `t-${createHash('sha256').update(`${volume}\0${path}`).digest('hex').slice(0, 16)}`;
}

/**
 * What the owner of the pod should know: it gets no token for the home API server, and has an account of its own, which
 * nobody gives to a pod that needs none. Undefined where there is nothing to say.
 */
export function missingToken({ spec }: Pod, { noHomeApiServer }: ForgeContext): string | undefined {
  const account = spec?.serviceAccountName ?? 'default';
  if (noHomeApiServer === undefined || account === 'default') return undefined;
  if (!(spec?.volumes ?? []).some(isApiAccessVolume)) return undefined;
  return `the pod has no token of account "${account}" over there: ${noHomeApiServer}`;
}

export function tokenNeeds(pod: Pod, homeApiReachable: boolean): TokenNeed[] {
  return (
    (pod.spec?.volumes ?? [])
      // Where the foreign cluster cannot reach our API server, the token for it is left out.
      .filter((volume) => homeApiReachable || !isApiAccessVolume(volume))
      .flatMap((volume) =>
        (volume.projected?.sources ?? []).flatMap(({ serviceAccountToken: token }) =>
          token === undefined
            ? []
            : [
                {
                  key: tokenKey(volume.name, token.path),
                  audience: token.audience,
                  expirationSeconds: token.expirationSeconds ?? DEFAULT_EXPIRATION_SECONDS,
                },
              ],
        ),
      )
  );
}

interface MountedTokens {
  /** The Secret over there. It keeps the name of the home pod that was the first one of this body. */
  secret: string;
  /** Keys of the Secret. */
  keys: ReadonlySet<string>;
}

/** The tokens of home that a remote pod mounts; undefined: none. */
export function mountedTokens({ spec }: Pod): MountedTokens | undefined {
  const mounted = (spec?.volumes ?? [])
    .flatMap(({ projected }) => projected?.sources ?? [])
    .flatMap(({ secret }) => (tokenSecretUid(secret?.name ?? '') === undefined ? [] : [secret]));
  const secret = mounted[0]?.name;
  if (secret === undefined) return undefined;
  const items = mounted.flatMap((one) => (one?.name === secret ? (one.items ?? []) : []));
  return { secret, keys: new Set(items.map(({ key }) => key)) };
}

/**
 * A home pod as its body knows it. Admission gives the volume with the token for the API server another name in each pod
 * (`kube-api-access-` and five letters), so it is named anew in one that has taken over the body of a pod before it. Pure.
 */
export function namedLikeBody(home: Pod, body: Pod): Pod {
  const [own, given] = [apiAccessOf(home), apiAccessOf(body)];
  const { spec } = home;
  if (spec === undefined || own === undefined || given === undefined || own === given) return home;
  const renamed = <N extends { name: string }>(one: N): N =>
    one.name === own ? { ...one, name: given } : one;
  const remounted = <C extends Container>(container: C): C =>
    container.volumeMounts === undefined
      ? container
      : { ...container, volumeMounts: container.volumeMounts.map(renamed) };
  return {
    ...home,
    spec: {
      ...spec,
      containers: spec.containers.map(remounted),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(remounted) }),
      ...(spec.volumes && { volumes: spec.volumes.map(renamed) }),
    },
  };
}

const apiAccessOf = ({ spec }: Pod): string | undefined => spec?.volumes?.find(isApiAccessVolume)?.name;

/** Volumes of a remote pod that would mount the tokens from another Secret. */
export function withTokensOf(volumes: readonly Volume[], from: string, to: string): Volume[] {
  return volumes.map((volume) => {
    const { projected } = volume;
    if (projected?.sources === undefined) return volume;
    const sources = projected.sources.map((source) =>
      source.secret?.name === from ? { ...source, secret: { ...source.secret, name: to } } : source,
    );
    return { ...volume, projected: { ...projected, sources } };
  });
}

/** Whether a container reads a token where it is never renewed: kubelets do not renew files that are mounted by subPath. */
export function hasFixedToken({ spec }: Pod): boolean {
  const isToken = ({ projected }: Volume): boolean =>
    projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken !== undefined) === true;
  const names = new Set(spec?.volumes?.filter(isToken).map(({ name }) => name));
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].some(({ volumeMounts = [] }) =>
    volumeMounts.some(
      ({ name, subPath, subPathExpr }) =>
        names.has(name) && (subPath !== undefined || subPathExpr !== undefined),
    ),
  );
}
