import { expect, test } from '@jest/globals';
import type { Pod, PodSpec } from '../../../../src/api/wire.ts';
import type { ForgeContext } from '../../../../src/provider/forge/context.ts';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { isBodyFor } from '../../../../src/provider/forge/same-body.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING } from '../support/pods.ts';

const SPEC: Partial<PodSpec> = {
  containers: [
    {
      name: 'main',
      image: 'db:1',
      env: [{ name: 'SIZE', value: '1' }],
      resources: { requests: { cpu: '1' } },
    },
    { name: 'side', image: 'side:1' },
  ],
  initContainers: [{ name: 'init', image: 'init:1' }],
  tolerations: [{ key: 'fast', operator: 'Exists' }],
};
const labels = { app: 'db', 'statefulset.kubernetes.io/pod-name': 'db-0' };
const pod = (
  uid: string,
  { spec = {}, metadata = {} }: { spec?: Partial<PodSpec>; metadata?: object } = {},
): Pod => homePod({ metadata: { name: 'db-0', uid, labels, ...metadata }, spec: { ...SPEC, ...spec } });

const lost = pod('lost');
const wanted = pod('wanted');

/** As the provider shows it, with what its admission has added. */
function bodyOf(home: Pod, parts: Parameters<typeof remotePod>[1] = {}): Pod {
  const { spec, metadata } = forgePod(home, CONTEXT);
  const forged = spec ?? { containers: [] };
  return remotePod(home, {
    status: RUNNING,
    ...parts,
    metadata: { ...(metadata as Partial<Pod['metadata']>), ...parts.metadata },
    spec: {
      ...forged,
      nodeName: 'node-1',
      schedulerName: 'default-scheduler',
      containers: [
        ...forged.containers.map((one) => ({
          ...one,
          image: `mirror.example/${one.image}`,
          imagePullPolicy: 'Always',
        })),
        { name: 'injected', image: 'mesh:1' },
      ],
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists' },
        ...(forged.tolerations ?? []),
      ],
      ...parts.spec,
    },
  });
}

const body = bodyOf(lost);
const otherwise = (spec: Partial<PodSpec>): Pod => pod('wanted', { spec });
const asksForUid = (uid: string): Pod =>
  pod(uid, {
    spec: {
      containers: [
        {
          name: 'main',
          image: 'db:1',
          env: [{ name: 'ID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } }],
        },
      ],
    },
  });

test.each<[string, Pod, Pod, boolean]>([
  ['the same but for its UID', wanted, body, true],
  ['one that home already shows as running', { ...wanted, status: RUNNING }, body, true],
  ['another generation of the same', pod('wanted', { metadata: { generation: 4 } }), body, true],
  ['another image', otherwise({ containers: [{ name: 'main', image: 'db:2' }] }), body, false],
  [
    'another variable',
    otherwise({
      containers: [
        { name: 'main', image: 'db:1', env: [{ name: 'SIZE', value: '2' }] },
        { name: 'side', image: 'side:1' },
      ],
    }),
    body,
    false,
  ],
  [
    'one container more',
    otherwise({ containers: [...(SPEC.containers ?? []), { name: 'more', image: 'm:1' }] }),
    body,
    false,
  ],
  ['other labels', pod('wanted', { metadata: { labels: { app: 'other' } } }), body, false],
  ['a toleration more', otherwise({ tolerations: [{ key: 'slow', operator: 'Exists' }] }), body, false],
  ['a pod that knows its UID', asksForUid('wanted'), bodyOf(asksForUid('lost')), false],
  ['a home pod that has finished', { ...wanted, status: { ...RUNNING, phase: 'Succeeded' } }, body, false],
  ['a home pod that is being deleted', pod('wanted', { metadata: { deletionTimestamp: NOW } }), body, false],
  ['a body that is ending', wanted, bodyOf(lost, { metadata: { deletionTimestamp: NOW } }), false],
  ['a body that has finished', wanted, bodyOf(lost, { status: { ...RUNNING, phase: 'Failed' } }), false],
  ['a body without a record', wanted, bodyOf(lost, { metadata: { annotations: {} } }), false],
])('%s', (_what, home, remote, expected) => {
  expect(isBodyFor(home, remote, CONTEXT)).toBe(expected);
});

/** As the service-account admission makes it: called otherwise in each pod. */
const withApiAccess = (uid: string, letters: string, mount: object = {}): Pod => {
  const name = `kube-api-access-${letters}`;
  const volumeMounts = [{ name, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', ...mount }];
  const token = { path: 'token', expirationSeconds: 3607 };
  return pod(uid, {
    spec: {
      containers: [{ name: 'main', image: 'db:1', volumeMounts }],
      volumes: [{ name, projected: { sources: [{ serviceAccountToken: token }] } }],
    },
  });
};

test.each<[string, object, boolean]>([
  ['a folder, which is renewed', {}, true],
  ['a file of its own, which is never renewed', { subPath: 'token' }, false],
])('a token of the pod that is gone, mounted as %s', (_what, mount, expected) => {
  const context: ForgeContext = { ...CONTEXT, homeApiServer: { host: 'api.home', port: 6443 } };
  const gone = '68b0b183-dcb1-4f80-b3c3-5c7960e42bcd';
  const { spec } = forgePod(withApiAccess(gone, 'abcde', mount), context);
  const remote = bodyOf(withApiAccess(gone, 'abcde', mount), spec && { spec });
  expect(isBodyFor(withApiAccess('wanted', 'fghij', mount), remote, context)).toBe(expected);
});
