import { expect, test } from '@jest/globals';

import { formatAmounts } from '../../../src/api/amounts.ts';
import { podRequests } from '../../../src/api/pod-requests.ts';
import type { Container, Pod } from '../../../src/api/wire.ts';

const container = (name: string, cpu: string, more: Partial<Container> = {}): Container => ({
  name,
  resources: { requests: { cpu } },
  ...more,
});
const sidecar = (name: string, cpu: string): Container => container(name, cpu, { restartPolicy: 'Always' });

const pod = (spec: object, status: object = {}): Pod =>
  ({ metadata: { name: 'a' }, spec: { containers: [], ...spec }, status }) as unknown as Pod;

test.each<[string, Pod, string]>([
  ['containers add up', pod({ containers: [container('a', '1'), container('b', '500m')] }), '1500m'],
  [
    'init containers run one after the other, before the others',
    pod({ initContainers: [container('i', '3'), container('j', '2')], containers: [container('a', '1')] }),
    '3',
  ],
  [
    'what the containers need together may be more',
    pod({ initContainers: [container('i', '1')], containers: [container('a', '1'), container('b', '1')] }),
    '2',
  ],
  [
    'sidecars run beside the others',
    pod({ initContainers: [sidecar('s', '1')], containers: [container('a', '2')] }),
    '3',
  ],
  [
    'and beside the init containers after them only',
    pod({
      initContainers: [container('i', '4'), sidecar('s', '1'), container('j', '3500m')],
      containers: [container('a', '1')],
    }),
    '4500m',
  ],
  ['overhead of the runtime', pod({ overhead: { cpu: '250m' }, containers: [container('a', '1')] }), '1250m'],
  [
    'the pod as a whole says less than its containers',
    pod({ resources: { requests: { cpu: '1' } }, overhead: { cpu: '1' }, containers: [container('a', '3')] }),
    '2',
  ],
  [
    'the pod as a whole has no say in devices',
    pod({ resources: { requests: { memory: '1Gi', 'a.com/b': '9' } }, containers: [container('a', '1')] }),
    '1',
  ],
  [
    'a container that shrinks holds what it has until it is smaller',
    pod(
      { containers: [container('a', '1')] },
      {
        containerStatuses: [
          { name: 'a', allocatedResources: { cpu: '2' }, resources: { requests: { cpu: '3' } } },
        ],
      },
    ),
    '3',
  ],
  ['what cannot be read is nothing', pod({ containers: [container('a', 'much'), container('b', '1')] }), '1'],
])('%s', (_name, object, cpu) => {
  const { cpu: asked, pods } = formatAmounts(podRequests(object));
  expect({ asked, pods }).toEqual({ asked: cpu, pods: '1' });
});

test('a pod that asks for nothing still takes a place', () => {
  expect(formatAmounts(podRequests(pod({ containers: [{ name: 'a' }] })))).toEqual({ pods: '1' });
});
