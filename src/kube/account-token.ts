import { serviceAccountTokens } from '../api/resources.ts';
import type { AccountRef } from '../api/rbac.ts';
import type { Clock } from '../lib/clock.ts';
import { TributaryError } from '../lib/errors.ts';
import type { KubeClient } from './client.ts';
import type { Credentials } from './credentials.ts';

/** Life that is asked for, in seconds; an API server may give another one. */
const SECONDS = 3600;
/** The share of its life after which a token is replaced, so that an API server may be away for the rest. */
const RENEWED_AFTER = 0.7;

interface Held {
  token: string;
  /** By the monotonic clock, in milliseconds. */
  dueMs: number;
  endsMs: number;
}

/**
 * Tokens of another account of this cluster (TokenRequest, KEP-1205), for a process that acts under several. `client` needs the
 * right to create `serviceaccounts/token` there. A token is kept until it is due; those who ask meanwhile share one request.
 */
export function accountToken(
  client: Pick<KubeClient, 'create'>,
  account: AccountRef,
  clock: Clock,
): NonNullable<Credentials['token']> {
  let held: Held | undefined;
  let asking: Promise<Held> | undefined;
  const ask = async (): Promise<Held> => {
    asking ??= request(client, account, clock).finally(() => {
      asking = undefined;
    });
    return asking;
  };
  return async (_signal, fresh = false) => {
    const now = clock.monotonic();
    if (!fresh && held !== undefined && now < held.dueMs) return held.token;
    try {
      held = await ask();
    } catch (error) {
      if (fresh || held === undefined || now >= held.endsMs) throw error;
    }
    return held.token;
  };
}

async function request(
  client: Pick<KubeClient, 'create'>,
  { namespace, name }: AccountRef,
  clock: Clock,
): Promise<Held> {
  const began = clock.monotonic();
  const { spec, status } = await client.create(
    serviceAccountTokens,
    // No audience: that of the API server itself.
    { metadata: { namespace, name }, spec: { audiences: [], expirationSeconds: SECONDS } },
    { subresource: 'token' },
  );
  if (status?.token === undefined) {
    throw new TributaryError('Unavailable', `the API server gave no token of account ${namespace}/${name}`);
  }
  const lifeMs = (spec?.expirationSeconds ?? SECONDS) * 1000;
  return { token: status.token, dueMs: began + lifeMs * RENEWED_AFTER, endsMs: began + lifeMs };
}
