import { ANNOTATION_NO_SCALE_DOWN, ANNOTATION_NODE_SIZES, ANNOTATION_PRICES } from '../../api/names.ts';
import { formatPrice } from '../../api/prices.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import { present } from '../../lib/fields.ts';

/**
 * The annotations that a VirtualNode gives its Node: what `kubectl describe node` is to show beside amounts in all, and what keeps
 * other programs from taking it for a machine. Those that people write win. Pure.
 */
export function nodeAnnotationsOf({ spec }: VirtualNode): Record<string, string> {
  const { nodeSizes, prices = {}, annotations } = spec;
  const sizes = nodeSizes?.map((size) => listed(Object.entries<string | number>(size))).join('; ');
  const asked = listed(
    Object.entries(prices).map(([resource, price]) => [resource, formatPrice(resource, price)]),
  );
  return {
    [ANNOTATION_NO_SCALE_DOWN]: 'true',
    ...present({ [ANNOTATION_NODE_SIZES]: sizes }),
    ...(asked !== '' && { [ANNOTATION_PRICES]: asked }),
    ...annotations,
  };
}

const listed = (entries: readonly (readonly [string, string | number])[]): string =>
  entries.map(([name, value]) => `${name} ${value}`).join(', ');
