/**
 * What a peer may try against the cluster that lends to it, as data: each row says what the peer would gain, what is
 * sent, and what the provider must answer. Rows with `pod: true` are pods that a user at home can write: the agent
 * copies them completely, so the condition of the home pod must contain the same message.
 */
import { HOSTILE_CLAIMS } from './claims.ts';
import { HOSTILE_METADATA } from './metadata.ts';
import { HOSTILE_PODS } from './pods.ts';
import { HOSTILE_REACH } from './reach.ts';
import { pathOf, type HostileRow, type HostileStage } from './row.ts';

export { HOSTILE_PRIVILEGES } from './privileges.ts';
export type { HostileRow, HostileStage };

export const HOSTILE_OBJECTS: readonly HostileRow[] = [
  ...HOSTILE_PODS,
  ...HOSTILE_CLAIMS,
  ...HOSTILE_REACH,
  ...HOSTILE_METADATA,
];

/** Of those that are pods, what a user at home writes. */
export const HOSTILE_HOME_PODS: readonly HostileRow[] = HOSTILE_OBJECTS.filter(({ pod }) => pod === true);

export interface HostileRequest {
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  /** A patch where the method is PATCH. */
  body?: object;
}

/** How a row is sent. `resourceVersion` is of the object that a PUT replaces: without it some kinds are refused unread. */
export function requestOf(row: HostileRow, stage: HostileStage, resourceVersion?: string): HostileRequest {
  const { method = 'POST', resource, namespace, name, object } = row.send;
  const path = pathOf(resource, namespace === undefined ? stage.tenant : namespace(stage), name);
  const body: { metadata?: object } | undefined = object?.(stage);
  if (body === undefined) return { method, path };
  if (resourceVersion === undefined) return { method, path, body };
  return { method, path, body: { ...body, metadata: { ...body.metadata, resourceVersion } } };
}
