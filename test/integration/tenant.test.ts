import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { KubeApi } from '../../lab/kube-api.ts';
import { LABEL_HOME_UID } from '../../src/api/names.ts';
import { pods } from '../../src/api/resources.ts';
import { openTokenIssuer, tenantKubeconfigCommand } from '../../src/cli/tenant-kubeconfig.ts';
import { tenantCommand } from '../../src/cli/tenant.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { eventually } from '../support/eventually.ts';
import { type Caller, printed, RightsCluster } from '../support/labs/rights-cluster.ts';

/** What a real API server answers when a peer tries more than it was given. */

let lab: RightsCluster;
let api: KubeApi;

beforeAll(async () => {
  lab = await RightsCluster.up();
  ({ api } = lab.cluster);
  const quota = ['--quota', 'cpu=1,memory=1Gi,pods=3'];
  await lab.apply(await printed(tenantCommand, ['--peer', 'rome', '--namespace', 'rome-shop', ...quota]));
});

afterAll(async () => lab?.down());

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { generateName: 'pod-', labels: { [LABEL_HOME_UID]: 'uid' } },
  spec: { containers: [{ name: 'main', image: 'example/none:1' }] },
};
const UNMARKED = { ...POD, metadata: { generateName: 'pod-' } };
type PodSpec = typeof POD.spec & Record<string, unknown>;
const pod = (spec: Partial<PodSpec>, container: object = {}): object => ({
  ...POD,
  spec: { ...POD.spec, ...spec, containers: POD.spec.containers.map((it) => ({ ...it, ...container })) },
});

