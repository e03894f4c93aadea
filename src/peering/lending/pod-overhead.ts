import { formatAmounts, isOfNodes } from '../../api/amounts.ts';
import { offerableAmounts } from '../../api/default-requests.ts';
import { MAX_RESOURCES } from '../../api/limits.ts';
import { readableAmounts } from '../../api/pod-requests.ts';
import type { runtimeClasses } from '../../api/resources.ts';
import type { ResourceList } from '../../api/wire.ts';

export type RuntimeClass = NonNullable<(typeof runtimeClasses)['__object']>;

/** Of a RuntimeClass only what pods cost under it is kept. */
export const keepOverhead = ({ metadata, handler, overhead }: RuntimeClass): RuntimeClass => ({
  metadata,
  handler,
  ...(overhead && { overhead }),
});

/** What each pod costs beside the requests of its containers (KEP-688), in a form that an offer can bear; undefined: nothing. */
export function podOverheadOf(runtimeClass: RuntimeClass | undefined): ResourceList | undefined {
  const amounts = [...readableAmounts(runtimeClass?.overhead?.podFixed)].filter(([name]) => isOfNodes(name));
  if (amounts.length === 0) return undefined;
  return offerableAmounts('overhead', formatAmounts(new Map(amounts.slice(0, MAX_RESOURCES))));
}
