import { CliWorld } from '../../support/cli-world.ts';
import type { AnyObject } from '../../../../support/fake-api/storage.ts';

/** A cluster in which the controllers of the API server are played, and a node that runs the pods that it is told to. */
export interface Cluster {
  readonly world: CliWorld;
  /** What becomes of pods with these images: the state of their container. Others run. */
  readonly states: Map<string, object>;
  /** Names of roles of which no pod is ready, with more of their status. */
  readonly stuck: Map<string, object>;
}

export const pulled = (image: string): object => ({
  waiting: { reason: 'ImagePullBackOff', message: `Back-off pulling image "${image}"` },
});
export const statusOf = (state: object): object => ({
  containerStatuses: [{ name: 'x', ready: false, state }],
});

export function startCluster(): Cluster {
  const world = CliWorld.start();
  world.others.set('rome', world.api);
  const cluster = { world, states: new Map<string, object>(), stuck: new Map<string, object>() };
  const times = 999;
  world.api.fault({
    match: ({ path }) => path === '/version',
    times,
    body: '{"gitVersion":"v1.36.3"}',
  });
  world.api.fault({
    match: ({ path }) => path.endsWith('/selfsubjectaccessreviews'),
    times,
    body: '{"metadata":{},"status":{"allowed":true}}',
  });
  world.api.storage.subscribe(({ resource, current }) => {
    const status = current && statusFor(cluster, resource, current);
    if (status === undefined || JSON.stringify(status) === JSON.stringify(current?.['status'])) return;
    queueMicrotask(() => {
      world.api.storage.update(resource, { ...current, status } as AnyObject);
    });
  });
  return cluster;
}

function statusFor({ states, stuck }: Cluster, resource: string, object: AnyObject): object | undefined {
  const { name, generation: observedGeneration } = object.metadata;
  switch (resource) {
    case 'customresourcedefinitions.apiextensions.k8s.io':
      return { conditions: [{ type: 'Established', status: 'True' }], storedVersions: [] };
    case 'deployments.apps': {
      const readyReplicas = stuck.has(name) ? 0 : 1;
      return { observedGeneration, replicas: 1, updatedReplicas: 1, readyReplicas, ...stuck.get(name) };
    }
    case 'daemonsets.apps': {
      const numberReady = stuck.has(name) ? 0 : 1;
      return { observedGeneration, desiredNumberScheduled: 1, updatedNumberScheduled: 1, numberReady };
    }
    case 'pods': {
      if (name !== 'tributary-image-check') return undefined;
      const { spec } = object as unknown as { spec: { containers: { image: string }[] } };
      return statusOf(states.get(spec.containers[0]?.image ?? '') ?? { terminated: { exitCode: 0 } });
    }
    default:
      return undefined;
  }
}
