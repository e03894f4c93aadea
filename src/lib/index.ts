/**
 * What everything else stands on and what knows nothing of Kubernetes or sockets: time, chance and logs that are
 * handed in, errors named by what to do about them, a keyed queue, the order of starting and stopping, equality of
 * JSON, quantities. Import the file you mean; this one only says what there is.
 */
export type { Backoff, Random } from './backoff.ts';
export type { Clock } from './clock.ts';
export type { Deadline } from './deadline.ts';
export type { ErrorCode, TributaryError } from './errors.ts';
export type { Component, Lifecycle } from './lifecycle.ts';
export type { Logger } from './log.ts';
export type { KeyedQueue } from './queue.ts';
