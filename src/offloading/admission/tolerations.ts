import { TAINT_VIRTUAL_NODE } from '../../api/names.ts';
import type { Toleration } from '../../api/wire.ts';

/** Of the taint that every virtual node has, and of nothing else: what befalls a node befalls its pods, as at home. */
export const TOLERATION: Toleration = { key: TAINT_VIRTUAL_NODE, operator: 'Exists', effect: 'NoSchedule' };

const concernsTaint = ({ key, effect }: Toleration): boolean =>
  (key ?? '') === '' || key === TAINT_VIRTUAL_NODE
    ? effect === undefined || effect === '' || effect === 'NoSchedule'
    : false;

/** Every virtual node, whatever its name: the value of the taint is the VirtualNode's. */
export const toleratesAll = (tolerations: readonly Toleration[]): boolean =>
  tolerations.some((one) => concernsTaint(one) && one.operator === 'Exists');

/** Some virtual node. */
export const toleratesAny = (tolerations: readonly Toleration[]): boolean =>
  tolerations.some((one) => concernsTaint(one) && (one.operator === 'Exists' || (one.key ?? '') !== ''));
