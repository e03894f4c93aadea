import type { Readable } from 'node:stream';
import type { ResourceType } from '../api/resources.ts';
import type { DraftMeta, KubeObject } from '../api/wire.ts';
import type { Basics } from '../lib/basics.ts';

/** Name and, for namespaced kinds, namespace of one object. */
export interface ObjectRef {
  name: string;
  namespace?: string;
}

export interface CallOptions {
  /** The answer is the object's metadata only (`PartialObjectMetadata`): for a write whose result nobody reads. */
  metadataOnly?: boolean;
  /** Called whenever the request is about to be sent, repetitions included; what it throws ends the call, unsent. */
  guard?: () => void;
  signal?: AbortSignal;
  /** For example `status`, `ephemeralcontainers`, `resize`, `token`, `binding`. */
  subresource?: string;
}

export interface ListOptions {
  /** If omitted, all namespaces. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /**
   * Page size; the client follows `continue` by itself. `whole`: all in one answer, which is read as it comes. API servers before 1.37
   * look at all that follows for each page (kubernetes/kubernetes#140896), and end an answer that takes longer than a minute.
   */
  limit?: number | 'whole';
  resourceVersion?: string;
  resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  /** Ask for `PartialObjectMetadata` only: no data leaves the API server. */
  metadataOnly?: boolean;
  signal?: AbortSignal;
}

export interface WatchOptions extends ListOptions {
  resourceVersion: string;
  /** Asks the server to close the watch after this long (seconds). */
  timeoutSeconds?: number;
  /** Whether the server is to tell now and then how far it is. Default: true. */
  bookmarks?: boolean;
  /** Called when the server has accepted the watch, which may then stay silent for long. */
  onOpen?: () => void;
}

export interface ObjectList<T> {
  resourceVersion: string;
  items: T[];
}

export type WatchEvent<T> =
  { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T } | { type: 'BOOKMARK'; resourceVersion: string };

export type PatchBody =
  | { type: 'merge' | 'strategic'; body: object }
  | { type: 'json'; body: { op: 'add' | 'remove' | 'replace' | 'test'; path: string; value?: unknown }[] }
  | { type: 'apply'; body: object; fieldManager: string; force?: boolean };

export interface CreateOptions extends CallOptions {
  /** Judged as if it were made, by validation and admission, but not stored. */
  dryRun?: boolean;
}

export interface DeleteOptions extends CallOptions {
  gracePeriodSeconds?: number;
  /** If the object there has another UID, the request fails with Conflict. */
  uid?: string;
  /** If somebody has written since this version, the request fails with Conflict. */
  resourceVersion?: string;
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
}

/** A raw request; the caller reads and ends the stream. */
export interface RawRequest {
  method: string;
  /** Path with query, for example `/api/v1/namespaces/a/pods/b/log?follow=true`. */
  path: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  /** By a connection that is dialled for it: those of before get no further requests. What they carry goes on. */
  isFresh?: boolean;
}

export interface RawResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Readable;
}

/**
 * A client of one API server, which speaks plain JSON. Every method throws TributaryError (see lib/errors.ts) and stops
 * when its signal fires. Returned objects are as the server sent them, but without `metadata.managedFields`.
 */
export interface KubeClient {
  get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options?: CallOptions): Promise<T>;
  /** Returns the objects of all pages. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): Promise<ObjectList<T>>;
  /**
   * Returns the objects in parts of a page or less, in order; at least one part, for callers that must not hold all at once.
   * The last part has the list's version.
   */
  pages<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions): AsyncIterable<ObjectList<T>>;
  /** `body` needs metadata.name (or generateName) and, where namespaced, metadata.namespace. */
  create<T extends KubeObject>(
    type: ResourceType<T>,
    body: Omit<T, 'metadata'> & { metadata: DraftMeta },
    options?: CreateOptions,
  ): Promise<T>;
  /** PUT. If the body has a resourceVersion that is not the current one, it fails with Conflict. */
  replace<T extends KubeObject>(type: ResourceType<T>, body: T, options?: CallOptions): Promise<T>;
  patch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    patch: PatchBody,
    options?: CallOptions,
  ): Promise<T>;
  delete<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /**
   * Ends without error when the server closes the stream; throws Expired on 410, in the answer or in the stream.
   * HTTP/2 pings detect a connection that has gone silent; the watch then throws Unreachable.
   */
  watch<T extends KubeObject>(type: ResourceType<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  raw(request: RawRequest): Promise<RawResponse>;
  close(): Promise<void>;
}

/** What a part is given that works on one cluster. */
export interface ClusterBasics extends Basics {
  client: KubeClient;
}
