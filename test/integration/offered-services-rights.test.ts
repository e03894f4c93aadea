import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster, printed, type Caller } from '../support/labs/rights-cluster.ts';

/** What the account of the `cluster` role may do to Services and EndpointSlices, on a real API server. */

const PROVIDER = 'm'.repeat(26);
const OURS = { 'tributary.dev/offered-service': 'true', 'tributary.dev/provider': PROVIDER };
const SLICE = {
  ...OURS,
  'endpointslice.kubernetes.io/managed-by': 'tributary.dev',
  'kubernetes.io/service-name': 'db',
};

/** Of a peer. */
const THEIRS = {
  'endpointslice.kubernetes.io/managed-by': 'tributary.dev',
  'kubernetes.io/service-name': 'db',
  'tributary.dev/managed-by': PROVIDER,
};
/** Made for that peer. */
const NATIVE = {
  'endpointslice.kubernetes.io/managed-by': 'native.tributary.dev',
  'kubernetes.io/service-name': 'db',
};
const CONTROLLERS = { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' };

let lab: RightsCluster;
let admin: Caller;
let role: Caller;

const servicesOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/services`;
const slicesOf = (namespace: string): string =>
  `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
const service = (labels: object, spec: object = {}, name = 'db'): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, labels },
  spec: { ports: [{ port: 5432 }], ...spec },
});
const slice = (labels: object, name = 'db'): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, labels },
  addressType: 'IPv4',
  endpoints: [{ addresses: ['100.64.0.7'] }],
  ports: [],
});
const statusOf = async (method: string, path: string, body?: object): Promise<number> =>
  (await role(method, `${path}?dryRun=All`, body)).status;

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'example/tributary:1']));
  const { api } = lab.cluster;
  admin = async (method, path, body) => api.call(method, path, body);
  for (const [name, labels] of [
    ['shop', {}],
    ['tenant', { 'tributary.dev/peer': PROVIDER, 'tributary.dev/tenancy': 'contract' }],
  ] as const) {
    await admin('POST', '/api/v1/namespaces', { metadata: { name, labels } });
  }
  for (const [name, labels] of [
    ['theirs', {}],
    ['ours', OURS],
  ] as const) {
    await admin('POST', servicesOf('shop'), service(labels, {}, name));
    await admin('POST', slicesOf('shop'), slice(labels, name));
  }
  for (const [name, labels] of [
    ['peers', THEIRS],
    ['native', NATIVE],
    ['selected', CONTROLLERS],
  ] as const) {
    await admin('POST', slicesOf('tenant'), slice(labels, name));
  }
  role = await lab.as({ namespace: 'tributary-system', name: 'tributary-cluster' });
  await eventually(
    'the fence is in force',
    async () => (await statusOf('POST', servicesOf('shop'), service({}))) === 422,
  );
});
afterAll(async () => lab?.down());

describe('the cluster role', () => {
  test.each([
    ['a home Service', servicesOf('shop'), service(OURS)],
    ['its endpoints', slicesOf('shop'), slice(SLICE)],
    ['endpoints that are pods of a peer, in a tenant', slicesOf('tenant'), slice(NATIVE)],
  ])('makes %s', async (_what, path, body) => {
    expect(await statusOf('POST', path, body)).toBe(201);
  });

  test.each([
    ['a Service without the marks', servicesOf('shop'), service({})],
    ['one without a provider', servicesOf('shop'), service({ 'tributary.dev/offered-service': 'true' })],
    ['one in kube-system', servicesOf('kube-system'), service(OURS)],
    ['one beside itself', servicesOf('tributary-system'), service(OURS)],
    ['one in a tenant', servicesOf('tenant'), service(OURS)],
    ['one with a port of nodes', servicesOf('shop'), service(OURS, { type: 'NodePort' })],
    ['one that selects pods', servicesOf('shop'), service(OURS, { selector: { app: 'x' } })],
    ['one that claims an address', servicesOf('shop'), service(OURS, { externalIPs: ['192.0.2.7'] })],
    ['endpoints without the marks', slicesOf('shop'), slice({ 'kubernetes.io/service-name': 'theirs' })],
    ['endpoints in kube-system', slicesOf('kube-system'), slice(SLICE)],
    ['endpoints in a tenant', slicesOf('tenant'), slice(SLICE)],
    ['endpoints that another controller has', slicesOf('shop'), slice(OURS)],
    ['those of pods of a peer where no tenant is', slicesOf('shop'), slice(NATIVE)],
    ['those of a peer itself', slicesOf('tenant'), slice(THEIRS)],
    ["those of the tenant's selectors", slicesOf('tenant'), slice(CONTROLLERS)],
  ])('does not make %s', async (_what, path, body) => {
    expect(await statusOf('POST', path, body)).toBe(422);
  });

  test('deletes what is its own, and nothing else', async () => {
    expect({
      service: await statusOf('DELETE', `${servicesOf('shop')}/ours`),
      slice: await statusOf('DELETE', `${slicesOf('shop')}/ours`),
      others: await statusOf('DELETE', `${servicesOf('shop')}/theirs`),
      othersSlice: await statusOf('DELETE', `${slicesOf('shop')}/theirs`),
    }).toEqual({ service: 200, slice: 200, others: 422, othersSlice: 422 });
  });

  test('of endpoints in a tenant it deletes those that it has made, and changes no manager', async () => {
    const wished = async (name: string, labels: object): Promise<number> => {
      const found = JSON.parse((await role('GET', `${slicesOf('tenant')}/${name}`)).body) as {
        metadata: object;
      };
      const body = { ...found, metadata: { ...found.metadata, labels } };
      return statusOf('PUT', `${slicesOf('tenant')}/${name}`, body);
    };
    const note = { note: 'new' };
    expect({
      native: await statusOf('DELETE', `${slicesOf('tenant')}/native`),
      peers: await statusOf('DELETE', `${slicesOf('tenant')}/peers`),
      selected: await statusOf('DELETE', `${slicesOf('tenant')}/selected`),
      changesNative: await wished('native', { ...NATIVE, ...note }),
      changesPeers: await wished('peers', { ...THEIRS, ...note }),
      changesSelected: await wished('selected', { ...CONTROLLERS, ...note }),
      takesPeers: await wished('peers', NATIVE),
      givesAway: await wished('native', THEIRS),
    }).toEqual({
      native: 200,
      peers: 422,
      selected: 422,
      changesNative: 200,
      changesPeers: 200,
      changesSelected: 422,
      takesPeers: 422,
      givesAway: 422,
    });
  });

  test('takes nothing over by marking it', async () => {
    const found = JSON.parse((await role('GET', `${servicesOf('shop')}/theirs`)).body) as {
      metadata: object;
    };
    const marked = { ...found, metadata: { ...found.metadata, labels: OURS } };
    expect(await statusOf('PUT', `${servicesOf('shop')}/theirs`, marked)).toBe(422);
  });
});
