import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { timestamp } from '../../api/conditions.ts';
import { isClusterID } from '../../api/forms.ts';
import { APP_NAME, checkedLabel, LABEL_APP_NAME } from '../../api/manifest.ts';
import { JOIN_TOKEN_TYPE, LABEL_JOIN_TOKEN } from '../../api/names.ts';
import { secrets } from '../../api/resources.ts';
import type { Secret } from '../../api/wire.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { deleteByUid } from '../../kube/write.ts';
import { errorMessage, hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';

/** What a person carries from the provider to the consumer. */
interface JoinToken {
  /** ClusterID of the provider that made it: the token also proves whom to trust. */
  clusterID: string;
  /** Name of the entry that the provider keeps; not secret. */
  name: string;
  /** 43 characters of base64url: 32 random bytes. */
  secret: string;
}

/** A name must fit, with its prefix, into the name of a Secret and into a label. */
const MAX_TOKEN_NAME = 40;
/** ClusterID, name, secret and two dots. */
const MAX_TOKEN_LENGTH = 26 + MAX_TOKEN_NAME + 43 + 2;
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** `<clusterID>.<name>.<secret>`: none of the three can hold a dot. */
export function formatJoinToken({ clusterID, name, secret }: JoinToken): string {
  return `${clusterID}.${name}.${secret}`;
}

/** Throws Invalid for anything else, without repeating what it was given: it may hold a secret. */
export function parseJoinToken(text: string): JoinToken {
  const trimmed = text.trim();
  const parts = trimmed.length > MAX_TOKEN_LENGTH ? [] : trimmed.split('.');
  const [clusterID = '', name = '', secret = ''] = parts;
  if (parts.length !== 3 || !isClusterID(clusterID) || !isTokenName(name) || !SECRET.test(secret)) {
    throw new TributaryError(
      'Invalid',
      'the join token is not of the form <clusterID>.<name>.<secret>; copy all of what `tributary token create` printed',
    );
  }
  return { clusterID, name, secret };
}

/** Throws Invalid with one line that says what is wrong. */
const checkedTokenName = (name: string): string => checkedLabel('token name', name, MAX_TOKEN_NAME);

function isTokenName(name: string): boolean {
  return name.length <= MAX_TOKEN_NAME && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name);
}

const NAME_PREFIX = 'tributary-join-';

/** How long a token is valid, in seconds. */
const DEFAULT_JOIN_TOKEN_SECONDS: number = 24 * 3600;
const SECONDS_BOUNDS = { least: 60, most: 30 * 24 * 3600 };
/** For this time an expired entry is kept and answers TokenExpired; then it is removed. */
const REMOVED_AFTER_MS = 24 * 3600_000;
const JANITOR_INTERVAL_MS = 10 * 60_000;
/** More entries than this are somebody's mistake. */
const MAX_TOKENS = 1000;

/** What is known of a token; nothing of it is secret. */
interface JoinTokenEntry {
  name: string;
  created: string;
  /** RFC 3339. */
  expires: string;
  /** ClusterID of the consumer that used it. */
  usedBy?: string;
}

/** `name` is that of the entry; the other results are reasons of FOREIGN_CLUSTER_REASONS. */
export type TokenCheckResult =
  { result: 'ok'; name: string } | { result: 'TokenInvalid' | 'TokenExpired' | 'TokenUsed' };

interface JoinTokensOptions extends ClusterBasics {
  /** Where we run. */
  namespace: string;
  /** Our own. */
  clusterID: string;
  /** For tests: returns 43 characters of base64url. */
  randomSecret?: () => string;
}

/**
 * The join tokens that we have given out. For each there is a Secret in our own namespace, with the hash of the token's
 * secret, never the secret itself. The first consumer that shows a token owns it: its ClusterID is written with the
 * version of the Secret, so that of two that come at once one fails. The same consumer may show it again, so that a
 * restart in between does no harm.
 */
export class JoinTokens {
  readonly #options: JoinTokensOptions;

  constructor(options: JoinTokensOptions) {
    this.#options = options;
  }

  /** The text is returned only here and kept nowhere. Throws AlreadyExists where the name is taken. */
  async create(
    options: { name?: string; seconds?: number; signal?: AbortSignal } = {},
  ): Promise<{ text: string; expires: string; name: string }> {
    const { client, clock, namespace, clusterID, randomSecret = freshSecret } = this.#options;
    const seconds = checkedSeconds(options.seconds ?? DEFAULT_JOIN_TOKEN_SECONDS);
    const name = checkedTokenName(options.name ?? randomBytes(4).toString('hex'));
    const secret = randomSecret();
    const expires = timestamp(clock.now() + seconds * 1000);
    const body = {
      metadata: {
        name: `${NAME_PREFIX}${name}`,
        namespace,
        labels: { [LABEL_APP_NAME]: APP_NAME, [LABEL_JOIN_TOKEN]: name },
      },
      type: JOIN_TOKEN_TYPE,
      data: { hash: hashOf(secret).toString('base64'), expires: encode(expires) },
    };
    await client.create(secrets, body, { ...(options.signal && { signal: options.signal }) });
    return { text: formatJoinToken({ clusterID, name, secret }), expires, name };
  }

