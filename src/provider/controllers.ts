import { Controller, type ControllerOptions, type ReconcileResult } from '../kube/controller.ts';

/** How many keys of each are reconciled at a time: as many as may wait for an API server together. */
const CONCURRENCY = { node: 1, pods: 64, reflect: 8, tokens: 8, mirror: 64, events: 4, storage: 4 } as const;

export type ControllerName = keyof typeof CONCURRENCY;

interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>;
}

/** Keys end in namespace and name. Webhooks are often of some namespaces only, and may take 10 s over each object. */
function namespaceIn(key: string): string {
  const end = key.lastIndexOf('/');
  return end === -1 ? key : key.slice(key.lastIndexOf('/', end - 1) + 1, end);
}

/** The queues of one virtual node, each with its reconciler. */
export function createControllers(
  reconcilers: Readonly<Record<ControllerName, Reconciler>>,
  common: Pick<ControllerOptions, 'clock' | 'log' | 'metrics'>,
): Record<ControllerName, Controller> {
  const create = (name: ControllerName): Controller =>
    new Controller({
      ...common,
      name,
      concurrency: CONCURRENCY[name],
      groupOf: namespaceIn,
      reconcile: async (key, { signal }) => reconcilers[name].reconcile(key, signal),
    });
  return {
    node: create('node'),
    pods: create('pods'),
    reflect: create('reflect'),
    tokens: create('tokens'),
    mirror: create('mirror'),
    events: create('events'),
    storage: create('storage'),
  };
}
