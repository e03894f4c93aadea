import { describe, expect, test } from '@jest/globals';
import type { Container, Pod, PodSpec, Volume } from '../../../../src/api/wire.ts';
import { forgePod } from '../../../../src/provider/forge/pod.ts';
import { podReferences } from '../../../../src/provider/forge/references.ts';
import {
  missingToken,
  tokenKey,
  tokenNeeds,
  tokenSecretName,
} from '../../../../src/provider/forge/tokens.ts';
import { CONTEXT, homePod, UID } from '../support/pods.ts';

const spec = (given: Partial<PodSpec>, context = CONTEXT): PodSpec =>
  forgePod(homePod({ spec: given }), context).spec as PodSpec;
const REACHABLE = { ...CONTEXT, homeApiServer: { host: 'api.home', port: 6443 } };
const main = (given: Partial<Container>): Partial<PodSpec> => ({
  containers: [{ name: 'main', image: 'web:1', ...given }],
});
const token = { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } };
const access: Volume = {
  name: 'kube-api-access-x',
  projected: { sources: [token, { configMap: { name: 'kube-root-ca.crt' } }] },
};

describe('the pod itself', () => {
  test('bears whose body it is; owners, finalizers and our own marks stay at home', () => {
    const { metadata } = forgePod(
      homePod({
        metadata: {
          labels: { app: 'web', 'tributary.dev/home-uid': 'forged' },
          annotations: { note: 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
          finalizers: ['a/b'],
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r' }],
        },
      }),
      CONTEXT,
    );
    expect(metadata).toMatchObject({
      name: 'web',
      namespace: 'tenant',
      labels: { app: 'web', 'tributary.dev/home-uid': UID, 'tributary.dev/managed-by': 'rome' },
      annotations: { note: 'x', 'tributary.dev/home-namespace': 'shop' },
    });
    expect(Object.keys(metadata).toSorted()).toEqual(['annotations', 'labels', 'name', 'namespace']);
    expect(Object.keys(metadata.annotations ?? {})).not.toContain(
      'kubectl.kubernetes.io/last-applied-configuration',
    );
  });

  test('its priority class is that of the same name, where one is lent; its number stays home', () => {
    const home = { priorityClassName: 'high', priority: 7, preemptionPolicy: 'Never' };
    const lent = { ...CONTEXT, priorityClasses: ['high'] };
    const { priorityClassName, priority, preemptionPolicy } = spec(home, lent);
    expect([priorityClassName, priority, preemptionPolicy]).toEqual(['high', undefined, undefined]);
    expect(spec({ priorityClassName: 'low' }, lent)).not.toHaveProperty('priorityClassName');
    expect(spec({}, lent)).not.toHaveProperty('priorityClassName');
  });

  test('what speaks of the home cluster stays there', () => {
    const home: Partial<PodSpec> = {
      nodeSelector: { a: 'b' },
      affinity: {},
      topologySpreadConstraints: [],
      schedulerName: 'mine',
      priority: 7,
      priorityClassName: 'high',
      preemptionPolicy: 'Never',
      overhead: { cpu: '1' },
      serviceAccountName: 'robot',
      readinessGates: [{ conditionType: 'lb' }],
      ephemeralContainers: [{ name: 'debug', image: 'x' }],
    };
    const forged = spec(home);
    for (const field of [...Object.keys(home), 'nodeName']) expect(forged).not.toHaveProperty(field);
    expect(forged.automountServiceAccountToken).toBe(false);
  });

  test('what the provider is to judge travels, fields unknown here included', () => {
    const home = { hostNetwork: true, runtimeClassName: 'gvisor', futureField: { a: 1 } } as Partial<PodSpec>;
    expect(spec(home)).toMatchObject(home);
  });
});

describe('environment', () => {
  const value = (fieldPath: string): object | undefined =>
    spec(main({ env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath } } }] })).containers[0]?.env?.[0];

  test.each([
    ['metadata.namespace', 'shop'],
    ['metadata.uid', UID],
    ['spec.nodeName', 'rome'],
    ['spec.serviceAccountName', 'default'],
    ['status.hostIP', '192.0.2.1'],
  ])('%s is as at home', (path, expected) => {
    expect(value(path)).toEqual({ name: 'X', value: expected });
  });

  test.each(['metadata.name', 'status.podIP', "metadata.labels['app']"])('%s is known over there', (path) => {
    expect(value(path)).toMatchObject({ valueFrom: { fieldRef: { fieldPath: path } } });
  });

  test('the home API server, where it can be reached; a variable of the pod’s own wins', () => {
    const env = [{ name: 'KUBERNETES_SERVICE_HOST', value: 'mine' }];
    expect(spec(main({})).containers[0]?.env).toBeUndefined();
    expect(spec(main({ env }), REACHABLE).containers[0]?.env).toEqual([
      { name: 'KUBERNETES_SERVICE_PORT', value: '6443' },
      { name: 'KUBERNETES_SERVICE_PORT_HTTPS', value: '6443' },
      { name: 'KUBERNETES_PORT', value: 'tcp://api.home:6443' },
      { name: 'KUBERNETES_PORT_443_TCP', value: 'tcp://api.home:6443' },
      { name: 'KUBERNETES_PORT_443_TCP_PROTO', value: 'tcp' },
      { name: 'KUBERNETES_PORT_443_TCP_PORT', value: '6443' },
      { name: 'KUBERNETES_PORT_443_TCP_ADDR', value: 'api.home' },
      ...env,
    ]);
  });
});

