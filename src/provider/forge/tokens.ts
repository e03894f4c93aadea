import { createHash } from 'node:crypto';
import { isApiAccessVolume } from '../../api/pod-before-admission.ts';
import type { Pod } from '../../api/wire.ts';
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

/** Keys of the token Secret that a remote pod mounts. */
export function mountedTokens({ spec }: Pod, homePodUid: string): Set<string> {
  const name = tokenSecretName(homePodUid);
  const items = (spec?.volumes ?? [])
    .flatMap(({ projected }) => projected?.sources ?? [])
    .flatMap(({ secret }) => (secret?.name === name ? (secret.items ?? []) : []));
  return new Set(items.map(({ key }) => key));
}
