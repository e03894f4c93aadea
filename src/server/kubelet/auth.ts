import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

import { subjectAccessReviews, tokenReviews } from '../../api/resources.ts';
import type { Basics } from '../../lib/basics.ts';
import type { KubeClient } from '../../kube/client.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { ExpiringCache } from './expiring-cache.ts';
import { authenticated, bearerToken, type UserInfo } from './user.ts';

/** One permission on this node that a user asks for. */
export interface AccessQuestion {
  user: UserInfo;
  nodeName: string;
  verb: string;
  subresource: string;
}

/** The two questions that a kubelet leaves to its API server. */
export interface Reviews {
  /** Undefined when the token belongs to no user. */
  token(token: string, signal: AbortSignal): Promise<UserInfo | undefined>;
  access(question: AccessQuestion, signal: AbortSignal): Promise<boolean>;
}

/** Asks the home API server. As in the kubelet no audience is named, so that only the server's own are good. */
export const apiServerReviews = (client: KubeClient): Reviews => ({
  async token(token, signal) {
    const review = await client.create(tokenReviews, { metadata: {}, spec: { token } }, { signal });
    const user = review.status?.authenticated === true ? review.status.user : undefined;
    if (user?.username === undefined || user.username === '') return undefined;
    return {
      name: user.username,
      groups: user.groups ?? [],
      ...present({ uid: user.uid, extra: user.extra }),
    };
  },

  async access({ user, nodeName, verb, subresource }, signal) {
    const spec = {
      user: user.name,
      groups: user.groups,
      ...present({ uid: user.uid, extra: user.extra }),
      resourceAttributes: { verb, version: 'v1', resource: 'nodes', subresource, name: nodeName },
    };
    const review = await client.create(subjectAccessReviews, { metadata: {}, spec }, { signal });
    return review.status?.allowed === true && review.status.denied !== true;
  },
});

/**
 * Which permissions a request to the kubelet API asks for. The table is that of kubelet 1.36
 * (pkg/kubelet/server/auth.go, KEP-2862): attributes are tried in order, the first allowed one lets in.
 * All of them are on the resource `nodes`, named as this node.
 */
interface NodeAttributes {
  verb: string;
  /** Never empty. */
  subresources: string[];
}

const VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** Finer permissions of KubeletFineGrainedAuthz; they come before the one below. */
const FINE: readonly [prefix: string, subresource: string][] = [
  ['/pods', 'pods'],
  ['/healthz', 'healthz'],
  ['/configz', 'configz'],
  ['/runningpods', 'pods'],
];

const COARSE: readonly [prefix: string, subresource: string][] = [
  ['/stats', 'stats'],
  ['/metrics', 'metrics'],
  ['/logs', 'log'],
  ['/checkpoint', 'checkpoint'],
  ['/statusz', 'statusz'],
  ['/flagz', 'configz'],
];

const under = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);

const find = (table: readonly [string, string][], path: string): string | undefined =>
  table.find(([prefix]) => under(path, prefix))?.[1];

/** A method that has no verb (HEAD, OPTIONS) asks for the empty one: only who may do everything may do that. */
export function requestAttributes(method: string, path: string): NodeAttributes {
  const verb = VERBS[method] ?? '';
  const fine = find(FINE, path);
  const coarse = find(COARSE, path) ?? 'proxy';
  return { verb, subresources: fine === undefined ? [coarse] : [fine, coarse] };
}

/** The kubelet's own times. */
const TOKEN_TTL_MS = 120_000;
const ALLOWED_TTL_MS = 300_000;
const DENIED_TTL_MS = 30_000;
/** Long enough to blunt a flood of bad tokens, short enough for one that becomes good. */
const BAD_TOKEN_TTL_MS = 10_000;
const REVIEW_DEADLINE_MS = 10_000;
const MAX_ENTRIES = 4096;
/** Of each sort. A client that is honest, but comes when so many are under way, comes again. */
const MAX_REVIEWS = 64;
/** A longer token is not valid; the API server would not accept it either. */
const MAX_TOKEN_BYTES = 16_384;

/** Why a request is turned away. */
interface Refusal {
  status: number;
  text: string;
}