describe('with the credential that tenant-kubeconfig prints', () => {
  let peer: Caller;
  const PODS = '/api/v1/namespaces/rome-shop/pods';

  beforeAll(async () => {
    const text = await printed(tenantKubeconfigCommand(openTokenIssuer), [
      '--peer',
      'rome',
      '--namespace',
      'rome-shop',
      '--ttl',
      '1h',
      '--kubeconfig',
      lab.cluster.kubeconfig,
    ]);
    const token = /token: (\S+)/.exec(text)?.[1] ?? '';
    peer = lab.with(token);
    const client = createClient(await parseKubeconfig(text));
    expect((await client.list(pods, { namespace: 'rome-shop' })).items).toEqual([]);
    await client.close();
    // Quota and policies take effect a moment after they are applied.
    await eventually('the quota is in force', async () => {
      const quota = await api.get<{ status?: { hard?: object } }>(
        '/api/v1/namespaces/rome-shop/resourcequotas/tributary',
      );
      return quota?.status?.hard !== undefined;
    });
    await eventually(
      'the policy is in force',
      async () => (await peer('POST', `${PODS}?dryRun=All`, pod({ nodeName: 'home-1' }))).status === 422,
    );
  });

  test('a plain pod runs, without any token of this cluster', async () => {
    const { status, body } = await peer('POST', PODS, pod({}));
    expect({ status, body }).toMatchObject({ status: 201 });
    const made = JSON.parse(body) as {
      metadata: { name: string };
      spec: { volumes?: unknown; containers: unknown[] };
    };
    expect(made.spec.volumes).toBeUndefined();
    expect(made.spec.containers).toMatchObject([{ resources: { requests: { cpu: '0', memory: '0' } } }]);
    const unmark = { metadata: { labels: { [LABEL_HOME_UID]: null } } };
    const unmarked = await peer('PATCH', `${PODS}/${made.metadata.name}`, unmark);
    expect(unmarked.status).toBe(422);
    expect(unmarked.body).toContain('bear the label');
    const path = `${PODS}/${made.metadata.name}`;
    await eventually('it has a node', async () => {
      const found = await api.get<{ spec: { nodeName?: string } }>(path);
      return found?.spec.nodeName !== undefined;
    });
    // This is another policy than the one that was waited for, and each takes effect at its own time.
    await eventually(
      'the policy of lives is in force',
      async () => (await peer('DELETE', `${path}?gracePeriodSeconds=0&dryRun=All`)).status === 422,
    );
    const forced = await peer('DELETE', `${path}?gracePeriodSeconds=0`);
    expect(forced).toMatchObject({
      status: 422,
      body: expect.stringContaining('may not delete pods by force'),
    });
    expect((await peer('DELETE', `${path}?gracePeriodSeconds=1`)).status).toBe(200);
    await eventually('it is gone', async () => (await api.get(path)) === undefined);
    await eventually('its place is free', async () => {
      const quota = await api.get<{ status?: { used?: { pods?: string } } }>(
        '/api/v1/namespaces/rome-shop/resourcequotas/tributary',
      );
      return quota?.status?.used?.pods === '0';
    });
  });

  test.each([
    [
      'a privileged container',
      pod({}, { securityContext: { privileged: true } }),
      'violates PodSecurity "baseline:latest"',
    ],
    ['the host network', pod({ hostNetwork: true }), 'violates PodSecurity "baseline:latest"'],
    ['the host PID namespace', pod({ hostPID: true }), 'violates PodSecurity "baseline:latest"'],
    [
      'a host path',
      pod({ volumes: [{ name: 'root', hostPath: { path: '/' } }] }),
      'violates PodSecurity "baseline:latest"',
    ],
    [
      'an added capability',
      pod({}, { securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }),
      'violates PodSecurity',
    ],
    ['too much CPU', pod({}, { resources: { requests: { cpu: '2' } } }), 'exceeded quota: tributary'],
    ['a node of its choice', pod({ nodeName: 'home-1' }), 'spec.nodeName must be empty'],
    [
      'the priority of system pods',
      pod({ priorityClassName: 'system-node-critical' }),
      'may not outrank ours',
    ],
    ['a toleration of everything', pod({ tolerations: [{ operator: 'Exists' }] }), 'tolerate no taints but'],
    [
      'a toleration of control planes',
      pod({ tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }] }),
      'tolerate no taints but',
    ],
    ['no mark of a peer', UNMARKED, `bear the label ${LABEL_HOME_UID}`],
    [
      'an account of another namespace',
      pod({ serviceAccountName: 'rome' }),
      'serviceaccount \\"rome\\" not found',
    ],
  ])('refused: %s', async (_what, body, reason) => {
    const answer = await peer('POST', PODS, body);
    expect([403, 422]).toContain(answer.status);
    expect(answer.body).toContain(reason.replaceAll('"', '\\"').replaceAll('\\\\"', '\\"'));
  });

  test('refused: more pods than the quota has', async () => {
    const answers = [];
    while (answers.length < 4) {
      const answer = await peer('POST', PODS, pod({}));
      // A conflict is an update of the quota that came between: nothing was made.
      if (answer.status !== 409) answers.push(answer);
    }
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 403]);
    expect(answers[3]?.body).toContain('exceeded quota: tributary');
  });

  test.each([
    ['POST', '/api/v1/namespaces/default/pods', POD],
    ['GET', '/api/v1/namespaces/kube-system/pods', undefined],
    ['GET', '/api/v1/pods', undefined],
    ['GET', '/api/v1/secrets', undefined],
    ['GET', '/api/v1/namespaces/tributary-peers/secrets', undefined],
    ['GET', '/api/v1/namespaces/tributary-peers/serviceaccounts/rome', undefined],
    ['POST', '/api/v1/namespaces/tributary-peers/serviceaccounts/rome/token', {}],
    ['POST', '/api/v1/namespaces/rome-shop/serviceaccounts/default/token', {}],
    ['POST', '/api/v1/namespaces/rome-shop/serviceaccounts', { metadata: { name: 'mine' } }],
    ['PUT', '/api/v1/namespaces/rome-shop/pods/any/status', {}],
    ['DELETE', '/api/v1/namespaces/rome-shop/pods', undefined],
    ['DELETE', '/api/v1/namespaces/rome-shop', undefined],
    ['DELETE', '/api/v1/namespaces/rome-shop/resourcequotas/tributary', undefined],
    ['GET', '/apis/rbac.authorization.k8s.io/v1/namespaces/rome-shop/roles', undefined],
    ['GET', '/api/v1/nodes', undefined],
    ['GET', '/metrics', undefined],
  ])('forbidden: %s %s', async (method, path, body) => {
    expect(await peer(method, path, body)).toMatchObject({ status: 403 });
  });
});

test('a tenant at level restricted refuses a pod that runs as root', async () => {
  await lab.apply(
    await printed(tenantCommand, [
      '--peer',
      'paris',
      '--namespace',
      'paris-shop',
      '--pod-security',
      'restricted',
    ]),
  );
  const paris = await lab.as({ namespace: 'tributary-peers', name: 'paris' });
  const answer = await paris('POST', '/api/v1/namespaces/paris-shop/pods?dryRun=All', POD);
  expect(answer).toMatchObject({ status: 403 });
  expect(answer.body).toContain('violates PodSecurity');
  expect(await paris('GET', '/api/v1/namespaces/rome-shop/pods')).toMatchObject({ status: 403 });
});
