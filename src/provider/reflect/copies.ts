import { LABEL_MANAGED_BY } from '../../api/names.ts';
import type { DraftMeta, KubeObject } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { hasCode } from '../../lib/errors.ts';
import type { ReferenceKind } from '../forge/references.ts';
import { REFLECTED_KINDS } from './descriptor.ts';

export interface CopyDraft {
  metadata: DraftMeta;
}

/** Single requests about copies over there. */
export class RemoteCopies {
  readonly #foreign: KubeClient;
  readonly #owner: string;

  constructor(foreign: KubeClient, owner: string) {
    this.#foreign = foreign;
    this.#owner = owner;
  }

  /** Made, or put in the place of the copy that the caches hold. */
  async write(
    kind: ReferenceKind,
    { draft, copy }: { draft: CopyDraft; copy: KubeObject | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const { type } = REFLECTED_KINDS[kind];
    if (copy === undefined) {
      await this.#foreign.create(type, draft, { signal });
      return;
    }
    const { uid, resourceVersion } = copy.metadata;
    const metadata = { ...copy.metadata, ...draft.metadata, uid, resourceVersion };
    await this.#foreign.replace(type, { ...draft, metadata }, { signal });
  }

  async delete(kind: ReferenceKind, copy: KubeObject, signal: AbortSignal): Promise<void> {
    const { name, namespace = '', uid } = copy.metadata;
    try {
      await this.#foreign.delete(REFLECTED_KINDS[kind].type, { name, namespace }, { uid, signal });
    } catch (error) {
      if (!hasCode(error, 'NotFound', 'Conflict')) throw error;
    }
  }

  /** Whether the object that has the name bears our mark. */
  async isOurs(kind: ReferenceKind, draft: CopyDraft, signal: AbortSignal): Promise<boolean> {
    const live = await this.#live(kind, draft, signal);
    return live?.metadata.labels?.[LABEL_MANAGED_BY] === this.#owner;
  }

  /** Whether the object over there is of a kind that no update can turn into what home has now. */
  async cannotChange(kind: ReferenceKind, draft: CopyDraft, signal: AbortSignal): Promise<boolean> {
    const live = (await this.#live(kind, draft, signal)) as
      { immutable?: boolean; type?: string } | undefined;
    return live !== undefined && (live.immutable === true || live.type !== (draft as { type?: string }).type);
  }

  /** Past the caches. By a list of one: peers may list copies, and not get them. */
  async #live(
    kind: ReferenceKind,
    { metadata: { name = '', namespace = '' } }: CopyDraft,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const fieldSelector = `metadata.name=${name}`;
    const { type } = REFLECTED_KINDS[kind];
    const { items } = await this.#foreign.list(type, { namespace, fieldSelector, signal });
    return items.find(({ metadata }) => metadata.name === name);
  }
}