  /**
   * Whether this text lets that consumer in, and if so, marks the token as its own. Never says which part was
   * wrong: an unknown name, a wrong secret and another cluster's token are all TokenInvalid. Throws only where the
   * API server fails us.
   */
  async check(text: string, consumer: string, signal?: AbortSignal): Promise<TokenCheckResult> {
    const token = this.#parsed(text);
    if (token === undefined) return { result: 'TokenInvalid' };
    const secret = await this.#read(token.name, signal);
    const verdict = judge(secret, { secret: token.secret, consumer, nowMs: this.#options.clock.now() });
    if (verdict !== 'unused') {
      return verdict === 'ok' ? { result: 'ok', name: token.name } : { result: verdict };
    }
    // If another consumer was faster, the caller gets Conflict, asks again and gets TokenUsed.
    await this.#options.client.replace(secrets, marked(secret, consumer), { ...(signal && { signal }) });
    return { result: 'ok', name: token.name };
  }

  async list(signal?: AbortSignal): Promise<JoinTokenEntry[]> {
    return (await this.#secrets(signal)).map(entryOf).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Throws NotFound where there is none of that name. A consumer that has used it stays. */
  async delete(name: string, signal?: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options;
    const ref = { namespace, name: `${NAME_PREFIX}${checkedTokenName(name)}` };
    await client.delete(secrets, ref, { ...(signal && { signal }) });
  }

  /** Removes entries that expired a day ago or earlier. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    for (const secret of await this.#secrets(signal)) {
      const { expires } = entryOf(secret);
      if (Date.parse(expires) + REMOVED_AFTER_MS > clock.now()) continue;
      await deleteByUid(client, secrets, secret, present({ signal }));
    }
  }

  /** Sweeps now and every ten minutes. */
  janitor(): Component {
    const { clock, log } = this.#options;
    const background = new Background();
    const rounds = async (signal: AbortSignal): Promise<void> => {
      while (!signal.aborted) {
        await this.sweep(signal).catch((error: unknown) => {
          if (!signal.aborted) log.warn('cannot remove expired join tokens', { error: errorMessage(error) });
        });
        await clock.sleep(JANITOR_INTERVAL_MS, signal).catch(() => undefined);
      }
    };
    return {
      name: 'join token janitor',
      start: () => background.run(rounds),
      stop: background.stop,
    };
  }

  #parsed(text: string): { name: string; secret: string } | undefined {
    try {
      const token = parseJoinToken(text);
      return token.clusterID === this.#options.clusterID ? token : undefined;
    } catch (error) {
      if (hasCode(error, 'Invalid')) return undefined;
      throw error;
    }
  }

  async #read(name: string, signal?: AbortSignal): Promise<Secret | undefined> {
    const { client, namespace } = this.#options;
    const ref = { namespace, name: `${NAME_PREFIX}${name}` };
    const reading = client.get(secrets, ref, { ...(signal && { signal }) });
    const secret = await reading.catch(ignoring('NotFound'));
    return secret?.type === JOIN_TOKEN_TYPE ? secret : undefined;
  }

  async #secrets(signal?: AbortSignal): Promise<Secret[]> {
    const { client, namespace } = this.#options;
    const { items } = await client.list(secrets, {
      namespace,
      labelSelector: LABEL_JOIN_TOKEN,
      ...(signal && { signal }),
    });
    return items.filter(({ type }) => type === JOIN_TOKEN_TYPE).slice(0, MAX_TOKENS);
  }
}

type Judgement = 'ok' | 'unused' | 'TokenInvalid' | 'TokenExpired' | 'TokenUsed';

/** The hash is compared first, in constant time: whoever does not have the secret learns nothing about the entry. */
function judge(
  entry: Secret | undefined,
  shown: { secret: string; consumer: string; nowMs: number },
): Judgement {
  const kept = Buffer.from(entry?.data?.['hash'] ?? '', 'base64');
  const given = hashOf(shown.secret);
  const fits = timingSafeEqual(kept.length === given.length ? kept : Buffer.alloc(given.length), given);
  if (entry === undefined || !fits) return 'TokenInvalid';
  const { expires, usedBy } = entryOf(entry);
  if (usedBy !== undefined) return usedBy === shown.consumer ? 'ok' : 'TokenUsed';
  // Not `<=`: an entry whose expiry cannot be read has expired.
  return Date.parse(expires) > shown.nowMs ? 'unused' : 'TokenExpired';
}

const marked = (secret: Secret | undefined, consumer: string): Secret => {
  if (secret === undefined) throw new Error('a token that is not there cannot be marked');
  return { ...secret, data: { ...secret.data, usedBy: encode(consumer) } };
};

function entryOf({ metadata, data }: Secret): JoinTokenEntry {
  const text = (key: string): string => Buffer.from(data?.[key] ?? '', 'base64').toString('utf8');
  const usedBy = text('usedBy');
  return {
    name: metadata.name.slice(NAME_PREFIX.length),
    created: metadata.creationTimestamp,
    expires: text('expires'),
    ...(usedBy !== '' && { usedBy }),
  };
}

function checkedSeconds(seconds: number): number {
  const { least, most } = SECONDS_BOUNDS;
  if (Number.isInteger(seconds) && seconds >= least && seconds <= most) return seconds;
  throw new TributaryError(
    'Invalid',
    `a join token cannot live ${seconds} s; from ${least} s to ${most} s are allowed`,
  );
}

/** Plain SHA-256 is enough: the secret has 256 random bits and cannot be guessed. */
const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();
const encode = (text: string): string => Buffer.from(text).toString('base64');
const freshSecret = (): string => randomBytes(32).toString('base64url');
