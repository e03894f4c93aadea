import { createHash } from 'node:crypto';

import type { KubeObject } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { MirroredKind, Wanted } from './mirrored-kind.ts';

/** The content of a copy, without what its API server alone maintains: version, status and the like. */
const contentOf = ({ apiVersion: _version, kind: _kind, metadata, ...fields }: KubeObject): object => {
  const { status: _status, ...rest } = fields as { status?: unknown };
  const { labels = {}, annotations = {} } = metadata;
  return { ...rest, metadata: { labels, annotations } };
};

/** Whether nothing has to be written, although one may be as read and the other as sent. */
export const hasSameContent = (merged: KubeObject, copy: KubeObject): boolean =>
  deepEqual(contentOf(merged), contentOf(copy));

/**
 * Copies that are as wanted although they differ from what was written, since defaults and admission over there add to it.
 * Recognised by a digest of what was written and what the API server made of it, so that a later change on either side is
 * seen. Kept in memory only: after a restart each is written once more, which changes nothing.
 */
export class SettledCopies {
  readonly #digests = new Map<string, string>();

  /** To be called after each write, with the answer. */
  wrote(
    key: string,
    kind: MirroredKind,
    { wanted, copy }: { wanted: Wanted<KubeObject>; copy: KubeObject },
  ): void {
    const merged = kind.merge(copy, wanted);
    if (hasSameContent(merged, copy)) this.#digests.delete(key);
    else this.#digests.set(key, digestOf(merged, copy));
  }

  isAsWritten(key: string, merged: KubeObject, copy: KubeObject): boolean {
    const digest = this.#digests.get(key);
    return digest !== undefined && digest === digestOf(merged, copy);
  }

  forget(key: string): void {
    this.#digests.delete(key);
  }
}

/** Of an update: what is to be written, and over what. */
export const digestOf = (merged: KubeObject, copy: KubeObject): string =>
  createHash('sha256')
    .update(JSON.stringify([contentOf(merged), contentOf(copy)]))
    .digest('base64');
