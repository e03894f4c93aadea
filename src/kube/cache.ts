import type { KubeObject } from '../api/wire.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { ContactState } from './contact.ts';
import type { ChangeListener } from './store.ts';

/** Objects of one kind, as last seen: those that an Informer holds, or those that one user sees of a shared Informer. */
export interface Cache<T extends KubeObject> extends Component {
  /** Resolves when all existing objects are known, however long that takes. */
  start(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  get(key: string): T | undefined;
  list(): Iterable<T>;
  readonly size: number;
  byIndex(index: string, value: string): readonly T[];
  /** Whether `byIndex` would find anything, however many. */
  hasIndexed(index: string, value: string): boolean;
  /** Whether all existing objects are known. Before that, a missing object may exist nevertheless. */
  readonly synced: boolean;
  readonly contact: ContactState;
  /**
   * Listeners run in the order of events and must not wait: put the key into a queue. Those that were added before the
   * start are told of each object that is there.
   */
  onChange(listener: ChangeListener<T>): () => void;
  onContact(listener: () => void): () => void;
  /** A live read contradicted the cache: list again. Until that has succeeded, the cache stays as it is. */
  relist(reason: string): void;
}
