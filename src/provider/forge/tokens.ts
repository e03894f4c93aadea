import { createHash } from 'node:crypto';
import type { Pod, Volume } from '../../api/wire.ts';

/** One projected service-account token that the agent must fetch at home and keep fresh over there. */
export interface TokenNeed {
  /** Key in the token Secret. */
  key: string;
  audience: string | undefined;
  /** Seconds, as the pod asks; the API server may shorten it. */
  expirationSeconds: number;
}

/** Kubernetes' default for projected tokens (core/v1 ServiceAccountTokenProjection). */
const DEFAULT_EXPIRATION_SECONDS = 3600;

/** Name of the Secret over there that holds the tokens of one home pod. */
export const tokenSecretName = (homePodUid: string): string => `tributary-token-${homePodUid}`;

export function tokenKey(volume: string, path: string): string {
  return `t-${createHash('sha256').update(`${volume}\0${path}`).digest('hex').slice(0, 16)}`;
}

/**
 * The volume that the service-account admission adds to every pod that does not opt out. It is for the API server
 * of the pod's own cluster; where the foreign cluster cannot reach that, it is left out altogether.
 */
export const isApiAccessVolume = (volume: Volume): boolean =>
  volume.name.startsWith('kube-api-access-') && volume.projected !== undefined;

export function tokenNeeds(pod: Pod, homeApiReachable: boolean): TokenNeed[] {
  return (pod.spec?.volumes ?? [])
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
    );
}