describe('a pod without a token for home', () => {
  const context = { ...CONTEXT, noHomeApiServer: 'they forbid it' };
  const given = (more: Partial<PodSpec>): Pod =>
    homePod({ spec: { ...main({}), volumes: [access], ...more } });

  test('is told of, where it has an account of its own', () => {
    const warning = 'the pod has no token of account "robot" over there: they forbid it';
    expect(missingToken(given({ serviceAccountName: 'robot' }), context)).toBe(warning);
  });

  test.each<[string, Partial<PodSpec>, typeof context | typeof REACHABLE]>([
    ['the account is the default one', { serviceAccountName: 'default' }, context],
    ['it wants no token', { serviceAccountName: 'robot', volumes: [] }, context],
    ['it gets one', { serviceAccountName: 'robot' }, REACHABLE],
  ])('is not told of where %s', (_why, more, where) => {
    expect(missingToken(given(more), where)).toBeUndefined();
  });
});

describe('the home API server behind a tunnel', () => {
  const context = {
    ...CONTEXT,
    homeApiServer: { host: 'kubernetes.default.svc', port: 443, alias: '100.65.15.254' },
  };
  const names = ['kubernetes.default.svc', 'kubernetes.default', 'kubernetes.default.svc.cluster.local'];

  test('has the name that its certificate bears, and its address over there', () => {
    const { containers, hostAliases } = spec(main({}), context);
    expect(containers[0]?.env).toContainEqual({
      name: 'KUBERNETES_SERVICE_HOST',
      value: 'kubernetes.default.svc',
    });
    expect(containers[0]?.env).toContainEqual({ name: 'KUBERNETES_SERVICE_PORT', value: '443' });
    expect(hostAliases).toEqual([{ ip: '100.65.15.254', hostnames: names }]);
  });

  test('comes after what the pod names itself', () => {
    const mine = { ip: '192.0.2.1', hostnames: ['kubernetes.default.svc'] };
    expect(spec({ hostAliases: [mine] }, context).hostAliases).toEqual([
      mine,
      { ip: '100.65.15.254', hostnames: names },
    ]);
    expect(spec({ hostAliases: [mine] }, REACHABLE).hostAliases).toEqual([mine]);
  });
});