interface KubeletAuthOptions extends Basics {
  nodeName: string;
  reviews: Reviews;
  /** The user of a connection's client certificate, where there is a good one. */
  certificateUser: (socket: TLSSocket) => UserInfo | undefined;
}

type Identified = { user: UserInfo } | Refusal;

const BUSY: Refusal = { status: 429, text: 'too many reviews are under way; try again in a second' };

const digest = (text: string): string => createHash('sha256').update(text).digest('base64');

/**
 * Authentication and authorisation as the kubelet does them: client certificate, else bearer token; nobody is
 * anonymous. Answers of the API server are cached under hashes, so that no token stays in memory.
 */
export class KubeletAuth {
  readonly #options: KubeletAuthOptions;
  readonly #tokens: ExpiringCache<UserInfo | undefined>;
  readonly #decisions: ExpiringCache<boolean>;

  constructor(options: KubeletAuthOptions) {
    this.#options = options;
    const bounds = { clock: options.clock, maxEntries: MAX_ENTRIES, maxPending: MAX_REVIEWS };
    this.#tokens = new ExpiringCache(bounds);
    this.#decisions = new ExpiringCache(bounds);
  }

  /** Undefined lets the request in. `path` is the one that is routed, as it came, without its query. */
  async refusal(request: IncomingMessage, path: string): Promise<Refusal | undefined> {
    const identified = await this.#identify(request);
    if ('status' in identified) return identified;
    return this.#authorize(identified.user, request.method ?? '', path);
  }

  async #identify(request: IncomingMessage): Promise<Identified> {
    const unauthorized: Refusal = { status: 401, text: 'Unauthorized' };
    const { certificateUser, log } = this.#options;
    const byCertificate = certificateUser(request.socket as TLSSocket);
    if (byCertificate !== undefined) return { user: authenticated(byCertificate) };
    const token = bearerToken(request.headers);
    if (token === undefined || token.length > MAX_TOKEN_BYTES) return unauthorized;
    try {
      const user = await this.#byToken(token);
      return user === undefined ? unauthorized : { user: authenticated(user) };
    } catch (error) {
      if (hasCode(error, 'TooManyRequests')) return BUSY;
      log.warn('cannot review a token', { error: errorMessage(error) });
      return unauthorized;
    }
  }

  async #byToken(token: string): Promise<UserInfo | undefined> {
    return this.#tokens.get(
      digest(token),
      () => this.#timed((signal) => this.#options.reviews.token(token, signal)),
      (user) => (user === undefined ? BAD_TOKEN_TTL_MS : TOKEN_TTL_MS),
    );
  }

  async #authorize(user: UserInfo, method: string, path: string): Promise<Refusal | undefined> {
    const { verb, subresources } = requestAttributes(method, path);
    const who = `user=${user.name}, verb=${verb}, resource=nodes`;
    for (const subresource of subresources) {
      try {
        if (await this.#allowed(user, verb, subresource)) return undefined;
      } catch (error) {
        if (hasCode(error, 'TooManyRequests')) return BUSY;
        this.#options.log.warn('cannot review access', { user: user.name, error: errorMessage(error) });
        return { status: 500, text: `Authorization error (${who}, subresource=${subresource})` };
      }
    }
    return { status: 403, text: `Forbidden (${who}, subresource(s)=[${subresources.join(' ')}])\n` };
  }

  async #allowed(user: UserInfo, verb: string, subresource: string): Promise<boolean> {
    const { nodeName, reviews } = this.#options;
    const key = JSON.stringify([user.name, user.uid, user.groups, user.extra, verb, subresource]);
    return this.#decisions.get(
      digest(key),
      () => this.#timed((signal) => reviews.access({ user, nodeName, verb, subresource }, signal)),
      (allowed) => (allowed ? ALLOWED_TTL_MS : DENIED_TTL_MS),
    );
  }

  /** The answer serves everyone who waits for it, so only a timeout may end the question, not a client that leaves. */
  async #timed<Value>(ask: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    using deadline = startDeadline(this.#options.clock, REVIEW_DEADLINE_MS, 'review by the home API server');
    return await ask(deadline.signal);
  }
}
