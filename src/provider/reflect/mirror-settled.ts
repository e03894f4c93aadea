import { createHash } from 'node:crypto';

import type { KubeObject } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { MirroredKind, Wanted } from './mirrored-kind.ts';

/** What a copy says, without what its API server alone keeps: version, status and the like. */
const saidBy = ({ apiVersion: _version, kind: _kind, metadata, ...fields }: KubeObject): object => {
  const { status: _status, ...rest } = fields as { status?: unknown };
  const { labels = {}, annotations = {} } = metadata;
  return { ...rest, metadata: { labels, annotations } };
};

/** Whether nothing is to be written, though one may be as read and the other as sent. */
export const saysTheSame = (merged: KubeObject, copy: KubeObject): boolean =>
  deepEqual(saidBy(merged), saidBy(copy));

/**
 * Copies that are as wanted although they differ from what was written: defaults and admission over there add to it. By
 * what was written and what the API server made of it, so that a later change on either side is seen. Forgotten with the
 * process: then each of them is written once more, which changes nothing.
 */
export class SettledCopies {
  readonly #digests = new Map<string, string>();

  /** After a write, with its answer. */
  wrote(
    key: string,
    kind: MirroredKind,
    { wanted, copy }: { wanted: Wanted<KubeObject>; copy: KubeObject },
  ): void {
    const merged = kind.merge(copy, wanted);
    if (saysTheSame(merged, copy)) this.#digests.delete(key);
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

const digestOf = (merged: KubeObject, copy: KubeObject): string =>
  createHash('sha256')
    .update(JSON.stringify([saidBy(merged), saidBy(copy)]))
    .digest('base64');
