import { expect, test } from '@jest/globals';

import type { ContainerStatus, Pod, PodStatus } from '../../../../src/api/wire.ts';
import { logWithoutBody } from '../../../../src/server/kubelet/without-body.ts';

const status = (state: ContainerStatus['state'], more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'main',
  image: 'web:1',
  imageID: '',
  ready: false,
  restartCount: 0,
  ...(state && { state }),
  ...more,
});
const ended = (containerID?: string): ContainerStatus['state'] => ({
  terminated: { exitCode: 0, ...(containerID !== undefined && { containerID }) },
});
const podOf = (shown: PodStatus): Pod => ({
  metadata: { name: 'web', namespace: 'shop', uid: '1', resourceVersion: '1', creationTimestamp: '' },
  status: shown,
});
const main = (one: ContainerStatus): PodStatus => ({ containerStatuses: [one] });
const WHAT = 'container "main" in pod "web"';
const GONE = 'unable to retrieve container logs for containerd://1';

test.each<[string, PodStatus, string]>([
  ['nothing', {}, `${WHAT} is not available`],
  [
    'why the pod waits',
    { reason: 'ExceededQuota', message: 'exceeded quota: tributary' },
    `${WHAT} is not available: ExceededQuota: exceeded quota: tributary`,
  ],
  [
    'a missing reference',
    main(
      status({ waiting: { reason: 'CreateContainerConfigError', message: 'configmap "late" not found' } }),
    ),
    `${WHAT} is waiting to start: CreateContainerConfigError`,
  ],
  [
    'an image that cannot be pulled',
    main(status({ waiting: { reason: 'ErrImagePull' } })),
    `${WHAT} is waiting to start: image can't be pulled`,
  ],
  [
    'an image that is tried again',
    main(status({ waiting: { reason: 'ImagePullBackOff' } })),
    `${WHAT} is waiting to start: trying and failing to pull image`,
  ],
  ['no state', main(status(undefined)), `${WHAT} is waiting to start - no logs yet`],
  ['that it runs', main(status({ running: {} }, { containerID: 'containerd://1' })), GONE],
  ['that it has ended', main(status(ended('containerd://1'))), GONE],
  [
    'an end that no container had, after another one',
    main(status(ended(''), { lastState: ended('containerd://1') ?? {} })),
    GONE,
  ],
  ['an end that no container had', main(status(ended())), `${WHAT} is terminated`],
  [
    'that it waits after an end',
    main(status({ waiting: { reason: 'CrashLoopBackOff' } }, { lastState: ended('containerd://1') ?? {} })),
    GONE,
  ],
  [
    'an init container',
    { initContainerStatuses: [status({ waiting: { reason: 'PodInitializing' } })] },
    `${WHAT} is waiting to start: PodInitializing`,
  ],
  ['an ephemeral container', { ephemeralContainerStatuses: [status(ended())] }, `${WHAT} is terminated`],
])('where home shows %s, a log without a body is refused as by a kubelet', (_what, shown, text) => {
  expect(logWithoutBody(podOf(shown), 'main', false)).toEqual({ status: 400, text });
});

test.each<[string, PodStatus, string]>([
  ['no former one', main(status({ running: {} })), `previous terminated ${WHAT} not found`],
  ['a former one', main(status({ running: {} }, { lastState: ended('containerd://1') ?? {} })), GONE],
])('where home shows %s, the previous log is refused as by a kubelet', (_what, shown, text) => {
  expect(logWithoutBody(podOf(shown), 'main', true)).toEqual({ status: 400, text });
});
