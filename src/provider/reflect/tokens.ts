import { ANNOTATION_HOME_NAMESPACE, LABEL_HOME_UID, LABEL_MANAGED_BY } from '../../api/names.ts';
import { secrets, serviceAccountTokens } from '../../api/resources.ts';
import type { DraftMeta, KubeObject, Pod, TokenRequest } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';
import type { TokenNeed } from '../forge/tokens.ts';
import { tokenNeeds, tokenSecretName } from '../forge/tokens.ts';
import type { Tenant } from '../tenant.ts';
import type { Tenants } from '../tenants.ts';
import { KEEP_UNREFERENCED_MS } from './reflector.ts';

/** RFC 3339 time at which the tokens in a Secret are to be fetched anew. */
const ANNOTATION_REFRESH_AT = 'tributary.dev/refresh-at';
/** Like the kubelet's token manager: at 80 % of the life, and once a day at the latest. */
const REFRESH_AT_SHARE = 0.8;
const LATEST_REFRESH_MS = 24 * 3600 * 1000;

export interface TokenKeeperOptions {
  home: KubeClient;
  foreign: KubeClient;
  homePods: Informer<Pod>;
  tenants: Tenants;
  virtualNode: string;
  homeApiReachable: () => boolean;
  contact: () => boolean;
  clock: Clock;
}

/**
 * Service-account tokens of the home cluster, bound to the home pod (KEP-1205) and so worthless once it is gone,
 * in one Secret per pod over there, renewed in good time.
 */
export class TokenKeeper {
  readonly #options: TokenKeeperOptions;

  constructor(options: TokenKeeperOptions) {
    this.#options = options;
  }

  /** Whether the pod's tokens, if it needs any, are over there. */
  ready(home: Pod): boolean {
    const tenant = this.#options.tenants.of(home.metadata.namespace ?? '');
    if (tokenNeeds(home, this.#options.homeApiReachable()).length === 0) return true;
    return tenant !== undefined && this.#copy(tenant, home.metadata.uid) !== undefined;
  }

  /** @param key `homeNamespace/UID of the home pod` */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { homePods, tenants, homeApiReachable, contact, clock } = this.#options;
    const [namespace, uid] = key.split('/') as [string, string];
    const tenant = tenants.of(namespace);
    if (tenant?.synced !== true || !homePods.synced || !contact()) return {};
    const pod = homePods.byIndex('uid', uid)[0];
    const copy = this.#copy(tenant, uid);
    const needs = pod === undefined ? [] : tokenNeeds(pod, homeApiReachable());
    if (pod === undefined || needs.length === 0) {
      return copy === undefined ? {} : this.#remove(copy, signal);
    }
    if (hasEnded(pod)) return {};
    const dueMs = Date.parse(copy?.metadata.annotations?.[ANNOTATION_REFRESH_AT] ?? '') - clock.now();
    if (dueMs > 0) return { requeueAfterMs: dueMs };
    return this.#renew({ pod, needs, copy, tenant }, signal);
  }

  #copy(tenant: Tenant, uid: string): KubeObject | undefined {
    return tenant.caches.Secret.remote.get(`${tenant.mapping.tenantNamespace}/${tokenSecretName(uid)}`);
  }

  async #renew(
    work: { pod: Pod; needs: TokenNeed[]; copy: KubeObject | undefined; tenant: Tenant },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { foreign, clock, virtualNode } = this.#options;
    const { pod, needs, copy, tenant } = work;
    const data: Record<string, string> = {};
    let refreshInMs = LATEST_REFRESH_MS;
    for (const need of needs) {
      const { token, expiresAt } = await this.#request(pod, need, signal);
      data[need.key] = Buffer.from(token).toString('base64');
      refreshInMs = Math.min(refreshInMs, (expiresAt - clock.now()) * REFRESH_AT_SHARE);
    }
    const metadata: DraftMeta = {
      name: tokenSecretName(pod.metadata.uid),
      namespace: tenant.mapping.tenantNamespace,
      labels: { [LABEL_MANAGED_BY]: virtualNode, [LABEL_HOME_UID]: pod.metadata.uid },
      annotations: {
        [ANNOTATION_HOME_NAMESPACE]: tenant.mapping.homeNamespace,
        [ANNOTATION_REFRESH_AT]: new Date(clock.now() + refreshInMs).toISOString(),
      },
    };
    const draft = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', data, metadata };
    if (copy === undefined) await foreign.create(secrets, draft, { signal });
    else {
      const { uid, resourceVersion } = copy.metadata;
      const stored = { ...draft, metadata: { ...copy.metadata, ...metadata, uid, resourceVersion } };
      await foreign.replace(secrets, stored, { signal });
    }
    return { requeueAfterMs: Math.max(1_000, refreshInMs) };
  }

  async #request(
    pod: Pod,
    need: TokenNeed,
    signal: AbortSignal,
  ): Promise<{ token: string; expiresAt: number }> {
    const answer = await this.#options.home.create(
      serviceAccountTokens,
      {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        metadata: {
          name: pod.spec?.serviceAccountName ?? 'default',
          namespace: pod.metadata.namespace ?? '',
        },
        spec: {
          audiences: need.audience === undefined ? [] : [need.audience],
          expirationSeconds: need.expirationSeconds,
          boundObjectRef: {
            apiVersion: 'v1',
            kind: 'Pod',
            name: pod.metadata.name,
            uid: pod.metadata.uid,
          },
        },
      } satisfies Omit<TokenRequest, 'metadata' | 'status'> & { metadata: DraftMeta },
      { subresource: 'token', signal },
    );
    return {
      token: answer.status?.token ?? '',
      expiresAt: Date.parse(answer.status?.expirationTimestamp ?? ''),
    };
  }

  async #remove(copy: KubeObject, signal: AbortSignal): Promise<ReconcileResult> {
    const age = this.#options.clock.now() - Date.parse(copy.metadata.creationTimestamp);
    // A home cache that is wrong for a moment must not cost a running pod its token.
    if (age < KEEP_UNREFERENCED_MS) return { requeueAfterMs: KEEP_UNREFERENCED_MS - age };
    const { name, namespace = '', uid } = copy.metadata;
    try {
      await this.#options.foreign.delete(secrets, { name, namespace }, { uid, signal });
    } catch (error) {
      if (!hasCode(error, 'NotFound', 'Conflict')) throw error;
    }
    return {};
  }
}

const hasEnded = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';
