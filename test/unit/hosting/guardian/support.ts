import type { Pod } from '../../../../src/api/wire.ts';

export const AT = '2026-01-01T00:00:00Z';

export interface PodParts {
  name?: string;
  metadata?: object;
  annotations?: Record<string, string>;
  spec?: object;
  status?: object;
}

/** A pod of a peer as the API server shows it. */
export const podOf = ({
  name = 'web',
  metadata = {},
  annotations = {},
  spec = {},
  status = {},
}: PodParts): Pod => {
  const pod: unknown = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'rome-shop',
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp: AT,
      labels: { 'tributary.dev/home-uid': `home-${name}`, 'topology.kubernetes.io/zone': 'a' },
      annotations: { 'tributary.dev/when-lost': 'WhenFenced', ...annotations },
      ...metadata,
    },
    spec: { nodeName: 'n1', restartPolicy: 'Always', containers: [{ name: 'app', image: 'a:1' }], ...spec },
    status: { phase: 'Running', ...status },
  };
  return pod as Pod;
};

export const TERMINATING = {
  deletionTimestamp: '2026-01-01T01:00:30Z',
  deletionGracePeriodSeconds: 30,
};

export const ended = (finishedAt: string, exitCode = 0): object => ({
  name: 'app',
  restartCount: 0,
  ready: false,
  image: 'a:1',
  imageID: '',
  state: { terminated: { exitCode, finishedAt } },
});
