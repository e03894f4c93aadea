/** How a namespace is taken back from foreign clusters: whatever has offloaded it must not do so again. Pure. */
import { TributaryError } from '../lib/errors.ts';
import { LABEL_OFFLOAD, LABEL_OFFLOADING_ORIGIN } from './names.ts';
import type { NamespaceOffloading } from './namespace-offloading.ts';
import type { Namespace } from './wire.ts';

/** What is written, in this order, so that nothing makes the object again. */
export interface UnoffloadPlan {
  /** New value of the namespace's label; null: none. Undefined: it stays. */
  label?: 'false' | null;
  deletes: boolean;
}

/** Who has made it: a label, the operator's selector, a tether; undefined: a person. */
export const originOf = ({ metadata }: NamespaceOffloading): string | undefined =>
  metadata.labels?.[LABEL_OFFLOADING_ORIGIN];

/** Throws Conflict where only the end of a tether brings it home. */
export function unoffloadPlan(
  { metadata }: Pick<Namespace, 'metadata'>,
  offloading: NamespaceOffloading | undefined,
): UnoffloadPlan {
  const label = metadata.labels?.[LABEL_OFFLOAD];
  const origin = offloading && originOf(offloading);
  if (origin === 'tether') {
    throw new TributaryError(
      'Conflict',
      `the tether of this cluster has forwarded ${metadata.name}; end it with: tributary untether`,
    );
  }
  // The operator's selector would make it again.
  if (origin === 'selector') return { label: 'false', deletes: false };
  const isOffloading = label !== undefined && label !== 'false';
  const isOurs = origin === undefined && offloading !== undefined;
  return {
    ...(isOffloading && { label: null }),
    deletes: isOurs && offloading.metadata.deletionTimestamp === undefined,
  };
}
