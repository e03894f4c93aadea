import { serviceAccountTokens } from '../../api/resources.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import type { Credential } from '../protocol/documents.ts';

/** Seconds. The API server refuses less; more would no longer be what people expect of a short-lived token. */
export const TOKEN_SECONDS = { least: 600, usual: 3600, most: 86_400 } as const;

/** A few at once after restarts, then one in ten seconds. A peer that asks faster does not work properly. */
const BUDGET = { burst: 10, perSecond: 0.1 };

export interface CredentialsOptions {
  client: KubeClient;
  clock: Clock;
  /** Life of a token, seconds. Default 3600, at least 600. */
  tokenSeconds?: number;
}

/** Tokens for the accounts of peers (TokenRequest, KEP-1205): the API server makes them, we keep none. */
export class Credentials {
  readonly #options: CredentialsOptions;
  readonly #seconds: number;
  readonly #budgets = new Map<string, TokenBucket>();

  constructor(options: CredentialsOptions) {
    const { least, usual, most } = TOKEN_SECONDS;
    const { tokenSeconds = usual } = options;
    if (!Number.isInteger(tokenSeconds) || tokenSeconds < least || tokenSeconds > most) {
      throw new TributaryError(
        'Invalid',
        `tokens of peers cannot live ${tokenSeconds} s; from ${least} s to ${most} s are allowed`,
      );
    }
    this.#options = options;
    this.#seconds = tokenSeconds;
  }

  async issue(consumer: string, signal: AbortSignal): Promise<Credential> {
    this.#spend(consumer);
    const answer = await this.#options.client.create(
      serviceAccountTokens,
      {
        metadata: { namespace: PEERS_NAMESPACE, name: consumer },
        // No audience: that of the API server itself.
        spec: { audiences: [], expirationSeconds: this.#seconds },
      },
      { subresource: 'token', signal },
    );
    const { token, expirationTimestamp: expires } = answer.status ?? {};
    if (token === undefined || expires === undefined) {
      throw new TributaryError('Unavailable', 'the API server answered without a token');
    }
    return { token, expires };
  }

  #spend(consumer: string): void {
    const { clock } = this.#options;
    const budget = this.#budgets.get(consumer) ?? new TokenBucket({ clock, ...BUDGET });
    this.#budgets.set(consumer, budget);
    const retryAfterMs = Math.ceil(budget.waitMs(1));
    if (retryAfterMs > 0) {
      throw new TributaryError('TooManyRequests', 'the peer asks for credentials too often', {
        retryAfterMs,
      });
    }
    budget.take(1);
  }
}
