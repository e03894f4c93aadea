import {
  ANNOTATION_HOME_NAMESPACE,
  ANNOTATION_REFRESH_AT,
  ANNOTATION_SOURCE,
  LABEL_HOME_UID,
  LABEL_MANAGED_BY,
  OFFLOADED_REASONS,
} from '../../api/names.ts';
import { isApiAccessVolume } from '../../api/pod-before-admission.ts';
import { isFinished } from '../../api/pod.ts';
import { secrets, serviceAccountTokens } from '../../api/resources.ts';
import type { Draft, DraftMeta, KubeObject, Pod, TokenRequest } from '../../api/wire.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { deleteByUid } from '../../kube/write.ts';
import { errorMessage } from '../../lib/errors.ts';
import { remember } from '../../lib/remember.ts';
import {
  mountedTokens,
  namedLikeBody,
  type TokenNeed,
  tokenNeeds,
  tokenSecretName,
  tokenSecretUid,
} from '../forge/tokens.ts';
import { podKey } from '../home-pods.ts';
import type { HomeApiServerWay } from '../home-api-server.ts';
import type { CommonParts, OffloadedNamespaces } from '../namespaces.ts';
import { type Refusal, refusalOf } from '../pods/refusal.ts';
import type { KeptBodies } from '../restored/kept-bodies.ts';
import type { Tenant } from '../tenants.ts';
import { KEEP_UNREFERENCED_MS } from './reflector.ts';

/** Like the kubelet's token manager: at 80 % of the life, and once a day at the latest. */
const REFRESH_AT_SHARE = 0.8;
const LATEST_REFRESH_MS = 24 * 3600 * 1000;
/**
 * The tokens of one pod are asked for so often at once, and then once in each interval. It is the provider who says that they are
 * outdated, or gone, or who does not take them, and each request is work for the home API server.
 */
const BURST = 3;
const INTERVAL_MS = 10_000;
/** Pods of which the last requests are remembered. */
const MAX_REMEMBERED = 10_000;

export interface TokenReconcilerOptions extends Omit<CommonParts, 'events' | 'namespaces' | 'history'> {
  namespaces: Pick<OffloadedNamespaces, 'isAsked' | 'needsNothing'>;
  virtualNode: string;
  homeApiServer: () => HomeApiServerWay;
  kept: Pick<KeptBodies, 'isKept'>;
  /** Brings a pod that waits for its tokens back into the queue. */
  wake: (podKey: string) => void;
}

/** In a namespace that is being taken out, the last pods are checked this often. */
const ENDING_RETRY_MS = 1_000;
const REFUSED_RETRY_MS = 30_000;

/** Until it is decided whether a home pod takes over the body that its name has over there. */
const ADOPTION_MS = 500;

interface Work {
  pod: Pod;
  needs: TokenNeed[];
  /** The Secret over there. */
  secret: string;
  copy: KubeObject | undefined;
  tenant: Tenant;
}

interface Tokens {
  /** By key in the Secret, base64. */
  data: Record<string, string>;
  refreshInMs: number;
}

/**
 * Keeps service-account tokens of the home cluster over there: one Secret for each pod, renewed in good time. The tokens are
 * bound to the home pod (KEP-1205), and so worthless once it is gone. A home pod that has taken over a body (after a restore of home)
 * keeps its tokens in the Secret that the body mounts.
 */
export class TokenReconciler {
  readonly #options: TokenReconcilerOptions;
  /** By key: why the tokens could not be brought over there. */
  readonly #refusals = new Map<string, Refusal>();
  /** By key: when it may be asked BURST times at once again, as in the generic cell rate algorithm. Monotonic ms. */
  readonly #fullAt = new Map<string, number>();

  constructor(options: TokenReconcilerOptions) {
    this.#options = options;
  }

  /** Whether the pod's tokens, if it needs any, are over there, or why they cannot be. */
  state(home: Pod): 'ready' | 'pending' | Refusal {
    const { uid, namespace = '' } = home.metadata;
    const way = this.#options.homeApiServer();
    if (way.kind === 'Unknown' && asksForHome(home)) {
      return { reason: OFFLOADED_REASONS.missingReference, message: way.message };
    }
    const needs = tokenNeeds(home, way.kind === 'At');
    if (needs.length === 0) return 'ready';
    const tenant = this.#options.tenants.of(namespace);
    const copy = tenant && copyOf(tenant, tokenSecretName(uid));
    if (copy !== undefined && holds(copy, needs)) return 'ready';
    return this.#refusals.get(`${namespace}/${uid}`) ?? 'pending';
  }

