import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { isConditionTrue } from '../../src/api/conditions.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import {
  clusterRoles,
  namespaced,
  namespaces,
  resourceQuotas,
  roles,
  services,
} from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import type { Condition, KubeObject } from '../../src/api/wire.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { eventually } from '../support/eventually.ts';
import { LendingWorld, type Peer } from '../support/peering/lending-world.ts';
import { RightsCluster, printed, type Answer, type Caller } from '../support/labs/rights-cluster.ts';
import {
  RULE,
  aggregated,
  annotated,
  crd,
  ingress,
  withHost,
  withPath,
} from '../support/hostile/tenant-objects.ts';

/**
 * What a peer may bring into its tenant beside pods, on a real API server: Ingresses of the offered class, and kinds that
 * the SharingPolicy names. Lending runs with the account and the rights that people apply.
 */

const ACCOUNT = { namespace: 'tributary-system', name: 'tributary-cluster' };
const WIDGET = { group: 'shop.example', resource: 'widgets' };
const GADGET = { group: 'shop.example', resource: 'gadgets' };

const INGRESSES = namespaced<KubeObject>('networking.k8s.io/v1', 'Ingress');

let lab: RightsCluster;
let admin: KubeClient;
let client: KubeClient;
let world: LendingWorld;
let rome: Peer;
let peer: Caller;
let tenant: string;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  for (const object of [crd('widgets', 'Widget'), crd('gadgets', 'Gadget'), aggregated('widgets')]) {
    await lab.apply(stringify(object));
  }
  admin = await lab.admin();
  client = await lab.clientOf(ACCOUNT);
  await eventually('the aggregated rights are there', async () => {
    const { rules } = await admin.get(clusterRoles, { name: 'tributary-lending-kinds' });
    return (rules ?? []).length > 0;
  });
  world = await new LendingWorld(client, {}, admin).start();
  await world.node('real', { cpu: '8', memory: '16Gi', pods: '100', 'ephemeral-storage': '100Gi' });
  await world.policy({
    ingressClasses: ['edge'],
    ingressHosts: ['peers.example.com'],
  });
  rome = world.peer();
  await rome.peered();
  tenant = rome.tenant();
  peer = lab.with((await world.lending.credential(rome.identity, new AbortController().signal)).token);
  await eventually('the policies are in force', async () => {
    const { status } = await make(ingress({ spec: { ingressClassName: 'other' } }));
    const other = await make(ingress({ metadata: { finalizers: ['example.com/x'] } }));
    return status === 422 && other.status === 422;
  });
});

afterAll(async () => {
  await world?.stop();
  await client?.close();
  await admin?.close();
  await lab?.down();
});

const ingresses = (query = ''): string => `/apis/networking.k8s.io/v1/namespaces/${tenant}/ingresses${query}`;
const make = async (object: object): Promise<Answer> => peer('POST', ingresses('?dryRun=All'), object);

