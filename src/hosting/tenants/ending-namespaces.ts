import { timestamp } from '../../api/conditions.ts';
import { namespaces, roleBindings } from '../../api/resources.ts';
import type { KubeObject, Namespace } from '../../api/wire.ts';
import { deleteByUid, patchMetadataIfDiffers } from '../../kube/write.ts';
import { Ages } from '../../lib/ages.ts';
import { errorMessage } from '../../lib/errors.ts';
import { remember } from '../../lib/remember.ts';
import { ANNOTATION_KEEP_UNTIL } from '../annotations.ts';
import type { HostingParts } from '../parts.ts';
import { keptUntil, KeptNamespaces } from './kept-namespaces.ts';
import { endOverduePods } from './overdue-pods.ts';

/** What is left of a tenant. */
export interface Remains {
  /** Namespaces that are being deleted, or that cannot be ended yet. */
  ending: Namespace[];
  /** The first time at which a namespace that the policy keeps is to go, milliseconds since the epoch. It may go before. */
  keptUntil: number | undefined;
}

const MAX_TOLD = 1024;

/** The tenant namespaces whose contracts have ended: each is kept for its time, or deleted. */
export class EndingNamespaces {
  readonly #options: Pick<HostingParts, 'client' | 'clock' | 'log'>;
  readonly #ages: Ages;
  readonly #kept: KeptNamespaces;
  /** What was logged of a namespace last, by UID. */
  readonly #told = new Map<string, string>();

  constructor(options: Pick<HostingParts, 'client' | 'clock' | 'log'>) {
    this.#options = options;
    this.#ages = new Ages(options.clock);
    this.#kept = new KeptNamespaces(options);
  }

  /**
   * Ends each of them, as its annotations say. One that cannot be ended, because an admission webhook refuses a deletion for
   * example, counts as ending: it keeps neither the others nor who waits for them.
   */
  async endAll(
    all: readonly Namespace[],
    bindings: readonly KubeObject[],
    signal: AbortSignal,
  ): Promise<Remains> {
    const remains: Remains = { ending: [], keptUntil: undefined };
    for (const namespace of all) {
      const until = await this.#tryEnd(namespace, bindings, signal);
      if (until === undefined) remains.ending.push(namespace);
      else remains.keptUntil = Math.min(until, remains.keptUntil ?? Infinity);
    }
    return remains;
  }

  /** Returns until when it is kept, as long as something is in it; undefined where it is being deleted. */
  async end(
    namespace: Namespace,
    bindings: readonly KubeObject[],
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { client, clock } = this.#options;
    const { name, annotations = {}, deletionTimestamp } = namespace.metadata;
    if (deletionTimestamp !== undefined) {
      this.#kept.forget(namespace);
      await endOverduePods({ client, ages: this.#ages }, namespace, signal);
      return undefined;
    }
    for (const binding of bindings) {
      const isLeft = binding.metadata.namespace === name && binding.metadata.deletionTimestamp === undefined;
      if (isLeft) await deleteByUid(client, roleBindings, binding, { signal });
    }
    const until = keptUntil(namespace, clock.now(), this.#ages);
    if (until === undefined || (await this.#kept.isDone(namespace, signal))) {
      this.#kept.forget(namespace);
      await deleteByUid(client, namespaces, namespace, { signal });
      return undefined;
    }
    if (Number.isNaN(Date.parse(annotations[ANNOTATION_KEEP_UNTIL] ?? ''))) {
      const marks = { [ANNOTATION_KEEP_UNTIL]: timestamp(until) };
      await patchMetadataIfDiffers(client, namespaces, namespace, { annotations: marks, signal });
    }
    return until;
  }

  /** It is in use again. */
  forget(namespace: Namespace): void {
    this.#kept.forget(namespace);
    this.#told.delete(namespace.metadata.uid);
  }

  async #tryEnd(
    namespace: Namespace,
    bindings: readonly KubeObject[],
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { uid, name } = namespace.metadata;
    try {
      const until = await this.end(namespace, bindings, signal);
      this.#told.delete(uid);
      return until;
    } catch (error) {
      if (signal.aborted) throw error;
      const why = errorMessage(error);
      if (this.#told.get(uid) !== why) {
        this.#options.log.warn('a namespace of a peer cannot be ended yet', { namespace: name, error: why });
      }
      remember(this.#told, uid, why, MAX_TOLD);
      return undefined;
    }
  }
}
