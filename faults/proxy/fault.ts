/** What can go wrong between a client and an API server, and with which requests. Pure. */

export interface Asked {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly isWrite: boolean;
  readonly isWatch: boolean;
  /** A read of a collection, by pages or whole. */
  readonly isList: boolean;
  /** Plural of the kind; with a subresource, as in `pods/status`. Empty for what is no resource. */
  readonly resource: string;
}

/**
 * What happens to one request. `before` and `after`: whether the API server has carried it out. What is said of answers and lists leaves
 * watches alone: they have faults of their own.
 */
export type Fault =
  | { readonly kind: 'delay'; readonly ms: number }
  /** The API server says so. `retryAfter`: seconds; `message`: default "injected". */
  | {
      readonly kind: 'status';
      readonly code: number;
      readonly retryAfter?: number;
      readonly message?: string;
    }
  /** The connection ends, with all that it carries. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'after' }
  /** The answer ends in its middle. */
  | { readonly kind: 'truncate' }
  /** The API server gets it twice; the client sees the first answer. */
  | { readonly kind: 'duplicate' }
  /** A list as it was some time ago, with the resourceVersion of then; as it is, if none has passed before. */
  | { readonly kind: 'stale' }
  /** A list without items, with the resourceVersion of now. */
  | { readonly kind: 'empty' }
  /** No answer, until the faults end; then the connection ends. */
  | { readonly kind: 'silence' }
  /** The client is killed. */
  | { readonly kind: 'kill'; readonly when: 'before' | 'after' };

/** What happens to all watches, those that are open and those that are opened while it lasts. */
export type WatchFault =
  | { readonly kind: 'delay'; readonly ms: number }
  /** Half an event, then the end of the connection. */
  | { readonly kind: 'truncate' }
  | { readonly kind: 'duplicate' }
  /** Two neighbours change places. */
  | { readonly kind: 'reorder' }
  /** Every second event is followed by the one before it. */
  | { readonly kind: 'replay' }
  /** An event of the type ERROR with this code, then the end. */
  | { readonly kind: 'error'; readonly code: 410 | 500 }
  /** Nothing comes any more, and the connection ends when the faults do. */
  | { readonly kind: 'silence' };

/** As it is counted and printed: `delay`, `status 429`. */
export const kindOf = (fault: Fault): string =>
  fault.kind === 'status' ? `status ${fault.code}` : fault.kind;

/** The same of a watch: `watch delay`, `watch 410`. */
export const watchKindOf = (fault: WatchFault): string =>
  `watch ${fault.kind === 'error' ? fault.code : fault.kind}`;

const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
/** Asked for by POST, and they change nothing. */
const REVIEWS = /^\/apis\/(authentication|authorization)\.k8s\.io\//;
/** Group and version, perhaps a namespace, the resource, perhaps a name, perhaps a subresource. */
const RESOURCE =
  /^\/(?:api|apis\/[^/]+)\/[^/]+\/(?:namespaces\/[^/]+\/(?!(?:finalize|status)$)(?=[^/]))?(?<resource>[^/]+)(?:\/(?<name>[^/]+))?(?:\/(?<sub>[^/]+))?/;

export function asked(method: string, path: string): Asked {
  const [bare = '', query = ''] = path.split('?', 2);
  const { resource = '', name, sub } = RESOURCE.exec(bare)?.groups ?? {};
  const isWatch = /(?:^|&)watch=(?:1|true)(?:&|$)/.test(query);
  return {
    method,
    path,
    isWrite: WRITES.has(method) && !REVIEWS.test(bare),
    isWatch,
    isList: method === 'GET' && !isWatch && resource !== '' && name === undefined,
    resource: sub === undefined ? resource : `${resource}/${sub}`,
  };
}

/** Renewals say nothing and come by time, so that counting them would make the number of a write a matter of chance. */
export const isHeartbeat = ({ resource }: Asked): boolean => resource === 'leases';