describe('an Ingress of a peer', () => {
  test('of the offered class, with ordinary annotations, is made, changed, followed and deleted', async () => {
    const object = ingress({
      metadata: {
        annotations: {
          'tributary.dev/source': 'x',
          'nginx.ingress.kubernetes.io/proxy-body-size': '8m',
          'nginx.ingress.kubernetes.io/ssl-redirect': 'true',
        },
      },
    });
    const made = await peer('POST', ingresses(), object);
    expect(made).toMatchObject({ status: 201 });
    const stored = JSON.parse(made.body) as { metadata: { annotations: object }; spec: object };
    const changed = { ...stored, spec: { ...stored.spec, tls: [] } };
    expect(await peer('PUT', `${ingresses()}/web`, changed)).toMatchObject({ status: 200 });
    expect(await peer('GET', ingresses())).toMatchObject({ status: 200 });
    expect(await peer('PUT', `${ingresses()}/web/status`, stored)).toMatchObject({ status: 403 });
    expect(await peer('DELETE', `${ingresses()}/web`)).toMatchObject({ status: 200 });
  });

  test('keeps what our own controllers have written on it, and cannot change that', async () => {
    expect(await peer('POST', ingresses(), ingress({}))).toMatchObject({ status: 201 });
    const key = 'controller.example.com/address';
    const annotate = { metadata: { annotations: { [key]: '10.0.0.1; ours' } } };
    const ref = { namespace: tenant, name: 'web' };
    const ours = await admin.patch(INGRESSES, ref, { type: 'merge', body: annotate });
    const write = async (annotations: object): Promise<number> => {
      const object = { ...ours, metadata: { ...ours.metadata, annotations } };
      return (await peer('PUT', `${ingresses()}/web?dryRun=All`, object)).status;
    };
    expect(await write({ [key]: '10.0.0.1; ours' })).toBe(200);
    expect(await write({})).toBe(200);
    expect(await write({ [key]: 'other' })).toBe(422);
    expect(await peer('DELETE', `${ingresses()}/web`)).toMatchObject({ status: 200 });
  });

  test('as large as it may be is judged within what expressions may cost', async () => {
    const [path] = RULE.http.paths;
    const paths = Array.from({ length: 64 }, (_, at) => ({ ...path, path: `/${'long/'.repeat(8)}${at}` }));
    const rules = Array.from({ length: 32 }, (_, at) => ({
      host: `a${at}.peers.example.com`,
      http: { paths },
    }));
    expect(await make(ingress({ spec: { rules } }))).toMatchObject({ status: 201 });
  });

  test.each<[string, Parameters<typeof ingress>[0]]>([
    ['no path', withPath({ path: undefined, pathType: 'ImplementationSpecific' })],
    ['the host itself', withHost('peers.example.com')],
    ['a plain path', withPath({ path: '/', pathType: 'Exact' })],
  ])('with %s is let in', async (_what, change) => {
    expect(await make(ingress(change))).toMatchObject({ status: 201 });
  });

  test.each<[string, Parameters<typeof ingress>[0], string]>([
    ['another class', { spec: { ingressClassName: 'internal' } }, 'name a class that this cluster offers'],
    ['no class', { spec: { ingressClassName: undefined } }, 'name a class'],
    [
      'the class in an annotation',
      {
        ...annotated('kubernetes.io/ingress.class', 'edge'),
        spec: { ingressClassName: undefined },
      },
      'name a class',
    ],
    [
      'a snippet',
      annotated('nginx.ingress.kubernetes.io/configuration-snippet', 'x;'),
      'annotations of peers',
    ],
    ['an auth URL', annotated('nginx.ingress.kubernetes.io/auth-url', 'http://x/'), 'annotations of peers'],
    ['a rewrite', annotated('nginx.ingress.kubernetes.io/rewrite-target', '/$1'), 'annotations of peers'],
    [
      'configuration in a value',
      annotated('nginx.ingress.kubernetes.io/proxy-body-size', '8m; x on'),
      'annotations of peers',
    ],
    ['a certificate issuer', annotated('cert-manager.io/cluster-issuer', 'ours'), 'annotations of peers'],
    [
      'a default backend',
      { spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } } },
      'no default backend',
    ],
    [
      'only a default backend that is a resource',
      {
        spec: {
          rules: undefined,
          tls: undefined,
          defaultBackend: { resource: { apiGroup: 'x.example', kind: 'X', name: 'x' } },
        },
      },
      'no default backend',
    ],
    [
      'a backend that is a resource',
      withPath({ backend: { resource: { apiGroup: 'x.example', kind: 'X', name: 'x' } } }),
      'lead to Services only',
    ],
    ['a pattern in a path', withPath({ path: '/a{b}', pathType: 'ImplementationSpecific' }), 'are plain'],
    ['no host', withHost(undefined), 'name a host in each rule'],
    ['a wildcard host', withHost('*.peers.example.com'), 'name a host in each rule'],
    ["the provider's own host", withHost('shop.example.com'), 'name a host in each rule'],
    ['a host that only ends like it', withHost('notpeers.example.com'), 'name a host in each rule'],
    ['a certificate of all hosts', { spec: { tls: [{ secretName: 'x' }] } }, 'hosts of each certificate'],
    [
      "a certificate of the provider's host",
      { spec: { tls: [{ hosts: ['shop.example.com'], secretName: 'x' }] } },
      'hosts of each certificate',
    ],
    ['too many rules', { spec: { rules: Array.from({ length: 33 }, () => RULE) } }, '32 rules'],
    ['a finalizer', { metadata: { finalizers: ['example.com/stay'] } }, 'bear no finalizers'],
    [
      'an owner',
      { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'x' }] } },
      'have no owners',
    ],
  ])('with %s is refused', async (_what, change, reason) => {
    const { status, body } = await make(ingress(change));
    expect({ status, body }).toMatchObject({ status: 422 });
    expect(body).toContain(reason);
  });

  test('has no backend that leads elsewhere: Services of type ExternalName are refused beside it', async () => {
    const metadata = { name: 'x', labels: { 'tributary.dev/managed-by': 'milan' } };
    const service = { ...metadata, metadata, spec: { type: 'ExternalName', externalName: 'ours.internal' } };
    const answer = await peer('POST', `/api/v1/namespaces/${tenant}/services?dryRun=All`, service);
    expect(answer).toMatchObject({ status: 422 });
    expect(answer.body).toContain('ExternalName');
    expect((await admin.list(services, { namespace: tenant })).items).toEqual([]);
  });

  test('nobody else is bound: our own controllers may do as they like', async () => {
    const object = ingress({ metadata: { namespace: tenant, finalizers: ['example.com/ours'] } });
    const made = await admin.create(INGRESSES, object as KubeObject);
    const body = { metadata: { finalizers: null } };
    await admin.patch(INGRESSES, { namespace: tenant, name: made.metadata.name }, { type: 'merge', body });
    await admin.delete(INGRESSES, { namespace: tenant, name: made.metadata.name });
  });
});

