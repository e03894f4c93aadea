import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { agentImageName } from '../../../lab/images-agent.ts';
import { ANNOTATION_REFRESH_AT } from '../../../src/api/names.ts';
import { corePath } from '../../support/e2e/api.ts';
import { aPod } from '../../support/e2e/pods.ts';
import { until } from '../../support/e2e/until.ts';
import { World } from './support/world.ts';

const NAMESPACE = 'tokens';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
/** With the authority beside the token; the TLS of busybox is not accepted by an API server. */
const ASK = `
  const { readFileSync } = require('node:fs');
  const of = (name) => readFileSync('/var/run/secrets/kubernetes.io/serviceaccount/' + name, 'utf8');
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  const path = '/api/v1/namespaces/' + of('namespace') + '/pods';
  require('node:https').get({ host, port, path, ca: of('ca.crt'), headers: { authorization: 'Bearer ' + of('token') } },
    (answer) => answer.pipe(process.stdout));
`;

let world: World;

beforeAll(async () => {
  world = await World.open(NAMESPACE);
  const metadata = { name: 'robot' };
  await world.home.create(corePath(NAMESPACE, 'serviceaccounts'), {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata,
  });
  await world.home.create(`${RBAC}/namespaces/${NAMESPACE}/rolebindings`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace: NAMESPACE }],
  });
  await world.runPod(
    aPod('robot', undefined, {
      container: { image: agentImageName },
      spec: { serviceAccountName: 'robot' },
    }),
  );
});

afterAll(async () => world.close());

const inside = async (script: string): Promise<string> => {
  const setting = 'S=/var/run/secrets/kubernetes.io/serviceaccount; ';
  return world.ask(['exec', 'robot', '--', 'sh', '-c', setting + script]);
};

const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;

test('the service account of a pod is known to the home API server', async () => {
  const { items } = JSON.parse(await world.ask(['exec', 'robot', '--', 'node', '-e', ASK])) as {
    items: { metadata: { name: string } }[];
  };
  expect(items.map(({ metadata }) => metadata.name)).toContain('robot');
});

test('the authority and the namespace beside the token are those of home', async () => {
  const ca = await inside('cat $S/ca.crt');
  const home = await world.home.get(corePath(NAMESPACE, 'configmaps', 'kube-root-ca.crt'));
  expect(ca.trim()).toBe(home?.data?.['ca.crt']?.trim());
  expect(await inside('cat $S/namespace')).toBe(NAMESPACE);
});

test('the token is bound to the home pod, and means nothing over there', async () => {
  const token = await inside('cat $S/token');
  const claims = claimsOf(token);
  const pod = await world.home.pod(NAMESPACE, 'robot');
  expect(claims['kubernetes.io']).toMatchObject({
    namespace: NAMESPACE,
    pod: { name: 'robot', uid: pod?.metadata.uid },
    serviceaccount: { name: 'robot' },
  });
  const review = await world.foreign.create('/apis/authentication.k8s.io/v1/tokenreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token },
  });
  expect(review.status?.['authenticated']).not.toBe(true);
});

test('a token that is due is renewed in the running pod, and the home API server takes the new one', async () => {
  const pod = await world.home.pod(NAMESPACE, 'robot');
  const old = await inside('cat $S/token');
  // A shorter life than ten minutes cannot be asked for, so it is made due.
  const secret = corePath(world.tenant, 'secrets', `tributary-token-${pod?.metadata.uid}`);
  const due = new Date(0).toISOString();
  await world.foreign.patch(secret, { metadata: { annotations: { [ANNOTATION_REFRESH_AT]: due } } });
  // The kubelet over there writes what has changed into volumes with its rounds.
  const renewed = await until(
    'another token in the pod',
    async () => {
      const token = await inside('cat $S/token');
      return token !== old && token;
    },
    { seconds: 180 },
  );
  expect(claimsOf(renewed)['jti']).not.toBe(claimsOf(old)['jti']);
  expect(await world.ask(['exec', 'robot', '--', 'node', '-e', ASK])).toContain('"name":"robot"');
  const after = await world.foreign.get(secret);
  expect(Date.parse(after?.metadata?.annotations?.[ANNOTATION_REFRESH_AT] ?? '')).toBeGreaterThan(Date.now());
  expect(await world.home.pod(NAMESPACE, 'robot')).toMatchObject({ metadata: { uid: pod?.metadata.uid } });
}, 300_000);
