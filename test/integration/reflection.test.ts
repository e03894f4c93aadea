import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ReflectionRule } from '../../src/api/reflection.ts';
import { namespaced, events, ingresses, secrets, type ResourceType } from '../../src/api/resources.ts';
import { virtualNodes, type VirtualNodeSpec } from '../../src/api/virtual-node.ts';
import type { KubeObject } from '../../src/api/wire.ts';
import { AgentLab, NODE } from '../support/labs/agent-lab.ts';
import { eventually } from '../support/eventually.ts';
import { applyYaml } from '../support/labs/rights-cluster.ts';
import { orNone } from '../support/labs/services-lab.ts';

/**
 * Objects of a kind that nobody here knows, and Ingresses, between two real API servers: by configuration alone, within the
 * rights of a peer.
 */

const GROUP = 'times.example.com';

interface Timetable extends KubeObject {
  spec: { opens?: string; notice?: string; zone?: string; replicas?: number; secret?: string };
}
const timetables: ResourceType<Timetable> = namespaced(`${GROUP}/v1`, 'Timetable');
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `timetables.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'timetables', singular: 'timetable', kind: 'Timetable' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  opens: { type: 'string' },
                  notice: { type: 'string' },
                  zone: { type: 'string' },
                  secret: { type: 'string' },
                  replicas: { type: 'integer', default: 1 },
                },
              },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
};
/** The foreign cluster has an older definition, which sets more defaults than the one at home, and where a field is immutable. */
const THEIRS = JSON.parse(
  JSON.stringify(DEFINITION)
    .replace(
      '"notice":{"type":"string"}',
      '"notice":{"type":"string"},"suspend":{"type":"boolean","default":false}',
    )
    .replace(
      '"zone":{"type":"string"}',
      '"zone":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}',
    ),
) as object;
const RIGHTS = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { namespace: 'tenant', name: 'timetables' },
    rules: [
      {
        apiGroups: [GROUP],
        resources: ['timetables'],
        verbs: ['list', 'watch', 'create', 'update', 'delete'],
      },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { namespace: 'tenant', name: 'timetables' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'timetables' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'tributary-peers', name: 'rome' }],
  },
];
const RULE: ReflectionRule = { group: GROUP, resource: 'timetables', policy: 'All', drop: ['spec.secret'] };

let lab: AgentLab;
beforeAll(async () => {
  lab = await AgentLab.up();
  await applyYaml(lab.homeCluster, JSON.stringify(DEFINITION));
  await lab.start();
  await lab.ready();
});
afterAll(async () => lab?.down());

const setNode = async (spec: Partial<VirtualNodeSpec>): Promise<unknown> =>
  lab.home.patch(virtualNodes, { name: NODE }, { type: 'merge', body: { spec } });
const setRules = async (...reflection: ReflectionRule[]): Promise<unknown> =>
  setNode({ namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant', reflection }] });
const addTimetable = async (name: string, annotations: Record<string, string> = {}): Promise<unknown> =>
  lab.home.create(timetables, {
    metadata: { namespace: 'shop', name, annotations, finalizers: ['example.com/keep'] },
    spec: { opens: '08:30', secret: 'mine' },
  });
const there = async (name: string): Promise<Timetable | undefined> =>
  orNone(lab.foreign.get(timetables, { namespace: 'tenant', name }));
async function told(reason: string, namespace = 'shop'): Promise<string[]> {
  const { items } = await lab.home.list(events, { namespace });
  return items.filter((event) => event.reason === reason).map(({ message = '' }) => message);
}
const changeTimetable = async (name: string, body: object): Promise<unknown> =>
  lab.home.patch(timetables, { namespace: 'shop', name }, { type: 'merge', body });

test('a kind that the provider does not serve is told; it goes there once it does, without a restart', async () => {
  await addTimetable('first');
  await addTimetable('home', { 'tributary.dev/reflect': 'false' });
  await setRules(RULE);
  await eventually(
    'it is told',
    async () => [...(await told('KindNotServed')), ...(await told('KindForbidden'))].length > 0,
  );
  for (const object of RIGHTS) await applyYaml(lab.foreignCluster, JSON.stringify(object));
  await eventually('what is missing now is told', async () =>
    (await told('KindNotServed')).join().includes('the foreign cluster does not know timetables'),
  );
  await eventually('it is told of the VirtualNode, too', async () =>
    (await told('KindNotServed', 'default')).some((it) => it.includes('namespace shop: the foreign cluster')),
  );
  await applyYaml(lab.foreignCluster, JSON.stringify(THEIRS));
  await eventually('it is there', async () => (await there('first')) !== undefined);
  const copy = await there('first');
  expect(copy?.spec).toEqual({ opens: '08:30', replicas: 1, suspend: false });
  expect(copy?.metadata).not.toHaveProperty('finalizers');
  expect(await there('home')).toBeUndefined();
  expect(await told('KindNotServed')).toHaveLength(1);
});

test('a change is one write, and defaults of over there are none; a change of theirs is put back', async () => {
  const generation = async (): Promise<number> => (await there('first'))?.metadata.generation ?? 0;
  await changeTimetable('first', { spec: { notice: 'x' } });
  await eventually('it follows', async () => (await there('first'))?.spec.notice === 'x');
  const before = await there('first');
  // It has no account in the foreign cluster, so nothing may be written for it.
  await changeTimetable('first', { spec: { secret: 'other' } });
  await addTimetable('second');
  await eventually('the next is there', async () => (await there('second')) !== undefined);
  expect((await there('first'))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  const was = await generation();
  await lab.foreign.patch(
    timetables,
    { namespace: 'tenant', name: 'first' },
    { type: 'merge', body: { spec: { notice: 'evil' } } },
  );
  await eventually(
    'it is put back',
    async () => (await there('first'))?.spec.notice === 'x' && (await generation()) === was + 2,
  );
});

test('a field that is immutable over there: the copy stays, and is made anew where the object says so', async () => {
  await changeTimetable('second', { spec: { zone: 'a' } });
  await eventually('it is there', async () => (await there('second'))?.spec.zone === 'a');
  const uid = (await there('second'))?.metadata.uid;
  await changeTimetable('second', { spec: { zone: 'b' } });
  await eventually('it is told', async () => (await told('CopyNotChanged')).length > 0);
  expect((await told('CopyNotChanged'))[0]).toContain('spec.zone');
  expect((await there('second'))?.metadata.uid).toBe(uid);
  await changeTimetable('second', {
    metadata: { annotations: { 'tributary.dev/when-immutable': 'Replace' } },
  });
  await eventually('it is made anew', async () => (await there('second'))?.spec.zone === 'b');
  expect((await there('second'))?.metadata.uid).not.toBe(uid);
  expect(await told('CopyNotChanged')).toHaveLength(1);
});

test('opt-in, a name of somebody else, and the end of the rule', async () => {
  await lab.foreign.create(timetables, {
    metadata: { namespace: 'tenant', name: 'taken' },
    spec: { notice: 'theirs' },
  });
  await addTimetable('taken', { 'tributary.dev/reflect': 'true' });
  await setRules({ ...RULE, policy: 'OptIn' });
  await eventually(
    'the others are home',
    async () => (await there('first')) === undefined && (await there('second')) === undefined,
  );
  await eventually('it is told', async () => (await told('NameTaken')).length > 0);
  await changeTimetable('first', { metadata: { annotations: { 'tributary.dev/reflect': 'true' } } });
  await eventually('it opts in', async () => (await there('first')) !== undefined);
  await setRules();
  await eventually('it is gone', async () => (await there('first')) === undefined);
  expect((await there('taken'))?.spec.notice).toBe('theirs');
  await eventually('the rule is forgotten', async () => {
    const { status } = await lab.home.get(virtualNodes, { name: NODE });
    return status?.namespaces?.[0]?.reflection?.some(({ resource }) => resource === 'timetables') !== true;
  });
});

test('an Ingress goes as the class that is mapped, within what the provider opens; its certificate with it', async () => {
  const annotations = {
    'tributary.dev/ingress-classes': 'haproxy',
    'tributary.dev/ingress-hosts': 'example.com',
  };
  await applyYaml(
    lab.foreignCluster,
    JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant', annotations } }),
  );
  await lab.home.create(secrets, { metadata: { namespace: 'shop', name: 'cert' }, data: {} });
  const backend = { service: { name: 'web', port: { number: 80 } } };
  await lab.home.create(ingresses, {
    metadata: {
      namespace: 'shop',
      name: 'web',
      annotations: { 'nginx.ingress.kubernetes.io/configuration-snippet': 'return 200;' },
    },
    spec: {
      ingressClassName: 'nginx',
      tls: [{ hosts: ['shop.example.com'], secretName: 'cert' }],
      rules: [{ host: 'shop.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  });
  await eventually('it is told', async () => (await told('IngressClassNotMapped')).length === 1);
  await setNode({ ingressClasses: { nginx: 'haproxy' } });
  const copy = async (): Promise<unknown> =>
    orNone(lab.foreign.get(ingresses, { namespace: 'tenant', name: 'web' }));
  await eventually('it is there', async () => (await copy()) !== undefined);
  expect(await copy()).toMatchObject({
    spec: { ingressClassName: 'haproxy', rules: [{ host: 'shop.example.com' }] },
  });
  expect(JSON.stringify(await copy())).not.toContain('snippet');
  await eventually(
    'its certificate',
    async () => (await orNone(lab.foreign.get(secrets, { namespace: 'tenant', name: 'cert' }))) !== undefined,
  );
  await lab.home.delete(ingresses, { namespace: 'shop', name: 'web' });
  await eventually('it is gone', async () => (await copy()) === undefined);
});
