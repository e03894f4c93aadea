/** What the counters of controllers are called. Only data: an adapter to a metrics library is outside of this folder. */
import type { Metric } from '../lib/metric.ts';
import { RECONCILE_OUTCOMES } from './controller.ts';

const controller = { each: 'controller of the program, a fixed list' } as const;

export const CONTROLLER_METRICS: {
  readonly reconciles: Metric<'counter', 'controller' | 'outcome'>;
  readonly duration: Metric<'histogram', 'controller'>;
  readonly depth: Metric<'gauge', 'controller'>;
} = {
  reconciles: {
    name: 'tributary_reconciles_total',
    type: 'counter',
    unit: 'count',
    help: 'Reconciles, by controller and outcome.',
    labels: { controller, outcome: RECONCILE_OUTCOMES },
  },
  duration: {
    name: 'tributary_reconcile_duration_seconds',
    type: 'histogram',
    unit: 'seconds',
    help: 'Duration of reconciles, by controller.',
    labels: { controller },
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
  },
  depth: {
    name: 'tributary_queue_depth',
    type: 'gauge',
    unit: 'count',
    help: 'Keys that wait, by controller.',
    labels: { controller },
  },
};