test('a peer reads the events of its tenant, makes none, and reads no others', async () => {
  const events = (namespace: string): string => `/api/v1/namespaces/${namespace}/events`;
  expect(await peer('GET', events(tenant))).toMatchObject({ status: 200 });
  expect(await peer('GET', events('default'))).toMatchObject({ status: 403 });
  expect(await peer('GET', '/api/v1/events')).toMatchObject({ status: 403 });
  const event = { metadata: { name: 'x' }, involvedObject: { namespace: tenant } };
  expect(await peer('POST', events(tenant), event)).toMatchObject({ status: 403 });
});

describe('further kinds', () => {
  const widget = (more: object = {}): object => ({
    apiVersion: 'shop.example/v1',
    kind: 'Widget',
    metadata: { name: 'one', labels: { 'tributary.dev/managed-by': 'milan' }, ...more },
    spec: { size: 3 },
  });
  const of = (plural: string, namespace = tenant): string =>
    `/apis/shop.example/v1/namespaces/${namespace}/${plural}`;
  const kinds = async (): Promise<Condition | undefined> => {
    const { status } = await admin.get(peeringRequests, { name: rome.id });
    return status?.conditions?.find(({ type }) => type === 'KindsReflectable');
  };

  beforeAll(async () => {
    // The controller manager looks for new kinds every half minute, and counts none before; only a quota shows that.
    let probes = 0;
    const counts = async (): Promise<boolean> => {
      const metadata = { namespace: 'default', name: `probe-${(probes += 1)}` };
      const hard = { 'count/widgets.shop.example': '1', 'count/gadgets.shop.example': '1' };
      const probe = await admin.create(resourceQuotas, { metadata, spec: { hard } });
      const isCounted = async (): Promise<boolean> => {
        const { status } = await admin.get(resourceQuotas, probe.metadata);
        return Object.keys(status?.used ?? {}).length === 2;
      };
      return eventually('counted', isCounted, 2000).then(
        () => true,
        () => false,
      );
    };
    await eventually('new kinds are counted', counts, 90_000);
    await world.changePolicy({ reflectableKinds: [WIDGET] });
  });

  test('that the policy names can be brought, without finalizers, and nowhere else', async () => {
    await eventually('granted', async () => (await kinds())?.status === 'True');
    await eventually('in force', async () => (await peer('GET', of('widgets'))).status === 200);
    const finalizer = await peer('POST', of('widgets'), widget({ finalizers: ['shop.example/stay'] }));
    expect(finalizer).toMatchObject({ status: 422 });
    expect(finalizer.body).toContain('bear no finalizers');
    await eventually('counted', async () => (await peer('POST', of('widgets'), widget())).status === 201);
    expect(await peer('DELETE', `${of('widgets')}/one`)).toMatchObject({ status: 200 });
    expect(await peer('GET', of('widgets', 'default'))).toMatchObject({ status: 403 });
    expect(await peer('GET', of('gadgets'))).toMatchObject({ status: 403 });
  });

  test('are counted', async () => {
    const quota = await lab.cluster.api.get<{ status: { used: Record<string, string> } }>(
      `/api/v1/namespaces/${tenant}/resourcequotas/tributary`,
    );
    expect(Object.keys(quota?.status.used ?? {})).toContain('count/widgets.shop.example');
  });

  test('that we hold no rights to, or that are never for peers, are told of; the rest stays in force', async () => {
    const secrets = { group: 'rbac.authorization.k8s.io', resource: 'roles' };
    await world.changePolicy({ reflectableKinds: [WIDGET, GADGET, secrets] });
    await eventually('told', async () => (await kinds())?.reason === 'RightsMissing');
    const { message = '' } = (await kinds()) ?? {};
    expect(message).toContain('gadgets.shop.example');
    expect(message).toContain('aggregate-to-lending');
    expect(message).toContain('roles.rbac.authorization.k8s.io');
    const request = await admin.get(peeringRequests, { name: rome.id });
    expect(request.status?.phase).toBe('Established');
    expect(isConditionTrue(request.status?.conditions, 'TenantReady')).toBe(true);
    await eventually('the policy says so, too', async () => {
      const { status } = await admin.get(sharingPolicies, { name: 'everybody' });
      return (status?.conditions ?? []).some((it) => it.type === 'KindsReflectable' && it.status === 'False');
    });
    expect(world.events.map(({ reason }) => reason)).toContain('RightsMissing');
    expect(await peer('POST', of('widgets'), widget())).toMatchObject({ status: 201 });
    expect(await peer('GET', of('gadgets'))).toMatchObject({ status: 403 });
    expect(await peer('GET', `/api/v1/namespaces/${tenant}/pods`)).toMatchObject({ status: 200 });
    const role = await admin.get(roles, { namespace: tenant, name: 'tributary-peer-kinds' });
    expect(role.rules).toHaveLength(1);

    // People give the right: it is passed on, without a restart.
    await lab.apply(stringify(aggregated('gadgets')));
    await world.changePolicy({ reflectableKinds: [WIDGET, GADGET] });
    await eventually('granted', async () => (await kinds())?.status === 'True');
    await eventually('in force', async () => (await peer('GET', of('gadgets'))).status === 200);
  });

  test("what lending holds it may pass on to a tenant's peer only, and not use", async () => {
    const lending = await lab.as(ACCOUNT);
    expect(await lending('GET', of('widgets', 'default'))).toMatchObject({ status: 200 });
    const used = await lending('POST', of('widgets', 'default'), widget());
    expect(used).toMatchObject({ status: 422 });
    expect(used.body).toContain('not to be used');
    const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces';
    const role = (name: string, group: string, resource: string, verbs = ['list']): object => ({
      metadata: { name },
      rules: [{ apiGroups: [group], resources: [resource], verbs }],
    });
    for (const [namespace, wrong] of [
      ['default', role('tributary-peer-kinds', 'shop.example', 'widgets')],
      [tenant, role('other', 'shop.example', 'widgets')],
      [tenant, role('tributary-peer-kinds', '', 'pods')],
      [tenant, role('tributary-peer-kinds', 'tributary.dev', 'peeringrequests')],
      [tenant, role('tributary-peer-kinds', 'other.example', 'things')],
    ] as const) {
      const { status } = await lending('POST', `${RBAC}/${namespace}/roles?dryRun=All`, wrong);
      expect([403, 422]).toContain(status);
    }
  });

  test('go when the policy no longer names them', async () => {
    await world.changePolicy({ reflectableKinds: [] });
    await eventually('gone', async () => (await peer('GET', of('widgets'))).status === 403);
    await eventually('no condition is left', async () => (await kinds()) === undefined);
    expect((await admin.list(roles, { namespace: tenant })).items).toEqual([]);
  });
});

test('a tenant from before these rights gets them when the manifests of today are applied', async () => {
  const name = 'tributary-tenant';
  const { rules = [] } = await admin.get(clusterRoles, { name });
  const older = rules.filter(({ resources = [] }) => !/^(ingresses|events)$/.test(resources[0] ?? ''));
  const { metadata } = await admin.get(clusterRoles, { name });
  const before = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, labels: metadata.labels },
    rules: older,
  };
  await lab.apply(stringify(before));
  await eventually('as before', async () => (await peer('GET', ingresses())).status === 403);
  await admin.patch(
    namespaces,
    { name: tenant },
    { type: 'merge', body: { metadata: { annotations: { 'tributary.dev/ingress-classes': null } } } },
  );
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  await eventually('rights', async () => (await peer('GET', ingresses())).status === 200);
  await eventually('classes', async () => (await make(ingress({}))).status === 201);
});