  /** @param key `homeNamespace/UID of the home pod` */
  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { homePods, tenants, namespaces, contact } = this.#options;
    const [namespace, uid] = key.split('/') as [string, string];
    const tenant = tenants.of(namespace);
    if (tenant?.synced !== true || !homePods.synced || !contact()) return {};
    const pod = homePods.byIndex('uid', uid)[0];
    if (pod !== undefined && !namespaces.needsNothing(pod)) {
      return this.#reconcilePod(key, pod, tenant, signal);
    }
    this.#refusals.delete(key);
    this.#fullAt.delete(key);
    return this.#remove(copyOf(tenant, tokenSecretName(uid)), tenant, signal);
  }

  async #reconcilePod(key: string, pod: Pod, tenant: Tenant, signal: AbortSignal): Promise<ReconcileResult> {
    const { name, uid } = pod.metadata;
    const found = tenant.remotePod(name);
    const body = found?.metadata.labels?.[LABEL_HOME_UID] === uid ? found : undefined;
    if (found !== body && found !== undefined && this.#options.kept.isKept(found))
      return { requeueAfterMs: ADOPTION_MS };
    const secret = this.#secretOf(uid, body);
    const copy = copyOf(tenant, secret);
    const needs = this.#needsOf(pod, body, copy);
    if (needs === 'unknown') return {};
    if (needs.length === 0) {
      this.#refusals.delete(key);
      return this.#remove(copy, tenant, signal);
    }
    if (isFinished(pod)) return {};
    // From before it took over the body, which mounts another one.
    const spare = tokenSecretName(uid);
    if (secret !== spare) await this.#delete(copyOf(tenant, spare), signal);
    return this.#keep(key, { pod, needs, secret, copy, tenant }, signal);
  }

  /** UID of the home pod whose tokens the Secret over there of that one holds: another one, where it has left its body to it. */
  ownerOf(homeNamespace: string, uid: string): string {
    const { homePods, tenants } = this.#options;
    if (homePods.hasIndexed('uid', uid)) return uid;
    const bodies = tenants.of(homeNamespace)?.pods.list() ?? [];
    return bodyThatMounts(bodies, tokenSecretName(uid))?.metadata.labels?.[LABEL_HOME_UID] ?? uid;
  }

  /** Its own one, or that of the pod before it, whose body it has. What a body mounts is the provider's word. */
  #secretOf(uid: string, body: Pod | undefined): string {
    const mounted = body && mountedTokens(body)?.secret;
    const made = mounted === undefined ? undefined : tokenSecretUid(mounted);
    const isOfAnother = made !== undefined && this.#options.homePods.hasIndexed('uid', made);
    return mounted === undefined || isOfAnother ? tokenSecretName(uid) : mounted;
  }

  /** `unknown`: the pod waits until it is known whether it gets a token for the home API server. */
  #needsOf(home: Pod, body: Pod | undefined, copy: KubeObject | undefined): TokenNeed[] | 'unknown' {
    const { kind } = this.#options.homeApiServer();
    const pod = body === undefined ? home : namedLikeBody(home, body);
    const all = tokenNeeds(pod, true);
    if (kind === 'Unknown' && copy === undefined && asksForHome(pod)) return 'unknown';
    // What is there stays complete while it is not known for a moment.
    const isReachable = kind === 'At' || (kind === 'Unknown' && copy !== undefined && holds(copy, all));
    const needs = isReachable ? all : tokenNeeds(pod, false);
    if (body === undefined) return needs;
    // A body from before there was a way home can use no token for it.
    const mounted = mountedTokens(body)?.keys;
    return needs.filter((need) => mounted?.has(need.key));
  }

  async #keep(key: string, work: Work, signal: AbortSignal): Promise<ReconcileResult> {
    const { pod, copy, needs } = work;
    const refreshAt = Date.parse(copy?.metadata.annotations?.[ANNOTATION_REFRESH_AT] ?? '');
    const dueMs = refreshAt - this.#options.clock.now();
    // Later than any is written: the clock was set back, and the token would end before.
    const isOfAnother = copy !== undefined && copy.metadata.labels?.[LABEL_HOME_UID] !== pod.metadata.uid;
    const isDue = !(dueMs > 0) || dueMs > LATEST_REFRESH_MS || isOfAnother;
    if (!isDue && copy !== undefined && holds(copy, needs)) return { requeueAfterMs: dueMs };
    const waitMs = this.#takeTurn(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const outcome = await this.#renew(work, signal);
    if (typeof outcome === 'number') {
      this.#refusals.delete(key);
      return { requeueAfterMs: outcome };
    }
    this.#refusals.set(key, outcome);
    this.#options.wake(podKey(pod));
    return { requeueAfterMs: REFUSED_RETRY_MS };
  }

  /** 0: the tokens may be asked for now; else milliseconds to wait, whatever the Secret says. */
  #takeTurn(key: string): number {
    const now = this.#options.clock.monotonic();
    const fullAt = Math.max(this.#fullAt.get(key) ?? now, now) + INTERVAL_MS;
    const waitMs = fullAt - BURST * INTERVAL_MS - now;
    if (waitMs <= 0) remember(this.#fullAt, key, fullAt, MAX_REMEMBERED);
    return Math.max(0, Math.ceil(waitMs));
  }

  /** Milliseconds until the next renewal, or why there is none. */
  async #renew(work: Work, signal: AbortSignal): Promise<number | Refusal> {
    let fetched: Tokens;
    try {
      fetched = await this.#fetch(work, signal);
    } catch (error) {
      if (refusalOf(error) === undefined) throw error;
      const message = `failed to fetch token: ${errorMessage(error)}`;
      return { reason: OFFLOADED_REASONS.missingReference, message };
    }
    try {
      await this.#store(work, fetched, signal);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === undefined) throw error;
      return refusal;
    }
    return Math.max(1_000, fetched.refreshInMs);
  }

  async #fetch({ pod, needs }: Work, signal: AbortSignal): Promise<Tokens> {
    const { clock } = this.#options;
    const data: Record<string, string> = {};
    let refreshInMs = LATEST_REFRESH_MS;
    for (const need of needs) {
      const { token, expiresAt } = await this.#request(pod, need, signal);
      data[need.key] = Buffer.from(token).toString('base64');
      refreshInMs = Math.min(refreshInMs, (expiresAt - clock.now()) * REFRESH_AT_SHARE);
    }
    return { data, refreshInMs };
  }

  async #store(
    { pod, secret, copy, tenant }: Work,
    { data, refreshInMs }: Tokens,
    signal: AbortSignal,
  ): Promise<void> {
    const { foreign, clock, virtualNode } = this.#options;
    const metadata: DraftMeta = {
      name: secret,
      namespace: tenant.mapping.tenantNamespace,
      labels: { [LABEL_MANAGED_BY]: virtualNode, [LABEL_HOME_UID]: pod.metadata.uid },
      annotations: {
        [ANNOTATION_HOME_NAMESPACE]: tenant.mapping.homeNamespace,
        [ANNOTATION_REFRESH_AT]: new Date(clock.now() + refreshInMs).toISOString(),
        [ANNOTATION_SOURCE]: Object.keys(data).join(SEPARATOR),
      },
    };
    const draft = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', data, metadata };
    const options = { metadataOnly: true, signal };
    if (copy === undefined) await foreign.create(secrets, draft, options);
    else {
      const { uid, resourceVersion } = copy.metadata;
      const stored = { ...draft, metadata: { ...copy.metadata, ...metadata, uid, resourceVersion } };
      await foreign.replace(secrets, stored, options);
    }
  }

  async #request(
    pod: Pod,
    need: TokenNeed,
    signal: AbortSignal,
  ): Promise<{ token: string; expiresAt: number }> {
    const { name, namespace = '', uid } = pod.metadata;
    const request: Draft<TokenRequest> = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: pod.spec?.serviceAccountName ?? 'default', namespace },
      spec: {
        audiences: need.audience === undefined ? [] : [need.audience],
        expirationSeconds: need.expirationSeconds,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    };
    const { status } = await this.#options.home.create(serviceAccountTokens, request, {
      subresource: 'token',
      signal,
    });
    return { token: status?.token ?? '', expiresAt: Date.parse(status?.expirationTimestamp ?? '') };
  }

  async #remove(copy: KubeObject | undefined, tenant: Tenant, signal: AbortSignal): Promise<ReconcileResult> {
    if (copy === undefined) return {};
    const isEnding = !this.#options.namespaces.isAsked(tenant.mapping.homeNamespace);
    const age = this.#options.clock.now() - Date.parse(copy.metadata.creationTimestamp);
    // A home cache that is wrong for a moment must not take the token from a running pod.
    if (!isEnding && age < KEEP_UNREFERENCED_MS) return { requeueAfterMs: KEEP_UNREFERENCED_MS - age };
    const isUsed = bodyThatMounts(tenant.pods.list(), copy.metadata.name) !== undefined;
    if (isUsed) return { requeueAfterMs: isEnding ? ENDING_RETRY_MS : KEEP_UNREFERENCED_MS };
    await this.#delete(copy, signal);
    return {};
  }

  async #delete(copy: KubeObject | undefined, signal: AbortSignal): Promise<void> {
    if (copy !== undefined) await deleteByUid(this.#options.foreign, secrets, copy, { signal });
  }
}

const copyOf = ({ caches, mapping }: Tenant, secret: string): KubeObject | undefined =>
  caches.Secret.remote.get(`${mapping.tenantNamespace}/${secret}`);

function bodyThatMounts(bodies: Iterable<Pod>, secret: string): Pod | undefined {
  for (const body of bodies) if (mountedTokens(body)?.secret === secret) return body;
  return undefined;
}

const asksForHome = ({ spec }: Pod): boolean => (spec?.volumes ?? []).some(isApiAccessVolume);

const SEPARATOR = ',';

/** Whether all these tokens are in the Secret: our cache has no data. A Secret of an earlier version does not say, and is believed. */
function holds({ metadata }: KubeObject, needs: readonly TokenNeed[]): boolean {
  const keys = metadata.annotations?.[ANNOTATION_SOURCE]?.split(SEPARATOR);
  return keys === undefined || needs.every(({ key }) => keys.includes(key));
}
