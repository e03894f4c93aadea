/** The shape of a row of objects.ts, and the objects that rows begin with. */
import { LABEL_HOME_UID, LABEL_MANAGED_BY } from '../../../src/api/names.ts';
import type { PodSpec } from '../../../src/api/wire.ts';
import type { PatchType } from '../labs/rights-cluster.ts';

/** Namespaces on the provider. */
export interface HostileStage {
  /** The peer's own. */
  tenant: string;
  /** The peer's own, with a node selector and a runtime class. */
  forced: string;
  /** Of another peer. */
  other: string;
  /** The peer's own, where no Ingress is lent and Pod Security is switched off. */
  bare: string;
}

export interface HostileRow {
  name: string;
  /** What the peer would win. */
  tries: string;
  send: {
    method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    /** Default: merge. */
    patch?: PatchType;
    /** As in URLs, `group/version/plural` or `v1/plural`, with a subresource after a dot. */
    resource: string;
    /** Default: the tenant. */
    namespace?: (stage: HostileStage) => string | null;
    /** Of the object that is changed. */
    name?: string;
    object?: (stage: HostileStage) => object;
  };
  /** Part of the provider's answer. */
  reason: string;
  /** Message of another policy that also refuses it: the API server names one of them, not always the same. */
  orReason?: string;
  /** A user at home can write this pod. */
  pod?: true;
  /** Let in, because it does no harm; `reason` says why. */
  harmless?: true;
}

/** In the tenant before any row is sent: made by the peer, and by the provider where `THEIRS` says so. */
export const OURS = 'honest';
export const THEIRS = 'theirs';

const RESOURCE = /^(?:(?<group>[^/]+)\/)?(?<version>[^/]+)\/(?<plural>[^.]+)(?:\.(?<sub>.+))?$/u;

export function pathOf(resource: string, namespace: string | null, name?: string): string {
  const { group, version = '', plural = '', sub } = RESOURCE.exec(resource)?.groups ?? {};
  const root = group === undefined ? `/api/${version}` : `/apis/${group}/${version}`;
  const inside = namespace === null ? '' : `/namespaces/${namespace}`;
  const tail = [name, sub].filter((it) => it !== undefined).map((it) => `/${it}`);
  return `${root}${inside}/${plural}${tail.join('')}`;
}

export const MARKS: Record<string, string> = { [LABEL_MANAGED_BY]: 'milan' };
export const HOME_POD_UID = '00000000-0000-4000-8000-00000000000a';

type Container = PodSpec['containers'][number];

/** As the agent of a home makes it, except for what the row changes. */
export const aPod = (
  name: string,
  spec: object = {},
  { container = {}, metadata = {} }: { container?: object; metadata?: object } = {},
): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { ...MARKS, [LABEL_HOME_UID]: HOME_POD_UID }, ...metadata },
  spec: { containers: [{ name: 'main', image: 'example/none:1', ...container } as Container], ...spec },
});

/** A row that makes an object in the tenant. */
export const makes = (
  resource: string,
  ...[name, tries, reason, object]: [name: string, tries: string, reason: string, object: object]
): HostileRow => ({ name, tries, reason, send: { resource, object: () => object } });

/** A row that changes or deletes an existing object. */
export const changes = (
  [method, resource, of]: readonly ['PATCH' | 'PUT' | 'DELETE', string, string],
  ...[name, tries, reason, body]: [name: string, tries: string, reason: string, body?: object]
): HostileRow => ({
  name,
  tries,
  reason,
  send: { method, resource, name: of, ...(body !== undefined && { object: () => body }) },
});

export const objectOf = (apiVersion: string, kind: string, name: string, more: object = {}): object => ({
  apiVersion,
  kind,
  metadata: { name, labels: MARKS },
  ...more,
});