describe('volumes', () => {
  test('the API access volume goes, with its mounts, where the home API server cannot be reached', () => {
    const mounts = [
      { name: access.name, mountPath: '/var/run' },
      { name: 'data', mountPath: '/data' },
    ];
    const given = { ...main({ volumeMounts: mounts }), volumes: [access, { name: 'data', emptyDir: {} }] };
    expect(spec(given).volumes).toEqual([{ name: 'data', emptyDir: {} }]);
    expect(spec(given).containers[0]?.volumeMounts).toEqual([mounts[1]]);
    expect(spec(given, REACHABLE).containers[0]?.volumeMounts).toEqual(mounts);
  });

  test('tokens come from a Secret, the root certificate under a name of its own', () => {
    expect(spec({ volumes: [access] }, REACHABLE).volumes?.[0]?.projected?.sources).toEqual([
      {
        secret: {
          name: tokenSecretName(UID),
          items: [{ key: tokenKey(access.name, 'token'), path: 'token' }],
        },
      },
      { configMap: { name: 'kube-root-ca.crt.tributary-home' } },
    ]);
  });

  test('the downward API shows the home pod’s UID and namespace', () => {
    const item = (fieldPath: string): object => ({ path: 'x', fieldRef: { fieldPath } });
    const items = ['metadata.uid', 'metadata.namespace', 'metadata.name'].map(item);
    const volume = { name: 'd', downwardAPI: { items } } as Volume;
    expect(spec({ volumes: [volume] }).volumes?.[0]?.downwardAPI?.items).toEqual(
      [
        "metadata.labels['tributary.dev/home-uid']",
        "metadata.annotations['tributary.dev/home-namespace']",
        'metadata.name',
      ].map(item),
    );
  });

  test.each([
    ['hostPath', { hostPath: { path: '/' } }],
    ['a claim', { persistentVolumeClaim: { claimName: 'c' } }],
    ['a Secret', { secret: { secretName: 's' } }],
  ])('%s travels as it is', (_what, source) => {
    expect(spec({ volumes: [{ name: 'v', ...source }] }).volumes).toEqual([{ name: 'v', ...source }]);
  });
});

describe('references', () => {
  const of = (given: Partial<PodSpec>): string[] =>
    podReferences(homePod({ spec: given })).map(
      ({ kind, name, optional, usage, user }) =>
        `${kind} ${name} ${optional ? 'optional' : 'mandatory'} ${usage} ${user}`,
    );

  test('each once, mandatory before optional', () => {
    expect(
      of({
        ...main({
          envFrom: [{ configMapRef: { name: 'a', optional: true } }, { secretRef: { name: 's' } }],
          env: [{ name: 'X', valueFrom: { configMapKeyRef: { name: 'a', key: 'k' } } }],
        }),
        imagePullSecrets: [{ name: 'pull' }],
        volumes: [
          { name: 'v', secret: { secretName: 's', optional: true } },
          { name: 'w', projected: { sources: [{ configMap: { name: 'b' } }] } },
        ],
      }),
    ).toEqual([
      'Secret pull optional imagePull imagePullSecrets',
      'Secret s mandatory environment main',
      'ConfigMap b mandatory volume w',
      'ConfigMap a mandatory environment main',
    ]);
  });

  test('none of a pod without a spec', () => {
    const { spec: _spec, ...bare } = homePod();
    expect(podReferences(bare as Pod)).toEqual([]);
  });
});

test('tokens are needed for the home API only where it can be reached', () => {
  const own: Volume = {
    name: 'vault',
    projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'vault' } }] },
  };
  const pod = homePod({ spec: { volumes: [access, own] } });
  expect(
    tokenNeeds(pod, true).map(({ audience, expirationSeconds }) => [audience, expirationSeconds]),
  ).toEqual([
    [undefined, 3607],
    ['vault', 3600],
  ]);
  expect(tokenNeeds(pod, false).map(({ audience }) => audience)).toEqual(['vault']);
});
